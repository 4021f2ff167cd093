// TensorFlow tensors as DLPack describes them.
#ifndef TENSORFLOW_PLUGIN_INTEROP_EXPORT_H_
#define TENSORFLOW_PLUGIN_INTEROP_EXPORT_H_

#include "dlpack/dlpack.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow_plugin/primitives/status.h"

namespace xpu::interop {

// Who may write what is exported.
enum class Access {
  // The consumer shares the memory with TensorFlow, whose tensors never change. Flag READ_ONLY.
  kShared,
  // The tensor was made for the consumer. Flag IS_COPIED.
  kCopied,
  // Nobody looks at the tensor before the consumer has filled it. No flag.
  kFresh,
};

// Fills in a view without an owner. The shape is shared (shapes.h); the data is the tensor's. For a scalar in host
// memory it is a copy that lasts until this thread has made kScalarRing more. TensorFlow keeps one tensor for all equal
// scalar constants of a process, so a consumer that writes to one would change all.
constexpr int kScalarRing = 1024;
Status View(const tensorflow::Tensor& tensor, DLDevice device, DLTensor* out);

// Fails if DLPack has no type for the tensor.
Status CheckType(const tensorflow::Tensor& tensor);

// Makes a managed tensor, Managed being DLManagedTensor or DLManagedTensorVersioned. It keeps `owner`, which keeps the
// tensor's memory, until its deleter is called, from any thread, with or without the interpreter's lock. Everything
// that it points to lasts as long. Host scalars are copied, as above.
template <typename Managed>
Status Export(const tensorflow::Tensor& tensor, const tsl::core::RefCounted* owner, DLDevice device, Access access,
              Managed** out);
// The object that keeps the memory of any tensor; null if there are no elements.
const tsl::core::RefCounted* BufferOf(const tensorflow::Tensor& tensor);

// A managed tensor of uninitialised host memory, 64-byte aligned, that belongs to no tensor yet.
Status ExportFresh(tensorflow::DataType type, const tensorflow::TensorShape& shape, DLManagedTensorVersioned** out);

// A tensor in host memory with the same values.
Status CopyOnHost(const tensorflow::Tensor& tensor, tensorflow::Tensor* copy);

// Uninitialised host memory, 64-byte aligned.
Status AllocateOnHost(tensorflow::DataType type, const tensorflow::TensorShape& shape, tensorflow::Tensor* out);

// True for a tensor that TensorFlow may share among all who need its value.
inline bool IsSharedScalar(const tensorflow::Tensor& tensor, DLDevice device) {
  return tensor.dims() == 0 && device.device_type == kDLCPU;
}

}  // namespace xpu::interop

#endif  // TENSORFLOW_PLUGIN_INTEROP_EXPORT_H_

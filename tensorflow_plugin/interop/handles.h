// Handles of eager tensors: what they hold, and how they are made. TensorHandle's own members say the first where
// tf_internals/eager_tensors.h knows them. Elsewhere TensorFlow's C API does, which has all of a device's work done
// before it says where a tensor's memory is. All functions need the interpreter's lock, and give it up while they wait.
#ifndef TENSORFLOW_PLUGIN_INTEROP_HANDLES_H_
#define TENSORFLOW_PLUGIN_INTEROP_HANDLES_H_

#include <memory>
#include <optional>
#include <string>

#include "tensorflow/c/eager/c_api.h"
#include "tensorflow/core/common_runtime/eager/context.h"
#include "tensorflow/core/common_runtime/eager/tensor_handle.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow_plugin/interop/devices.h"

namespace xpu::interop {

struct HandleDeleter {
  void operator()(TFE_TensorHandle* handle) const { TFE_DeleteTensorHandle(handle); }
};
using HandlePtr = std::unique_ptr<TFE_TensorHandle, HandleDeleter>;

// The tensor of a handle; valid while the handle lives.
struct EagerView {
  EagerView() = default;
  EagerView(const EagerView&) = delete;
  EagerView& operator=(const EagerView&) = delete;

  TFE_TensorHandle* handle = nullptr;
  const tensorflow::Tensor* tensor = nullptr;
  tensorflow::Device* device = nullptr;  // where the memory is; null: on the host
  TensorLocation place;
  // Keeps the memory, and is no use of it that counts.
  const tsl::core::RefCounted* owner = nullptr;
  // TensorFlow's tensor, whose buffer counts its users; null where that is not known.
  const tensorflow::Tensor* counted = nullptr;
  // By the C API: the tensor over the handle's memory, or one without memory where elements are objects, such as texts.
  std::optional<tensorflow::Tensor> made;
  bool has_no_memory = false;
};

// Says what may be looked at inside, by the checks of these hooks: a handle, and who uses the memory of its tensor.
// Before this is called, nothing may.
void LookInside(bool eager_tensors, bool holders);

// Waits until the operation that makes the tensor has run (asynchronous eager execution). False with an exception set
// if that failed, or the tensor is not in this process's memory.
bool ViewOfHandle(TFE_TensorHandle* handle, EagerView* view);

// A handle with the tensor, which lies on the device; null: on the host. Null with an exception set.
HandlePtr HandleOn(tensorflow::Device* device, tensorflow::Tensor tensor);

// A copy of the tensor on the device, made by TensorFlow; null with an exception set.
HandlePtr CopyTo(TFE_TensorHandle* handle, const std::string& device);

// TensorFlow's context, made if need be; null with an exception set.
bool EnsureContext();
TFE_Context* TheContext();
tensorflow::EagerContext* EagerContextOfPython();

}  // namespace xpu::interop

#endif  // TENSORFLOW_PLUGIN_INTEROP_HANDLES_H_

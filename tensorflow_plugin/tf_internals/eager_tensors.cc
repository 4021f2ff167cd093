#include "tensorflow_plugin/tf_internals/eager_tensors.h"

#include <utility>

#include "tensorflow/core/common_runtime/dma_helper.h"
#include "tensorflow_plugin/tf_internals/holders.h"

namespace xpu::tf_internals {
namespace {

using tensorflow::Tensor;
using tensorflow::TensorHandle;

// The language lets an explicit instantiation name private members.
using IsReadyMethod = bool (TensorHandle::*)() const;
IsReadyMethod IsReadyOf();
template <IsReadyMethod method>
struct Expose {
  friend IsReadyMethod IsReadyOf() { return method; }
};
template struct Expose<&TensorHandle::IsReady>;

}  // namespace

bool IsReady(const TensorHandle& handle) { return (handle.*IsReadyOf())(); }

void CheckEagerTensors(Check& check) {
  Tensor tensor(tensorflow::DT_FLOAT, tensorflow::TensorShape({2, 3}));
  const void* const data = tensorflow::DMAHelper::base(&tensor);
  const tensorflow::core::RefCountPtr<TensorHandle> handle(
      TensorHandle::CreateLocalHandle(std::move(tensor), nullptr, nullptr, nullptr));
  const Tensor* seen = nullptr;
  if (!check.Is("whether a handle is a TensorHandle", TensorHandle::classof(handle.get()), true) ||
      !check.Is("whether it is of this process", handle->Type() == TensorHandle::LOCAL, true) ||
      !check.Is("its device, which is the host,", handle->device(), static_cast<tensorflow::Device*>(nullptr)) ||
      !check.Is("whether its tensor is there", IsReady(*handle), true) ||
      !check.Is("whether it gives its tensor", handle->Tensor(&seen).ok(), true) ||
      !check.Is("the place of its elements", static_cast<const void*>(tensorflow::DMAHelper::base(seen)), data) ||
      !check.Is("whether a tensor has as many holders as are expected", IsHeldBy(kOfOneHandle, *seen), true)) {
    return;
  }
  check.Is("whether it has less", IsHeldBy(kOfOneHandle - 1, *seen), false);
}

}  // namespace xpu::tf_internals

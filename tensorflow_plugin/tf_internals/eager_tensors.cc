#include "tensorflow_plugin/tf_internals/eager_tensors.h"

#include <cstdint>
#include <memory>
#include <utility>

#include "tensorflow/c/eager/c_api.h"
#include "tensorflow/c/eager/c_api_experimental.h"
#include "tensorflow/c/eager/tfe_tensorhandle_internal.h"
#include "tensorflow/c/tf_datatype.h"
#include "tensorflow/c/tf_status.h"
#include "tensorflow/c/tf_tensor.h"
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
      !check.Is("whether it gives its tensor", handle->Tensor(&seen).ok(), true)) {
    return;
  }
  check.Is("the place of its elements", static_cast<const void*>(tensorflow::DMAHelper::base(seen)), data);
}

void CheckHolders(Check& check) {
  const std::unique_ptr<TF_Status, decltype(&TF_DeleteStatus)> status(TF_NewStatus(), &TF_DeleteStatus);
  constexpr int64_t kDims[] = {2, 3};
  const std::unique_ptr<TF_Tensor, decltype(&TF_DeleteTensor)> given(
      TF_AllocateTensor(TF_FLOAT, kDims, 2, 6 * sizeof(float)), &TF_DeleteTensor);
  const std::unique_ptr<TFE_TensorHandle, decltype(&TFE_DeleteTensorHandle)> handle(
      TFE_NewTensorHandle(given.get(), status.get()), &TFE_DeleteTensorHandle);
  const Tensor* seen = nullptr;
  if (!check.Is("whether TensorFlow makes a handle", handle != nullptr, true) ||
      !check.Is("whether it gives its tensor",
                static_cast<TensorHandle*>(tensorflow::unwrap(handle.get()))->Tensor(&seen).ok(), true) ||
      !check.Is("the type of its tensor", static_cast<int>(seen->dtype()), static_cast<int>(tensorflow::DT_FLOAT)) ||
      !check.Is("the place of its elements", static_cast<const void*>(tensorflow::DMAHelper::base(seen)),
                static_cast<const void*>(TFE_TensorHandleDevicePointer(handle.get(), status.get()))) ||
      // The tensor that it was made of is one more.
      !check.Is("whether a tensor has as many holders as are expected", IsHeldBy(kOfOneHandle + 1, *seen), true)) {
    return;
  }
  check.Is("whether it has less", IsHeldBy(kOfOneHandle, *seen), false);
}

}  // namespace xpu::tf_internals

// Python's eager tensors from inside: what no header of TensorFlow's offers.
#ifndef TENSORFLOW_PLUGIN_TF_INTERNALS_EAGER_TENSORS_H_
#define TENSORFLOW_PLUGIN_TF_INTERNALS_EAGER_TENSORS_H_

#include "tensorflow/c/eager/c_api.h"
#include "tensorflow/core/common_runtime/eager/tensor_handle.h"
#include "tensorflow_plugin/tf_internals/check.h"

struct _object;  // PyObject

// TensorFlow's own, from python/eager/pywrap_tensor.h and pywrap_tfe.h, which need a NumPy to build with.
bool EagerTensor_CheckExact(const _object* object);
TFE_TensorHandle* EagerTensor_Handle(const _object* object);
_object* EagerTensorFromHandle(TFE_TensorHandle* handle, bool is_packed);
_object* GetPyEagerContext();

namespace xpu::tf_internals {

// A handle (LocalTensorHandleData) holds its tensor twice, so that operations do not reuse its memory.
inline constexpr int kOfOneHandle = 2;

// TensorHandle::IsReady, which is private.
bool IsReady(const tensorflow::TensorHandle& handle);

// If it fails, IsReady may not be used, nor the insides of a TensorHandle.
void CheckEagerTensors(Check& check);

// If it fails, kOfOneHandle may not be used, nor TensorHandle::Tensor by those who know nothing else of its class.
void CheckHolders(Check& check);

}  // namespace xpu::tf_internals

#endif  // TENSORFLOW_PLUGIN_TF_INTERNALS_EAGER_TENSORS_H_

// Who uses the memory of a tensor.
#ifndef TENSORFLOW_PLUGIN_TF_INTERNALS_HOLDERS_H_
#define TENSORFLOW_PLUGIN_TF_INTERNALS_HOLDERS_H_

#include "tensorflow/core/framework/tensor.h"

namespace xpu::tf_internals {

// True if at most `holders` tensors of TensorFlow use the memory, the one given included. Other holders are a slice or
// a reshaped tensor, a variable, the constant of a graph, or an operation that runs.
bool IsHeldBy(int holders, const tensorflow::Tensor& tensor);

}  // namespace xpu::tf_internals

#endif  // TENSORFLOW_PLUGIN_TF_INTERNALS_HOLDERS_H_

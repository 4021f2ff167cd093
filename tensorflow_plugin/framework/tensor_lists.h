// TensorLists, in which loops gather values and gradients: variants in host memory, whose elements are in device
// memory. An element that was never set is none.
#ifndef TENSORFLOW_PLUGIN_FRAMEWORK_TENSOR_LISTS_H_
#define TENSORFLOW_PLUGIN_FRAMEWORK_TENSOR_LISTS_H_

#include <functional>

#include "tensorflow_plugin/framework/context.h"

namespace xpu {

// Writes the sum of `a` and `b` to `sum`: vectors of one type and length.
using AddElements = std::function<Status(const Tensor& a, const Tensor& b, const Tensor& sum)>;

// Output 0 becomes the sum of all inputs, element by element; one that only one list has is shared with it.
// InvalidArgument if types, shapes or lengths differ, or an input is no TensorList.
Status AddTensorLists(Context& ctx, const AddElements& add);

// Output 0 becomes a list as input 0 is, with zeros in it.
Status ZeroTensorList(Context& ctx);

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_FRAMEWORK_TENSOR_LISTS_H_

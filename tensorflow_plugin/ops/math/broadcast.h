// Broadcasting of elementwise operands against each other, by NumPy's rules.
#ifndef TENSORFLOW_PLUGIN_OPS_MATH_BROADCAST_H_
#define TENSORFLOW_PLUGIN_OPS_MATH_BROADCAST_H_

#include "tensorflow_plugin/framework/tensor.h"
#include "tensorflow_plugin/primitives/descriptors.h"

namespace xpu {

// All operands are dense and of one shape, or one element: a single flat dimension.
inline void SetFlat(int64_t num_elements, int num_operands, ElementwiseDesc* desc) {
  desc->shape = Dims(1, num_elements);
  for (int i = 0; i < num_operands; ++i) desc->in_strides[i] = Dims(1, 1);
}

// Any shapes: fills in desc->shape and desc->in_strides, with dimensions merged where all operands allow it, and the
// result's full shape. False if the shapes are incompatible.
bool BroadcastAny(const Tensor* operands, int num_operands, ElementwiseDesc* desc, Dims* result);

// Strides that walk a tensor of shape `from` over `to`, to which it broadcasts. False if it does not.
bool BroadcastStrides(const Dims& from, const Dims& to, Dims* strides);

// The same for two operands, which are nearly always of equal shape, or one of them a scalar.
inline bool BroadcastPair(const Tensor* operands, ElementwiseDesc* desc, Dims* result) {
  const Tensor& x = operands[0];
  const Tensor& y = operands[1];
  if (x.dims() == y.dims()) {
    SetFlat(x.num_elements(), 2, desc);
    *result = x.dims();
    return true;
  }
  if (y.num_elements() == 1 && y.rank() <= x.rank()) {
    SetFlat(x.num_elements(), 2, desc);
    desc->in_strides[1][0] = 0;
    *result = x.dims();
    return true;
  }
  if (x.num_elements() == 1 && x.rank() <= y.rank()) {
    SetFlat(y.num_elements(), 2, desc);
    desc->in_strides[0][0] = 0;
    *result = y.dims();
    return true;
  }
  return BroadcastAny(operands, 2, desc, result);
}

// TensorFlow's words for two shapes that do not broadcast.
inline Status IncompatibleShapes(const Tensor& x, const Tensor& y) {
  return errors::InvalidArgument("Incompatible shapes: ", x.ShapeString(), " vs. ", y.ShapeString());
}

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_OPS_MATH_BROADCAST_H_

// Reductions of any rank as the primitive's descriptor, whose axes are few.
#ifndef TENSORFLOW_PLUGIN_OPS_MATH_REDUCTION_H_
#define TENSORFLOW_PLUGIN_OPS_MATH_REDUCTION_H_

#include "tensorflow_plugin/primitives/descriptors.h"

namespace xpu {

// For each axis of a shape: true if it is meant.
using AxisSet = SmallVector<bool, 32>;

// Reduces the axes in `reduced` of desc->source, whose program, shape and strides are set. Neighbouring axes that are
// all reduced or all kept, and that each input walks as one, become one axis.
void SetReduced(const AxisSet& reduced, ReduceDesc* desc);

// The same of one dense input of this shape.
void SetDenseSource(const Dims& dims, const AxisSet& reduced, ReduceDesc* desc);

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_OPS_MATH_REDUCTION_H_

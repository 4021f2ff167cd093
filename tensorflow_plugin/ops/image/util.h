// The common part of the ops on images: points at which images are sampled.
#ifndef TENSORFLOW_PLUGIN_OPS_IMAGE_UTIL_H_
#define TENSORFLOW_PLUGIN_OPS_IMAGE_UTIL_H_

#include <cstdint>
#include <vector>

#include "tensorflow_plugin/framework/context.h"
#include "tensorflow_plugin/framework/registry.h"
#include "tensorflow_plugin/ops/math/formula.h"

namespace xpu {

// The types of images that are resized; int32 is in device memory, as on TensorFlow's GPU where an op has it there.
extern const TypeList kImageTypes;

// A device array made on the host.
Status UploadFloats(Context& ctx, const std::vector<float>& values, Temporary* out);

// The descriptor of `images` [images, height, width, channels] seen as `out` [batch, out_h, out_w, channels].
SampleDesc SampleOf(const Tensor& images, const Tensor& out);

// Images at the points of a grid, the same for all: `points` are the y of its rows, then the x of its columns.
Status LaunchGrid(Context& ctx, SampleKind kind, const Tensor& images, const std::vector<float>& points,
                  const Tensor& out);

// That an argument, which the message names, is a number. `with_ranks`: the message says both ranks.
Status CheckScalar(const Tensor& t, const char* what, bool with_ranks = false);

// The nearest whole number, halves away from zero.
FormulaValue Rounded(const FormulaValue& x);

namespace needs {
Need Sample(SampleKind kind, Outside outside, TypeRef type, TypeRef result_type,
            SampleDirection direction = SampleDirection::kForward);
}  // namespace needs

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_OPS_IMAGE_UTIL_H_

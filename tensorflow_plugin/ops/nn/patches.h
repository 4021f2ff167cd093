// Windows of an image laid out one beside the other, and where they lie.
#ifndef TENSORFLOW_PLUGIN_OPS_NN_PATCHES_H_
#define TENSORFLOW_PLUGIN_OPS_NN_PATCHES_H_

#include <cstdint>

#include "tensorflow_plugin/framework/context.h"
#include "tensorflow_plugin/ops/nn/windows.h"

namespace xpu {

// Windows over [batch, spatial..., channels].
struct Patches {
  int spatial_rank = 2;
  int64_t batch = 0, channels = 0;
  int64_t input[kMaxSpatial] = {1, 1, 1}, window[kMaxSpatial] = {1, 1, 1}, output[kMaxSpatial] = {1, 1, 1};
  int64_t stride[kMaxSpatial] = {1, 1, 1}, rate[kMaxSpatial] = {1, 1, 1};
  int64_t pad_before[kMaxSpatial] = {0, 0, 0};

  // From an image's shape; window, stride and rate are set.
  Status Resolve(const Dims& image, const Padding& padding);
  // [batch, output..., channels]
  Dims OutputShape() const;
};

// An image as windows find it: a strided view of shape [batch, output..., window..., channels].
struct PatchView {
  Dims shape, strides;
  const void* data = nullptr;
};

// If some windows reach beyond the image it is copied to `padded`, with the element at `outside` (on the host) around.
Status ViewPatches(Context& ctx, const Patches& patches, const Tensor& image, const void* outside, Temporary* padded,
                   PatchView* view);

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_OPS_NN_PATCHES_H_

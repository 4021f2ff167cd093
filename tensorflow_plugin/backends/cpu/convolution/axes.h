// The axes of a convolution's images.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_AXES_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_AXES_H_

#include <algorithm>
#include <array>
#include <cstdint>

#include "tensorflow_plugin/primitives/descriptors.h"

namespace xpu::cpu {

struct SpatialAxis {
  // The pixels that all windows together reach over, from the first one's beginning.
  int64_t covered() const { return (output - 1) * stride + (filter - 1) * dilation + 1; }
  bool has_padding() const { return pad > 0 || covered() > input; }

  int64_t input = 1, output = 1, filter = 1, stride = 1, dilation = 1, pad = 0;
};

// There are always as many. The first ones have one pixel if the convolution has fewer, so that the last one is the one
// whose pixels are neighbours.
inline constexpr int kAxes = ConvolutionDesc::kMaxSpatial;
inline std::array<SpatialAxis, kAxes> AxesOf(const ConvolutionDesc& d) {
  std::array<SpatialAxis, kAxes> axes;
  for (int i = 0; i < d.spatial_rank; ++i) {
    axes[kAxes - d.spatial_rank + i] = {d.input[i],  d.output[i],   d.filter[i],
                                        d.stride[i], d.dilation[i], d.pad_before[i]};
  }
  return axes;
}

// True if a window may lie in the padding.
inline bool HasPadding(const ConvolutionDesc& d) {
  const std::array<SpatialAxis, kAxes> axes = AxesOf(d);
  return std::any_of(axes.begin(), axes.end(), [](const SpatialAxis& axis) { return axis.has_padding(); });
}

}  // namespace xpu::cpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_AXES_H_

// Geometry that the convolution and pooling kernels of every host-memory backend share.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_SPATIAL_H_
#define TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_SPATIAL_H_

#include <algorithm>
#include <cstdint>

#include "tensorflow_plugin/primitives/descriptors.h"

namespace xpu::host_runtime {

// Element strides of an [N, spatial..., C] or [N, C, spatial...] tensor. Spatial axes that a descriptor does not
// use have extent 1, so that loops over all three are right for every rank.
struct SpatialStrides {
  int64_t n, c, s[3];
  SpatialStrides(ChannelOrder order, int64_t channels, const int64_t* extent) {
    const int64_t pixels = extent[0] * extent[1] * extent[2];
    n = pixels * channels;
    c = order == ChannelOrder::kLast ? 1 : pixels;
    int64_t stride = order == ChannelOrder::kLast ? channels : 1;
    for (int d = 2; d >= 0; --d) {
      s[d] = stride;
      stride *= extent[d];
    }
  }
};

// The pixels [begin, end) of a window, along one axis, that fall inside an input of `extent`. The window's first pixel
// is at `start` (negative in the padding), and its pixels are `dilation` apart.
struct PixelRange {
  int64_t begin, end;
  PixelRange(int64_t start, int64_t window, int64_t dilation, int64_t extent) {
    begin = start >= 0 ? 0 : std::min(window, (-start + dilation - 1) / dilation);
    const int64_t room = extent - start;  // pixels at offsets below this are inside
    end = room <= 0 ? begin : std::max(begin, std::min(window, (room + dilation - 1) / dilation));
  }
};

// Visits one pixel of a convolution's output, counted within its image. It calls f(tap, pixel of the input there) for
// all taps of the filter, the last axis fastest. The input's pixel is -1 in the padding.
template <typename F>
void ForEachTap(const ConvolutionDesc& d, int64_t pixel, F&& f) {
  const int64_t o[3] = {pixel / (d.output[1] * d.output[2]), pixel / d.output[2] % d.output[1], pixel % d.output[2]};
  int64_t start[3];
  for (int i = 0; i < 3; ++i) start[i] = o[i] * d.stride[i] - d.pad_before[i];
  int64_t tap = 0;
  for (int64_t a = 0; a < d.filter[0]; ++a) {
    const int64_t i = start[0] + a * d.dilation[0];
    for (int64_t b = 0; b < d.filter[1]; ++b) {
      const int64_t j = start[1] + b * d.dilation[1];
      const bool plane_inside = i >= 0 && i < d.input[0] && j >= 0 && j < d.input[1];
      for (int64_t c = 0; c < d.filter[2]; ++c) {
        const int64_t k = start[2] + c * d.dilation[2];
        const bool inside = plane_inside && k >= 0 && k < d.input[2];
        f(tap++, inside ? (i * d.input[1] + j) * d.input[2] + k : -1);
      }
    }
  }
}

inline int64_t Pixels(const int64_t* extent) { return extent[0] * extent[1] * extent[2]; }

}  // namespace xpu::host_runtime

#endif  // TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_SPATIAL_H_

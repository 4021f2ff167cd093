// The elements of a convolution's arrays, and their division.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_SIZES_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_SIZES_H_

#include <cstdint>

#include "tensorflow_plugin/backends/host_runtime/spatial.h"
#include "tensorflow_plugin/primitives/descriptors.h"

namespace xpu::cpu {

// True if each channel is a group of its own.
inline bool HasOneChannelGroups(const ConvolutionDesc& d) {
  return d.groups > 1 && d.groups == d.in_channels && d.groups == d.out_channels;
}

// True for a filter of one pixel without padding, with any strides.
inline bool HasFilterOfOnePixel(const ConvolutionDesc& d) {
  for (int i = 0; i < d.spatial_rank; ++i) {
    if (d.filter[i] != 1 || d.pad_before[i] != 0 || d.pad_after[i] != 0) return false;
  }
  return true;
}

inline int64_t InputSize(const ConvolutionDesc& d) { return d.batch * d.in_channels * host_runtime::Pixels(d.input); }
inline int64_t OutputSize(const ConvolutionDesc& d) {
  return d.batch * d.out_channels * host_runtime::Pixels(d.output);
}
inline int64_t FilterSize(const ConvolutionDesc& d) {
  return host_runtime::Pixels(d.filter) * (d.in_channels / d.groups) * d.out_channels;
}

// The same in every direction.
inline int64_t Multiplications(const ConvolutionDesc& d) {
  return OutputSize(d) * (d.in_channels / d.groups) * host_runtime::Pixels(d.filter);
}

// Those of in[0], in[1] and out[0].
struct ConvolutionSizes {
  explicit ConvolutionSizes(const ConvolutionDesc& d) {
    const int64_t x = InputSize(d), y = OutputSize(d), w = FilterSize(d);
    in[0] = d.direction == Direction::kDataGradient ? w : x;
    in[1] = d.direction == Direction::kForward ? w : y;
    out = d.direction == Direction::kForward ? y : d.direction == Direction::kDataGradient ? x : w;
  }
  int64_t in[2], out;
};

}  // namespace xpu::cpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_SIZES_H_

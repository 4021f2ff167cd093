// Descriptors of convolutions, by their axes.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_TESTS_GEOMETRY_CONVOLUTIONS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_TESTS_GEOMETRY_CONVOLUTIONS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tensorflow_plugin/primitives/descriptors.h"

namespace xpu::testing {

// One axis: input extent, filter extent, stride, dilation, padding before and after.
struct Axis {
  int64_t input, filter, stride = 1, dilation = 1, before = 0, after = 0;
};

inline ConvolutionDesc ConvolutionOf(const std::vector<Axis>& axes, int64_t batch, int64_t in, int64_t out,
                                     int64_t groups = 1) {
  ConvolutionDesc d;
  d.spatial_rank = static_cast<int>(axes.size());
  d.batch = batch;
  d.in_channels = in;
  d.out_channels = out;
  d.groups = groups;
  for (size_t i = 0; i < axes.size(); ++i) {
    const Axis& a = axes[i];
    d.input[i] = a.input;
    d.filter[i] = a.filter;
    d.stride[i] = a.stride;
    d.dilation[i] = a.dilation;
    d.pad_before[i] = a.before;
    d.pad_after[i] = a.after;
    d.output[i] = (a.input + a.before + a.after - (a.filter - 1) * a.dilation - 1) / a.stride + 1;
  }
  return d;
}

}  // namespace xpu::testing

#endif  // TENSORFLOW_PLUGIN_BACKENDS_TESTS_GEOMETRY_CONVOLUTIONS_H_

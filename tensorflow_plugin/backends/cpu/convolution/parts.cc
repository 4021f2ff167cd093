#include "tensorflow_plugin/backends/cpu/convolution/parts.h"

#include <algorithm>

#include "tensorflow_plugin/backends/host_runtime/spatial.h"

namespace xpu::cpu {

using host_runtime::SpatialStrides;

ConvolutionPart PartOf(const ConvolutionDesc& d, int64_t image, int64_t images, int64_t row, int64_t rows) {
  const SpatialStrides x(d.order, d.in_channels, d.input), y(d.order, d.out_channels, d.output);
  ConvolutionPart part{d, image * x.n, image * y.n};
  part.desc.epilogue = {};
  part.desc.packed_filter_bytes = 0;
  part.desc.batch = images;
  if (rows == d.output[0]) return part;
  const int64_t begin = row * d.stride[0] - d.pad_before[0];
  const int64_t end = begin + (rows - 1) * d.stride[0] + (d.filter[0] - 1) * d.dilation[0] + 1;
  const int64_t first = std::clamp<int64_t>(begin, 0, d.input[0]);
  part.desc.input[0] = std::min(end, d.input[0]) - first;
  part.desc.pad_before[0] = first - begin;
  part.desc.pad_after[0] = 0;  // the plan looks at the others
  part.desc.output[0] = rows;
  part.x += first * x.s[0];
  part.y += row * y.s[0];
  return part;
}

}  // namespace xpu::cpu

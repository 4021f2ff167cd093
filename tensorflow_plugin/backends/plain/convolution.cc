#include <cstring>

#include "tensorflow_plugin/backends/host_runtime/spatial.h"
#include "tensorflow_plugin/backends/plain/loops.h"

namespace xpu::plain {

void ConvolveBytes(const ConvolutionDesc& d, const Args& args, int64_t begin, int64_t end, int32_t* y) {
  const auto* const x = static_cast<const uint8_t*>(args.in[0]);
  const auto* const w = static_cast<const int8_t*>(args.in[1]);
  const auto zero = *static_cast<const uint32_t*>(args.in[2]);
  const auto* const zeros = static_cast<const uint32_t*>(args.in[3]);
  const int64_t in_per_group = d.in_channels / d.groups, out_per_group = d.out_channels / d.groups;
  const int64_t pixels = host_runtime::Pixels(d.output), input = host_runtime::Pixels(d.input) * d.in_channels;
  auto* sums = reinterpret_cast<uint32_t*>(y);  // which wrap
  for (int64_t pixel = begin; pixel < end; ++pixel, sums += d.out_channels) {
    std::memset(sums, 0, d.out_channels * sizeof(int32_t));
    const uint8_t* const image = x + pixel / pixels * input;
    host_runtime::ForEachTap(d, pixel % pixels, [&](int64_t tap, int64_t pixel) {
      if (pixel < 0) return;
      const uint8_t* const from = image + pixel * d.in_channels;
      for (int64_t channel = 0; channel < d.in_channels; ++channel) {
        const uint32_t value = from[channel] - zero;
        const int64_t first = channel / in_per_group * out_per_group;
        const int8_t* const row = w + (tap * in_per_group + channel % in_per_group) * d.out_channels;
        for (int64_t i = first; i < first + out_per_group; ++i) {
          sums[i] += value * (static_cast<uint32_t>(row[i]) - zeros[i]);
        }
      }
    });
  }
}

}  // namespace xpu::plain

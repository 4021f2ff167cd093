#include "tensorflow_plugin/backends/cpu/convolution/bytes/compensated_sums.h"

#include <cstring>

#include "tensorflow_plugin/backends/cpu/convolution/axes.h"
#include "tensorflow_plugin/backends/cpu/convolution/sizes.h"

namespace xpu::cpu {

CompensatedSums::CompensatedSums(const ConvolutionDesc& d)
    : rows_(FilterSize(d) / d.out_channels), out_channels_(d.out_channels), has_padding_(HasPadding(d)) {}

int64_t CompensatedSums::PackedBytes() const {
  return FilterBytes() + out_channels_ * static_cast<int64_t>(sizeof(int32_t));
}

void CompensatedSums::Pack(const int8_t* filter, void* packed) const {
  auto* const to = static_cast<int8_t*>(packed);
  PackFilter(filter, to);
  auto* const sums = reinterpret_cast<int32_t*>(to + FilterBytes());
  std::memset(sums, 0, out_channels_ * sizeof(int32_t));
  for (int64_t i = 0; i < rows_; ++i) {
    for (int64_t j = 0; j < out_channels_; ++j) sums[j] += filter[i * out_channels_ + j];
  }
}

bool CompensatedSums::Accepts(int32_t zero_point) const {
  return !has_padding_ || (zero_point >= 0 && zero_point <= UINT8_MAX);
}

const int32_t* CompensatedSums::Compensation(const void* packed, int32_t zero_point, ScratchFrame* frame) const {
  if (zero_point == 0) return nullptr;
  const auto* const sums = reinterpret_cast<const int32_t*>(static_cast<const int8_t*>(packed) + FilterBytes());
  auto* const compensation = frame->Get<int32_t>(out_channels_);
  for (int64_t j = 0; j < out_channels_; ++j) {
    compensation[j] = static_cast<int32_t>(0 - static_cast<uint32_t>(sums[j]) * static_cast<uint32_t>(zero_point));
  }
  return compensation;
}

}  // namespace xpu::cpu

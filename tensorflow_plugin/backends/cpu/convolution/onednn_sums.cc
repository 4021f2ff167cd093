#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "tensorflow_plugin/backends/cpu/convolution/byte_sums.h"
#include "tensorflow_plugin/backends/cpu/convolution/onednn_plans.h"
#include "tensorflow_plugin/backends/cpu/convolution/sizes.h"
#include "tensorflow_plugin/backends/cpu/scratch.h"
#include "tensorflow_plugin/backends/plain/loops.h"

namespace xpu::cpu {
namespace {

using host_runtime::Cells;

class ByOnednn final : public ByteSums {
 public:
  explicit ByOnednn(const ByteParts& parts) : parts_(parts) {
    for (int64_t block = 0; block < parts.blocks; ++block) {
      // Like a part in the middle: those at the edges have other paddings.
      const int64_t parts_of_block = parts.parts / parts.blocks;
      const BytePart part = parts.At(block * parts_of_block + parts_of_block / 2);
      std::shared_ptr<OnednnPlan> plan;
      if (part.of.desc.input[0] <= 0 || !FindLayout(part.of.desc, &plan).ok() || !plan->usable()) {
        usable_ = false;
        return;
      }
      layouts_.push_back(std::move(plan));
      offsets_.push_back(bytes_);
      bytes_ += RoundUp(static_cast<int64_t>(layouts_.back()->desc(1).get_size()), 64);
    }
    sums_offset_ = bytes_;
    bytes_ += Cells(parts.d.filter) * parts.d.out_channels * static_cast<int64_t>(sizeof(int32_t));
  }

  bool usable() const { return usable_; }

  int64_t PackedBytes() const override { return bytes_; }

  Status Pack(const int8_t* filter, void* packed) const override {
    const ConvolutionDesc& d = parts_.d;
    const int64_t taps = Cells(d.filter), depth = d.in_channels / d.groups;
    ScratchFrame frame;
    auto* const dense = frame.Get<int8_t>(taps * depth * parts_.channels);
    for (int64_t block = 0; block < parts_.blocks; ++block) {
      const int64_t first = block * parts_.channels, count = parts_.ChannelsOf(block);
      for (int64_t row = 0; row < taps * depth; ++row) {
        std::memcpy(dense + row * count, filter + row * d.out_channels + first, count);
      }
      XPU_RETURN_IF_ERROR(layouts_[block]->Run({dense, static_cast<char*>(packed) + offsets_[block]}, Alone()));
    }
    auto* const sums = reinterpret_cast<int32_t*>(static_cast<char*>(packed) + sums_offset_);
    std::memset(sums, 0, taps * d.out_channels * sizeof(int32_t));
    for (int64_t tap = 0; tap < taps; ++tap) {
      for (int64_t channel = 0; channel < depth; ++channel) {
        const int8_t* const row = filter + (tap * depth + channel) * d.out_channels;
        for (int64_t i = 0; i < d.out_channels; ++i) sums[tap * d.out_channels + i] += row[i];
      }
    }
    return OkStatus();
  }

  Status Multiply(const BytePart& part, const Args& args, const void* packed, int32_t* sums) const override {
    std::shared_ptr<OnednnPlan> plan;
    XPU_RETURN_IF_ERROR(FindPlan(part.of.desc, FilterUse::kPacked, layouts_[part.block]->desc(1), Alone(), &plan));
    if (plan->usable()) {
      const auto* const x = static_cast<const uint8_t*>(args.in[0]) + part.of.x;
      return plan->Run({x, static_cast<const char*>(packed) + offsets_[part.block], sums}, Alone());
    }
    // A part at the edge may have another form.
    const int64_t channels = parts_.d.out_channels;
    ScratchFrame frame;
    const int32_t zero = 0;
    auto *const zeros = frame.Get<int32_t>(channels), *const all = frame.Get<int32_t>(part.pixels * channels);
    std::memset(zeros, 0, channels * sizeof(int32_t));
    Args at = args;
    at.in[2] = &zero;
    at.in[3] = zeros;
    plain::ConvolveBytes(parts_.d, at, part.pixel, part.pixel + part.pixels, all);
    for (int64_t i = 0; i < part.pixels; ++i) {
      std::memcpy(sums + i * part.count, all + i * channels + part.first, part.count * sizeof(int32_t));
    }
    return OkStatus();
  }

  const int32_t* FilterSums(const void* packed) const override {
    return reinterpret_cast<const int32_t*>(static_cast<const char*>(packed) + sums_offset_);
  }

 private:
  const ByteParts& parts_;
  bool usable_ = true;
  int64_t bytes_ = 0, sums_offset_ = 0;
  std::vector<std::shared_ptr<OnednnPlan>> layouts_;
  std::vector<int64_t> offsets_;
};

}  // namespace

std::unique_ptr<ByteSums> OnednnSums(const ByteParts& parts) {
  auto sums = std::make_unique<ByOnednn>(parts);
  return sums->usable() ? std::move(sums) : nullptr;
}

}  // namespace xpu::cpu

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "tensorflow_plugin/backends/cpu/convolution/axes.h"
#include "tensorflow_plugin/backends/cpu/convolution/bytes/byte_parts.h"
#include "tensorflow_plugin/backends/cpu/convolution/bytes/byte_sums.h"
#include "tensorflow_plugin/backends/cpu/convolution/bytes/word_sums_loops.h"
#include "tensorflow_plugin/backends/cpu/convolution/onednn_plans.h"
#include "tensorflow_plugin/backends/cpu/convolution/sizes.h"
#include "tensorflow_plugin/backends/cpu/cost.h"
#include "tensorflow_plugin/backends/cpu/scratch.h"
#include "tensorflow_plugin/backends/cpu/simd/isa.h"

namespace xpu::cpu {
namespace {

using host_runtime::Pixels;
using host_runtime::ThreadTeam;

// Elements less a zero point beyond this do not fit into 16 bits.
constexpr int32_t kMostZeroPoint = 1 << 14;

// The images of a part with their padding, as integers of 16 bits. Channels come last.
class PaddedImages {
 public:
  explicit PaddedImages(const ConvolutionDesc& d) : channels_(d.in_channels), batch_(d.batch), axes_(AxesOf(d)) {
    image_ = channels_;
    for (int i = kAxes - 1; i >= 0; --i) {
      const SpatialAxis& axis = axes_[i];
      padded_[i] = axis.covered();
      steps_[i] = image_;
      image_ *= padded_[i];
    }
  }

  // Where a tap of the filter is, from the first one on.
  int64_t Tap(int64_t tap) const {
    int64_t place = 0;
    for (int i = kAxes - 1; i >= 0; tap /= axes_[i--].filter) {
      place += tap % axes_[i].filter * axes_[i].dilation * steps_[i];
    }
    return place;
  }
  // Where the window of a pixel of the part begins.
  int64_t Pixel(int64_t pixel) const {
    int64_t place = 0;
    for (int i = kAxes - 1; i >= 0; pixel /= axes_[i--].output) {
      place += pixel % axes_[i].output * axes_[i].stride * steps_[i];
    }
    return place + pixel * image_;
  }

  // The bytes of a part's x less its zero point. Padding is 0.
  const int16_t* Make(const BytePart& part, const Args& args, ScratchFrame* frame) const {
    const auto* const x = static_cast<const uint8_t*>(args.in[0]) + part.of.x;
    const int32_t zero_point = *static_cast<const int32_t*>(args.in[2]);
    auto* const made = frame->Get<int16_t>(batch_ * image_ + kWordsBehind);
    int16_t* to = made;
    const auto widen = XPU_PICK_ISA(Widen);
    const SpatialAxis &a = axes_[0], &b = axes_[1], &c = axes_[2];
    // A row has elements before the image, in it and behind it.
    const int64_t row = padded_[2] * channels_, before = std::min(c.pad * channels_, row);
    const int64_t inside = std::max<int64_t>(0, std::min((c.pad + c.input) * channels_, row) - before);
    for (int64_t n = 0; n < batch_; ++n) {
      for (int64_t i = -a.pad; i < padded_[0] - a.pad; ++i) {
        for (int64_t j = -b.pad; j < padded_[1] - b.pad; ++j, to += row) {
          const bool is_inside = i >= 0 && i < a.input && j >= 0 && j < b.input;
          const int64_t here = is_inside ? inside : 0;
          std::memset(to, 0, before * sizeof(int16_t));
          if (here > 0)
            widen(x + ((n * a.input + i) * b.input + j) * c.input * channels_, here, zero_point, to + before);
          std::memset(to + before + here, 0, (row - before - here) * sizeof(int16_t));
        }
      }
    }
    std::memset(to, 0, kWordsBehind * sizeof(int16_t));
    return made;
  }

 private:
  const int64_t channels_, batch_;
  const std::array<SpatialAxis, kAxes> axes_;
  int64_t padded_[kAxes], steps_[kAxes];  // pixels of each axis, and elements from one to the next
  int64_t image_;
};

// Runs of consecutive elements of x that meet consecutive rows of the filter.
class Runs {
 public:
  explicit Runs(const ConvolutionDesc& d) {
    const int last = d.spatial_rank - 1;
    const bool whole_rows = d.dilation[last] == 1;
    length = d.in_channels * (whole_rows ? d.filter[last] : 1);
    taps = whole_rows ? d.filter[last] : 1;
    count = Pixels(d.filter) / taps;
    pairs = (length + 1) / 2;
  }
  int64_t length, taps, count, pairs;
};

// Where loops write the sums of some columns of a part. That is in place, unless there are fewer columns than loops
// write.
class SumsOfColumns {
 public:
  SumsOfColumns(const BytePart& part, int64_t width, int64_t pixels, int32_t* sums, ScratchFrame* frame)
      : ld_(part.count), width_(width), pixels_(pixels), all_(sums) {
    if (ld_ % width != 0) spare_ = frame->Get<int32_t>(pixels * width);
  }
  void Begin(int64_t pixel, int64_t column) {
    place_ = all_ + pixel * ld_ + column;
    columns_ = std::min(width_, ld_ - column);
  }
  int32_t* sums() const { return columns_ == width_ ? place_ : spare_; }
  int64_t ld() const { return columns_ == width_ ? ld_ : width_; }
  void End() const {
    if (columns_ == width_) return;
    for (int64_t i = 0; i < pixels_; ++i) {
      std::memcpy(place_ + i * ld_, spare_ + i * width_, columns_ * sizeof(int32_t));
    }
  }

 private:
  const int64_t ld_, width_, pixels_;
  int32_t* const all_;
  int32_t* spare_ = nullptr;
  int32_t* place_ = nullptr;
  int64_t columns_ = 0;
};

// A part of the sums after the other.
class ByWords : public ByteSums {
 public:
  explicit ByWords(const ConvolutionDesc& d) : parts_(d) {}

  bool Accepts(int32_t zero_point) const override {
    return std::abs(static_cast<int64_t>(zero_point)) <= kMostZeroPoint;
  }

  void Run(const Args& args, const void* packed, const ThreadTeam& team, const SumsEpilogue& epilogue) const override {
    (parts_.IsShared() ? team : Alone()).ParallelFor(parts_.parts, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const BytePart part = parts_.At(i);
        ScratchFrame frame;
        auto* const sums = frame.Get<int32_t>(part.pixels * part.count);
        if (part.of.desc.input[0] <= 0) {  // nothing but padding
          std::memset(sums, 0, part.pixels * part.count * sizeof(int32_t));
        } else {
          const PaddedImages images(part.of.desc);
          Multiply(part, images, images.Make(part, args, &frame), packed, sums);
        }
        epilogue.take({sums, part.count, nullptr, part.pixel, part.pixels, part.first, part.count});
      }
    });
  }

 protected:
  // The sums of a part, whose padded images are at x.
  virtual void Multiply(const BytePart& part, const PaddedImages& images, const int16_t* x, const void* packed,
                        int32_t* sums) const = 0;

  const ByteParts parts_;
};

class DenseWordSums final : public ByWords {
 public:
  explicit DenseWordSums(const ConvolutionDesc& d) : ByWords(d), runs_(parts_.d) {
    for (int64_t block = 0; block < parts_.blocks; ++block) {
      offsets_.push_back(words_);
      words_ += RoundUp(parts_.ChannelsOf(block), kGroupColumns) * runs_.count * runs_.pairs * 2;
    }
  }

  int64_t PackedBytes() const override { return words_ * static_cast<int64_t>(sizeof(int16_t)); }

  void Pack(const int8_t* filter, void* packed) const override {
    for (int64_t block = 0; block < parts_.blocks; ++block) {
      auto* to = static_cast<int16_t*>(packed) + offsets_[block];
      const int64_t begin = block * parts_.channels, end = begin + parts_.ChannelsOf(block);
      for (int64_t group = begin; group < end; group += kGroupColumns) {
        for (int64_t run = 0; run < runs_.count; ++run) {
          for (int64_t pair = 0; pair < runs_.pairs; ++pair, to += 2 * kGroupColumns) {
            for (int64_t j = 0; j < kGroupColumns; ++j) {
              for (int64_t i = 0; i < 2; ++i) {
                const bool is_there = 2 * pair + i < runs_.length && group + j < end;
                const int64_t row = run * runs_.length + 2 * pair + i;
                to[2 * j + i] = is_there ? filter[row * parts_.d.out_channels + group + j] : 0;
              }
            }
          }
        }
      }
    }
  }

 protected:
  void Multiply(const BytePart& part, const PaddedImages& images, const int16_t* x, const void* packed,
                int32_t* sums) const override {
    const ConvolutionDesc& d = part.of.desc;
    ScratchFrame frame;
    auto* const rows = frame.Get<const int16_t*>(part.pixels);
    const int64_t row = d.output[d.spatial_rank - 1], step = d.stride[d.spatial_rank - 1] * d.in_channels;
    for (int64_t begin = 0; begin < part.pixels; begin += row) {
      const int16_t* const from = x + images.Pixel(begin);
      for (int64_t i = 0; i < row; ++i) rows[begin + i] = from + i * step;
    }
    auto* const runs = frame.Get<int64_t>(runs_.count);
    for (int64_t run = 0; run < runs_.count; ++run) runs[run] = images.Tap(run * runs_.taps);
    const auto sum_pairs = XPU_PICK_ISA(SumPairs);
    const auto* filter = static_cast<const int16_t*>(packed) + offsets_[part.block];
    SumsOfColumns to(part, kGroupColumns, part.pixels, sums, &frame);
    for (int64_t group = 0; group < part.count; group += kGroupColumns) {
      to.Begin(0, group);
      sum_pairs(part.pixels, rows, runs_.count, runs, runs_.pairs, filter, to.sums(), to.ld());
      to.End();
      filter += runs_.count * runs_.pairs * 2 * kGroupColumns;
    }
  }

 private:
  const Runs runs_;
  int64_t words_ = 0;
  std::vector<int64_t> offsets_;  // of blocks
};

class DepthwiseWordSums final : public ByWords {
 public:
  explicit DepthwiseWordSums(const ConvolutionDesc& d) : ByWords(d), pairs_((Pixels(d.filter) + 1) / 2) {}

  int64_t PackedBytes() const override { return pairs_ * Step() * static_cast<int64_t>(sizeof(int16_t)); }

  // The weights of a channel for two taps lie together.
  void Pack(const int8_t* filter, void* packed) const override {
    auto* const to = static_cast<int16_t*>(packed);
    const int64_t taps = Pixels(parts_.d.filter), channels = parts_.d.out_channels;
    std::memset(to, 0, PackedBytes());
    for (int64_t tap = 0; tap < taps; ++tap) {
      for (int64_t i = 0; i < channels; ++i) to[tap / 2 * Step() + 2 * i + tap % 2] = filter[tap * channels + i];
    }
  }

 protected:
  void Multiply(const BytePart& part, const PaddedImages& images, const int16_t* x, const void* packed,
                int32_t* sums) const override {
    const ConvolutionDesc& d = part.of.desc;
    ScratchFrame frame;
    const int64_t taps = Pixels(d.filter), channels = part.count;
    auto* const offsets = frame.Get<int64_t>(2 * pairs_);
    for (int64_t tap = 0; tap < 2 * pairs_; ++tap) offsets[tap] = images.Tap(std::min(tap, taps - 1));
    const auto sum_taps = XPU_PICK_ISA(SumTaps);
    const int64_t row = d.output[d.spatial_rank - 1], step = d.stride[d.spatial_rank - 1] * channels;
    SumsOfColumns to(part, kDepthwiseChannels, row, sums, &frame);
    for (int64_t begin = 0; begin < part.pixels; begin += row) {
      const int16_t* const from = x + images.Pixel(begin);
      for (int64_t c = 0; c < channels; c += kDepthwiseChannels) {
        to.Begin(begin, c);
        sum_taps(row, from + c, step, pairs_, offsets, static_cast<const int16_t*>(packed) + 2 * c, Step(), to.sums(),
                 to.ld());
        to.End();
      }
    }
  }

 private:
  // The words for two taps.
  int64_t Step() const { return 2 * RoundUp(parts_.d.out_channels, kDepthwiseChannels); }

  const int64_t pairs_;  // of taps
};

}  // namespace

std::unique_ptr<ByteSums> WordSums(const ConvolutionDesc& d) {
  // With fewer columns than this most of a group would be computed for nothing.
  constexpr int64_t kFewestColumns = kGroupColumns / 2;
  if (d.groups == 1 && d.out_channels >= kFewestColumns) return std::make_unique<DenseWordSums>(d);
  if (HasOneChannelGroups(d)) return std::make_unique<DepthwiseWordSums>(d);
  return nullptr;
}

}  // namespace xpu::cpu

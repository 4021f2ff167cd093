#include "tensorflow_plugin/backends/cpu/convolution/few_channels.h"

#include <algorithm>

#include "tensorflow_plugin/backends/cpu/cost.h"
#include "tensorflow_plugin/backends/cpu/matmul/panels.h"
#include "tensorflow_plugin/backends/cpu/scratch.h"
#include "tensorflow_plugin/backends/cpu/simd/isa.h"
#include "tensorflow_plugin/backends/host_runtime/spatial.h"
#include "tensorflow_plugin/primitives/types.h"

namespace xpu::cpu {
namespace {

using host_runtime::ThreadTeam;

constexpr int64_t kMostChannels = 4;
// Elements of the filter, which stays in a core's cache, and terms of a sum.
constexpr int64_t kLargestFilter = 1 << 16, kLongestSum = 2048;
// Pixels of the output that are computed together.
constexpr int64_t kPixels = 512;
// Multiplications worth handing to another thread.
constexpr int64_t kGrainWork = 1 << 17;

// Pixels of the output in blocks of some rows and columns.
class Blocks {
 public:
  Blocks(const ConvolutionDesc& d, const Args& args)
      : d_(d),
        x_(static_cast<const float*>(args.in[0])),
        y_(static_cast<float*>(args.out[0])),
        cols_(std::min(d.output[1], kPixels)),
        rows_(std::min(d.output[0], std::max<int64_t>(1, kPixels / cols_))),
        down_(Count(d.output[0], rows_)),
        across_(Count(d.output[1], cols_)) {}

  int64_t count() const { return d_.batch * down_ * across_; }
  int64_t pixels() const { return rows_ * cols_; }

  void Run(int64_t block, const PanelMatrix& filter, const ChainEpilogue* chain, const FusedEpilogue* on_rows) const {
    const int64_t image = block / (down_ * across_);
    const int64_t row = block / across_ % down_ * rows_, col = block % across_ * cols_;
    const int64_t rows = std::min(rows_, d_.output[0] - row), cols = std::min(cols_, d_.output[1] - col);
    ScratchFrame frame;
    const Window window =
        WindowOf(image, {row * d_.stride[0] - d_.pad_before[0], (rows - 1) * d_.stride[0] + d_.filter[0]},
                 {col * d_.stride[1] - d_.pad_before[1], (cols - 1) * d_.stride[1] + d_.filter[1]}, &frame);
    const RowTerms terms{d_.filter[0], d_.filter[1] * d_.in_channels, window.stride};
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t to = (((image * d_.output[0]) + row + i) * d_.output[1] + col) * d_.out_channels;
      filter.Multiply(cols, terms, window.data + i * d_.stride[0] * window.stride, d_.stride[1] * d_.in_channels,
                      y_ + to, to, chain);
      if (on_rows != nullptr) on_rows->Run(to, cols * d_.out_channels);
    }
  }

 private:
  struct Extent {
    int64_t begin, size;  // of an image's rows or columns, padding included
  };
  struct Window {
    const float* data;
    int64_t stride;  // from row to row
  };

  // Part of an image. Where some of it is padding, that is a copy.
  Window WindowOf(int64_t image, Extent rows, Extent cols, ScratchFrame* frame) const {
    const int64_t channels = d_.in_channels, stride = d_.input[1] * channels;
    const float* const from = x_ + image * d_.input[0] * stride;
    const auto is_inside = [](const Extent& e, int64_t all) { return e.begin >= 0 && e.begin + e.size <= all; };
    if (is_inside(rows, d_.input[0]) && is_inside(cols, d_.input[1])) {
      return {from + rows.begin * stride + cols.begin * channels, stride};
    }
    const int64_t width = cols.size * channels;
    const int64_t first = std::max<int64_t>(cols.begin, 0), last = std::min(cols.begin + cols.size, d_.input[1]);
    const int64_t before = (first - cols.begin) * channels, inside = (last - first) * channels;
    float* const copy = frame->Get<float>(rows.size * width);
    float* to = copy;
    for (int64_t row = rows.begin; row < rows.begin + rows.size; ++row, to += width) {
      if (row < 0 || row >= d_.input[0] || inside <= 0) {
        std::fill_n(to, width, 0.0f);
        continue;
      }
      std::fill_n(to, before, 0.0f);
      std::copy_n(from + row * stride + first * channels, inside, to + before);
      std::fill_n(to + before + inside, width - before - inside, 0.0f);
    }
    return {copy, width};
  }

  const ConvolutionDesc& d_;
  const float* const x_;
  float* const y_;
  const int64_t cols_, rows_, down_, across_;
};

int64_t TermsOf(const ConvolutionDesc& d) { return host_runtime::Pixels(d.filter) * d.in_channels; }

}  // namespace

bool HasFewChannels(const ConvolutionDesc& d, const Machine& machine) {
  return d.direction == Direction::kForward && d.type == DType::kFloat && d.order == ChannelOrder::kLast &&
         d.spatial_rank == 2 && d.groups == 1 && d.dilation[0] == 1 && d.dilation[1] == 1 &&
         d.in_channels <= kMostChannels && d.out_channels >= 4 && TermsOf(d) <= kLongestSum &&
         TermsOf(d) * d.out_channels <= kLargestFilter && machine.isa != Isa::kBaseline;
}

void RunFewChannels(const ConvolutionDesc& d, const Args& args, const ThreadTeam& team,
                    std::optional<FusedEpilogue>* epilogue) {
  ScratchFrame frame;
  const PanelMatrix filter(TermsOf(d), d.out_channels, static_cast<const float*>(args.in[1]), &frame);
  const ChainEpilogue* const chain = *epilogue ? (*epilogue)->InRegisters(d.out_channels) : nullptr;
  const FusedEpilogue* const on_rows = *epilogue && chain == nullptr ? &**epilogue : nullptr;
  const Blocks blocks(d, args);
  const int64_t work = blocks.pixels() * TermsOf(d) * d.out_channels;
  team.ParallelFor(blocks.count(), std::max<int64_t>(1, kGrainWork / work), [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) blocks.Run(block, filter, chain, on_rows);
  });
  epilogue->reset();
}

}  // namespace xpu::cpu

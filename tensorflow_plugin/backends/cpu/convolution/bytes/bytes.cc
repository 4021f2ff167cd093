#include "tensorflow_plugin/backends/cpu/convolution/bytes/bytes.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "tensorflow_plugin/backends/cpu/convolution/bytes/byte_sums.h"
#include "tensorflow_plugin/backends/cpu/convolution/sizes.h"
#include "tensorflow_plugin/backends/cpu/cost.h"
#include "tensorflow_plugin/backends/cpu/elementwise/quantized_chain.h"
#include "tensorflow_plugin/backends/cpu/kernels.h"
#include "tensorflow_plugin/backends/cpu/scratch.h"
#include "tensorflow_plugin/backends/cpu/simd/isa.h"
#include "tensorflow_plugin/backends/host_runtime/kernel_span.h"
#include "tensorflow_plugin/backends/host_runtime/spatial.h"
#include "tensorflow_plugin/backends/plain/loops.h"
#include "tensorflow_plugin/trace/trace_events.h"

namespace xpu::cpu {
namespace {

using host_runtime::Pixels;
using host_runtime::ThreadTeam;

// Stores sums, or what their epilogue makes of them.
class Finish {
 public:
  Finish(const ConvolutionDesc& d, const Args& args, ScratchFrame* frame) : d_(d), args_(args) {
    if (!HasEpilogue(d)) {
      all_ = static_cast<int32_t*>(args.out[0]);
      return;
    }
    command_.emplace(plain::EpilogueOf(d, args));
    has_chain_ = MakeQuantizedChain(d.epilogue, command_->args, frame, &chain_) &&
                 (chain_.columns == 0 || chain_.columns == d.out_channels);
    if (!has_chain_) all_ = frame->Get<int32_t>(OutputSize(d));
    if (trace::On()) host_runtime::KernelSpan::SetEpilogue(has_chain_ ? "in registers" : "afterwards");
  }

  void Take(const SumsBlock& block) const {
    if (has_chain_) {
      ApplyQuantizedChain(chain_, SumsInRows{block.sums, block.ld, block.compensation},
                          {block.pixel, block.pixels, block.first, block.count, d_.out_channels});
      return;
    }
    for (int64_t i = 0; i < block.pixels; ++i) {
      const int32_t* const from = block.sums + i * block.ld;
      int32_t* const to = all_ + (block.pixel + i) * d_.out_channels + block.first;
      for (int64_t j = 0; j < block.count; ++j) {
        const uint32_t add = block.compensation != nullptr ? static_cast<uint32_t>(block.compensation[j]) : 0;
        to[j] = static_cast<int32_t>(static_cast<uint32_t>(from[j]) + add);
      }
    }
  }

  // Null if there is none.
  const QuantizedChain* chain() const { return has_chain_ ? &chain_ : nullptr; }

  Status RunRest(const ThreadTeam& team) {
    if (!command_ || has_chain_) return OkStatus();
    command_->args.in[0] = all_;
    return Kernels().Run(command_->desc, command_->args, team);
  }

 private:
  const ConvolutionDesc& d_;
  const Args& args_;
  std::optional<plain::EpilogueCommand> command_;
  bool has_chain_ = false;
  QuantizedChain chain_;
  int32_t* all_ = nullptr;
};

// Takes from sums what the zero points of the filter add to them.
class FilterZeroPoints {
 public:
  FilterZeroPoints(const ConvolutionDesc& d, const Args& args)
      : d_(d),
        x_(static_cast<const uint8_t*>(args.in[0])),
        x_zero_point_(*static_cast<const uint32_t*>(args.in[2])),
        zero_points_(static_cast<const uint32_t*>(args.in[3])),
        exist_(std::any_of(zero_points_, zero_points_ + d_.out_channels,
                           [](uint32_t zero_point) { return zero_point != 0; })) {}

  bool exist() const { return exist_; }

  void TakeFrom(const SumsBlock& block) const {
    if (!exist_) return;
    for (int64_t i = 0; i < block.pixels; ++i) TakeFromRow(block, block.pixel + i, block.sums + i * block.ld);
  }

 private:
  void TakeFromRow(const SumsBlock& block, int64_t pixel, int32_t* sums) const {
    const int64_t depth = d_.in_channels / d_.groups, of_group = d_.out_channels / d_.groups;
    const uint8_t* const image = x_ + pixel / Pixels(d_.output) * Pixels(d_.input) * d_.in_channels;
    for (int64_t j = 0; j < block.count;) {
      const int64_t group = (block.first + j) / of_group;
      uint32_t sum = 0;
      host_runtime::ForEachTap(d_, pixel % Pixels(d_.output), [&](int64_t, int64_t met) {
        if (met < 0) return;
        const uint8_t* const from = image + met * d_.in_channels + group * depth;
        for (int64_t channel = 0; channel < depth; ++channel) sum += from[channel] - x_zero_point_;
      });
      for (; j < block.count && (block.first + j) / of_group == group; ++j) {
        sums[j] = static_cast<int32_t>(static_cast<uint32_t>(sums[j]) - sum * zero_points_[block.first + j]);
      }
    }
  }

  const ConvolutionDesc& d_;
  const uint8_t* const x_;
  const uint32_t x_zero_point_;
  const uint32_t* const zero_points_;
  const bool exist_;
};

void RunPlain(const ConvolutionDesc& d, const Args& args, const ThreadTeam& team, const Finish& finish) {
  const int64_t pixels = d.batch * Pixels(d.output);
  const int64_t grain = std::max<int64_t>(1, kMostSums / d.out_channels);
  team.ParallelFor(Count(pixels, grain), 1, [&](int64_t begin, int64_t end) {
    ScratchFrame frame;
    auto* const sums = frame.Get<int32_t>(grain * d.out_channels);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i * grain, count = std::min(grain, pixels - first);
      plain::ConvolveBytes(d, args, first, first + count, sums);
      finish.Take({sums, d.out_channels, nullptr, first, count, 0, d.out_channels});
    }
  });
}

// Null if the processor has no fast way.
std::unique_ptr<ByteSums> FindSums(const ConvolutionDesc& d) {
  if (OutputSize(d) == 0 || InputSize(d) == 0 || FilterSize(d) == 0) return nullptr;
#if defined(__x86_64__)
  for (const auto find : {&DepthwiseQuadSums, &QuadSums, &WordSums}) {
    if (std::unique_ptr<ByteSums> way = find(d)) return way;
  }
#endif
  return nullptr;
}

}  // namespace

bool HasBytes(const ConvolutionDesc& d) { return FindSums(d) != nullptr; }

int64_t BytesFilterBytes(const ConvolutionDesc& d) {
  const std::unique_ptr<ByteSums> way = FindSums(d);
  return way == nullptr ? 0 : way->PackedBytes();
}

Status PackBytesFilter(const ConvolutionDesc& d, const void* filter, void* packed) {
  FindSums(d)->Pack(static_cast<const int8_t*>(filter), packed);
  return OkStatus();
}

Status RunBytes(const ConvolutionDesc& d, const Args& args, const ThreadTeam& team) {
  if (OutputSize(d) == 0) return OkStatus();
  ScratchFrame frame;
  Finish finish(d, args, &frame);
  const std::unique_ptr<ByteSums> way = FindSums(d);
  if (way == nullptr || !way->Accepts(*static_cast<const int32_t*>(args.in[2]))) {
    RunPlain(d, args, team, finish);
    return finish.RunRest(team);
  }
  const void* packed = d.packed_filter_bytes > 0 ? args.in[PackedFilterInput(d)] : nullptr;
  if (packed == nullptr) {
    void* const memory = frame.Bytes(way->PackedBytes());
    way->Pack(static_cast<const int8_t*>(args.in[1]), memory);
    packed = memory;
  }
  const FilterZeroPoints zero_points(d, args);
  const auto take = [&](const SumsBlock& block) {
    zero_points.TakeFrom(block);
    finish.Take(block);
  };
  way->Run(args, packed, team, {take, zero_points.exist() ? nullptr : finish.chain()});
  return finish.RunRest(team);
}

}  // namespace xpu::cpu

#include "tensorflow_plugin/backends/cpu/convolution/bytes.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

#include "tensorflow_plugin/backends/cpu/convolution/byte_parts.h"
#include "tensorflow_plugin/backends/cpu/convolution/byte_sums.h"
#include "tensorflow_plugin/backends/cpu/convolution/onednn_plans.h"
#include "tensorflow_plugin/backends/cpu/convolution/sizes.h"
#include "tensorflow_plugin/backends/cpu/elementwise/chain_epilogue.h"
#include "tensorflow_plugin/backends/cpu/kernels.h"
#include "tensorflow_plugin/backends/cpu/scratch.h"
#include "tensorflow_plugin/backends/cpu/simd/isa.h"
#include "tensorflow_plugin/backends/host_runtime/kernel_span.h"
#include "tensorflow_plugin/backends/host_runtime/shared_status.h"
#include "tensorflow_plugin/backends/host_runtime/spatial.h"
#include "tensorflow_plugin/backends/plain/loops.h"
#include "tensorflow_plugin/trace/trace_events.h"

namespace xpu::cpu {
namespace {

using host_runtime::Cells;
using host_runtime::ThreadTeam;

// Zeros beyond this are possible, but stand for no byte.
constexpr int64_t kMostZero = 1 << 14;

// Stores sums, or what their epilogue makes of them.
class Finish {
 public:
  Finish(const ConvolutionDesc& d, const Args& args, ScratchFrame* frame) : d_(d), args_(args) {
    if (!HasEpilogue(d)) {
      all_ = static_cast<int32_t*>(args.out[0]);
      return;
    }
    command_.emplace(plain::EpilogueOf(d, args));
    has_chain_ = MakeIntegerChain(d.epilogue, command_->args, frame, &chain_) &&
                 (chain_.columns == 0 || chain_.columns == d.out_channels);
    if (!has_chain_) all_ = frame->Get<int32_t>(OutputSize(d));
    if (trace::On()) host_runtime::KernelSpan::SetEpilogue(has_chain_ ? "in registers" : "afterwards");
  }

  // Where all sums are to lie; null if blocks of them are given to Store.
  int32_t* all() const { return all_; }

  // A block of sums, to which `shift` is added by column; null: nothing.
  void Store(const int32_t* sums, const int32_t* shift, int64_t pixel, int64_t pixels, int64_t first,
             int64_t count) const {
    if (has_chain_) {
      ApplyIntegerChain(chain_, sums, count, shift, pixel, pixels, first, count, d_.out_channels);
      return;
    }
    for (int64_t i = 0; i < pixels; ++i) {
      int32_t* const to = all_ + (pixel + i) * d_.out_channels + first;
      for (int64_t j = 0; j < count; ++j) {
        const uint32_t add = shift != nullptr ? static_cast<uint32_t>(shift[j]) : 0;
        to[j] = static_cast<int32_t>(static_cast<uint32_t>(sums[i * count + j]) + add);
      }
    }
  }

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
  IntegerChain chain_;
  int32_t* all_ = nullptr;
};

// Takes from sums of products what the zeros add to them.
class Zeros {
 public:
  // `filter_sums`: null if the zero has been taken from x.
  Zeros(const ByteParts& parts, const Args& args, const int32_t* filter_sums, ScratchFrame* frame)
      : d_(parts.d),
        x_(static_cast<const uint8_t*>(args.in[0])),
        zero_(*static_cast<const uint32_t*>(args.in[2])),
        zeros_(static_cast<const uint32_t*>(args.in[3])),
        filter_sums_(filter_sums),
        taps_(Cells(d_.filter)) {
    has_zeros_ = std::any_of(zeros_, zeros_ + d_.out_channels, [](uint32_t zero) { return zero != 0; });
    for (int i = 0; i < ConvolutionDesc::kMaxSpatial; ++i) {
      has_padding_ = has_padding_ || d_.pad_before[i] > 0 || End(i, d_.output[i] - 1) > d_.input[i];
    }
    if (zero_ == 0 || filter_sums == nullptr) return;
    shift_ = frame->Get<int32_t>(d_.out_channels);
    for (int64_t i = 0; i < d_.out_channels; ++i) {
      uint32_t sum = 0;
      for (int64_t tap = 0; tap < taps_; ++tap) sum += static_cast<uint32_t>(filter_sums_[tap * d_.out_channels + i]);
      shift_[i] = static_cast<int32_t>(0 - sum * zero_);
    }
  }

  // To be added to all sums of a block, by column.
  const int32_t* shift(int64_t first) const { return shift_ == nullptr ? nullptr : shift_ + first; }

  // The rest.
  void Apply(const BytePart& part, int32_t* sums) const {
    const bool gives_back = shift_ != nullptr && has_padding_;
    if (!gives_back && !has_zeros_) return;
    auto* const rows = reinterpret_cast<uint32_t*>(sums) - part.pixel * part.count;
    const int64_t end = part.pixel + part.pixels;
    if (has_zeros_) {
      for (int64_t pixel = part.pixel; pixel < end; ++pixel) {
        TakeFilterZeros(pixel, part, rows + pixel * part.count);
      }
    }
    if (!gives_back) return;
    // Parts are whole rows of pixels, of which those in the middle may have windows that are inside.
    const int last_axis = d_.spatial_rank - 1;
    const int64_t length = d_.output[last_axis];
    int64_t first = 0, last = length;
    while (first < length && !IsInside(last_axis, first)) ++first;
    while (last > first && !IsInside(last_axis, last - 1)) --last;
    for (int64_t begin = part.pixel; begin < end; begin += length) {
      bool inside = first < last;
      for (int64_t axis = last_axis - 1, row = begin / length; axis >= 0; row /= d_.output[axis--]) {
        inside = inside && IsInside(static_cast<int>(axis), row % d_.output[axis]);
      }
      for (int64_t i = 0; i < length; ++i) {
        if (inside && i == first) i = last;
        if (i < length) GiveBack(begin + i, part, rows + (begin + i) * part.count);
      }
    }
  }

 private:
  // The cells that a window of axis i covers end before this one.
  int64_t End(int i, int64_t output) const {
    return output * d_.stride[i] - d_.pad_before[i] + (d_.filter[i] - 1) * d_.dilation[i] + 1;
  }
  bool IsInside(int i, int64_t output) const {
    return output * d_.stride[i] >= d_.pad_before[i] && End(i, output) <= d_.input[i];
  }
  // The shift is for all cells of the filter. Those in the padding add nothing.
  void GiveBack(int64_t pixel, const BytePart& part, uint32_t* row) const {
    host_runtime::ForEachTap(d_, pixel % Cells(d_.output), [&](int64_t tap, int64_t cell) {
      if (cell >= 0) return;
      const int32_t* const of_tap = filter_sums_ + tap * d_.out_channels + part.first;
      for (int64_t j = 0; j < part.count; ++j) row[j] += static_cast<uint32_t>(of_tap[j]) * zero_;
    });
  }
  void TakeFilterZeros(int64_t pixel, const BytePart& part, uint32_t* row) const {
    const int64_t depth = d_.in_channels / d_.groups, of_group = d_.out_channels / d_.groups;
    const uint8_t* const image = x_ + pixel / Cells(d_.output) * Cells(d_.input) * d_.in_channels;
    for (int64_t j = 0; j < part.count;) {
      const int64_t group = (part.first + j) / of_group;
      uint32_t sum = 0;
      host_runtime::ForEachTap(d_, pixel % Cells(d_.output), [&](int64_t, int64_t cell) {
        if (cell < 0) return;
        const uint8_t* const from = image + cell * d_.in_channels + group * depth;
        for (int64_t channel = 0; channel < depth; ++channel) sum += from[channel] - zero_;
      });
      for (; j < part.count && (part.first + j) / of_group == group; ++j) row[j] -= sum * zeros_[part.first + j];
    }
  }

  const ConvolutionDesc& d_;
  const uint8_t* const x_;
  const uint32_t zero_;
  const uint32_t* const zeros_;
  const int32_t* const filter_sums_;
  const int64_t taps_;
  bool has_zeros_ = false, has_padding_ = false;
  int32_t* shift_ = nullptr;
};

void RunPlain(const ConvolutionDesc& d, const Args& args, const ThreadTeam& team, const Finish& finish) {
  const int64_t pixels = d.batch * Cells(d.output);
  const int64_t grain = std::max<int64_t>(1, ByteParts::kMostSums / d.out_channels);
  team.ParallelFor((pixels + grain - 1) / grain, 1, [&](int64_t begin, int64_t end) {
    ScratchFrame frame;
    auto* const sums = frame.Get<int32_t>(grain * d.out_channels);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i * grain, count = std::min(grain, pixels - first);
      plain::ConvolveBytes(d, args, first, first + count, sums);
      finish.Store(sums, nullptr, first, count, 0, d.out_channels);
    }
  });
}

bool HasElements(const ConvolutionDesc& d) { return OutputSize(d) > 0 && InputSize(d) > 0 && FilterSize(d) > 0; }

// Null if the processor has no fast way.
std::unique_ptr<ByteSums> FindSums(const ByteParts& parts) {
#if defined(__x86_64__)
  return ActiveIsa() == Isa::kAvx512Vnni ? OnednnSums(parts) : WordSums(parts);
#else
  return nullptr;
#endif
}

}  // namespace

bool HasBytes(const ConvolutionDesc& d) { return BytesFilterBytes(d) > 0; }

int64_t BytesFilterBytes(const ConvolutionDesc& d) {
  if (!HasElements(d)) return 0;
  const ByteParts parts(d);
  const std::unique_ptr<ByteSums> way = FindSums(parts);
  return way == nullptr ? 0 : way->PackedBytes();
}

Status PackBytesFilter(const ConvolutionDesc& d, const void* filter, void* packed) {
  const ByteParts parts(d);
  return FindSums(parts)->Pack(static_cast<const int8_t*>(filter), packed);
}

Status RunBytes(const ConvolutionDesc& d, const Args& args, const ThreadTeam& team) {
  if (OutputSize(d) == 0) return OkStatus();
  ScratchFrame frame;
  Finish finish(d, args, &frame);
  const ByteParts parts(d);
  const std::unique_ptr<ByteSums> way = HasElements(d) ? FindSums(parts) : nullptr;
  const int64_t zero = *static_cast<const int32_t*>(args.in[2]);
  if (way == nullptr || std::abs(zero) > kMostZero) {
    RunPlain(d, args, team, finish);
    return finish.RunRest(team);
  }
  const void* packed = d.packed_filter_bytes > 0 ? args.in[PackedFilterInput(d)] : nullptr;
  if (packed == nullptr) {
    void* const memory = frame.Bytes(way->PackedBytes());
    XPU_RETURN_IF_ERROR(way->Pack(static_cast<const int8_t*>(args.in[1]), memory));
    packed = memory;
  }
  const Zeros zeros(parts, args, way->FilterSums(packed), &frame);
  host_runtime::SharedStatus status;
  const auto run = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const BytePart part = parts.At(i);
      ScratchFrame of_part;
      auto* const sums = of_part.Get<int32_t>(part.pixels * part.count);
      if (part.of.desc.input[0] <= 0) {  // nothing but padding
        std::memset(sums, 0, part.pixels * part.count * sizeof(int32_t));
      } else {
        const Status ran = way->Multiply(part, args, packed, sums);
        status.Update(ran);
        if (!ran.ok()) return;
      }
      zeros.Apply(part, sums);
      finish.Store(sums, zeros.shift(part.first), part.pixel, part.pixels, part.first, part.count);
    }
  };
  (parts.IsShared() ? team : Alone()).ParallelFor(parts.parts, 1, run);
  XPU_RETURN_IF_ERROR(status.get());
  return finish.RunRest(team);
}

}  // namespace xpu::cpu

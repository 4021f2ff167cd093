#include "tensorflow_plugin/backends/cpu/convolution/bytes.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "tensorflow_plugin/backends/cpu/convolution/onednn_plans.h"
#include "tensorflow_plugin/backends/cpu/convolution/pointwise.h"
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

// Sums of a part: they stay in a core's own cache.
constexpr int64_t kSumsOfPart = 1 << 15;
// A filter of more bytes is divided by output channels, into blocks of a multiple of so many.
constexpr int64_t kBytesOfBlock = 1 << 18, kChannelsOfBlock = 64;
// Multiplications below which a convolution stays on the calling thread, and the parts that others have at least.
constexpr int64_t kShared = 1 << 20, kFewestParts = 4;

int64_t RoundUp(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

// The division of a convolution, which depends on its descriptor alone.
class Division {
 public:
  explicit Division(const ConvolutionDesc& given) : d(given) {
    d.direction = Direction::kForward;
    d.epilogue = {};
    d.packed_filter_bytes = 0;
    if (IsPointwise(d)) {  // all pixels of all images lie in a row
      const int64_t pixels = d.batch * Cells(d.input);
      d.batch = 1;
      d.spatial_rank = 1;
      std::fill_n(d.input, ConvolutionDesc::kMaxSpatial, 1);
      std::fill_n(d.output, ConvolutionDesc::kMaxSpatial, 1);
      d.input[0] = d.output[0] = pixels;
    }
    const int64_t bytes = FilterSize(d);
    channels = d.out_channels;
    if (d.groups == 1 && bytes > kBytesOfBlock) {
      const int64_t blocks_wanted = (bytes + kBytesOfBlock - 1) / kBytesOfBlock;
      channels = std::min(channels, RoundUp((channels + blocks_wanted - 1) / blocks_wanted, kChannelsOfBlock));
    }
    blocks = (d.out_channels + channels - 1) / channels;
    row_pixels = d.output[1] * d.output[2];
    const int64_t of_row = std::max<int64_t>(1, row_pixels * channels);
    rows = std::clamp<int64_t>(kSumsOfPart / of_row, 1, d.output[0]);
    if (IsShared()) {
      const int64_t parts_wanted = (kFewestParts + blocks * d.batch - 1) / (blocks * d.batch);
      rows = std::min(rows, (d.output[0] + parts_wanted - 1) / parts_wanted);
    }
    if (rows == d.output[0]) {
      images = std::clamp<int64_t>(kSumsOfPart / (of_row * rows), 1, d.batch);
      if (IsShared()) {
        const int64_t parts_wanted = (kFewestParts + blocks - 1) / blocks;
        images = std::min(images, std::max<int64_t>(1, (d.batch + parts_wanted - 1) / parts_wanted));
      }
    }
    stacks = (d.output[0] + rows - 1) / rows;
    image_groups = (d.batch + images - 1) / images;
    parts = blocks * stacks * image_groups;
  }

  bool IsShared() const { return OutputSize(d) * (d.in_channels / d.groups) * Cells(d.filter) >= kShared; }

  struct Part {
    ConvolutionPart of;
    int64_t pixel, pixels;        // of the results, from the first one on
    int64_t block, first, count;  // output channels
  };
  // The blocks of a filter come one after the other, so that it is read once.
  Part At(int64_t i) const {
    Part part;
    const int64_t row = i % stacks * rows, image = i / stacks % image_groups * images;
    part.block = i / stacks / image_groups;
    part.first = part.block * channels;
    part.count = std::min(channels, d.out_channels - part.first);
    const int64_t rows_here = std::min(rows, d.output[0] - row), images_here = std::min(images, d.batch - image);
    part.of = PartOf(d, image, images_here, row, rows_here);
    part.of.desc.out_channels = part.count;
    part.pixel = (image * d.output[0] + row) * row_pixels;
    part.pixels = images_here * rows_here * row_pixels;
    return part;
  }

  ConvolutionDesc d;
  int64_t channels = 0, blocks = 1;              // of a block of the filter, and how many there are
  int64_t row_pixels = 0, rows = 1, images = 1;  // of a part
  int64_t stacks = 1, image_groups = 1, parts = 1;
};

// Where a packed filter's blocks are, and the sums over input channels by cell of the filter and output channel.
class Packing {
 public:
  explicit Packing(const Division& division) : division_(division) {
    for (int64_t block = 0; block < division.blocks; ++block) {
      // Like a part in the middle: those at the edges have other paddings.
      const int64_t parts_of_block = division.parts / division.blocks;
      const Division::Part part = division.At(block * parts_of_block + parts_of_block / 2);
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
    bytes_ += Cells(division.d.filter) * division.d.out_channels * static_cast<int64_t>(sizeof(int32_t));
  }

  bool usable() const { return usable_; }
  int64_t bytes() const { return bytes_; }
  const dnnl::memory::desc& layout(int64_t block) const { return layouts_[block]->desc(1); }
  const void* filter(const void* packed, int64_t block) const {
    return static_cast<const char*>(packed) + offsets_[block];
  }
  const int32_t* sums(const void* packed) const {
    return reinterpret_cast<const int32_t*>(static_cast<const char*>(packed) + sums_offset_);
  }

  Status Pack(const int8_t* filter, void* packed) const {
    const ConvolutionDesc& d = division_.d;
    const int64_t taps = Cells(d.filter), depth = d.in_channels / d.groups;
    ScratchFrame frame;
    auto* const dense = frame.Get<int8_t>(taps * depth * division_.channels);
    for (int64_t block = 0; block < division_.blocks; ++block) {
      const int64_t first = block * division_.channels, count = std::min(division_.channels, d.out_channels - first);
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

 private:
  const Division& division_;
  bool usable_ = true;
  int64_t bytes_ = 0, sums_offset_ = 0;
  std::vector<std::shared_ptr<OnednnPlan>> layouts_;
  std::vector<int64_t> offsets_;
};

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
  Zeros(const Division& division, const Args& args, const int32_t* filter_sums, ScratchFrame* frame)
      : d_(division.d),
        x_(static_cast<const uint8_t*>(args.in[0])),
        zero_(*static_cast<const uint32_t*>(args.in[2])),
        zeros_(static_cast<const uint32_t*>(args.in[3])),
        filter_sums_(filter_sums),
        taps_(Cells(d_.filter)) {
    has_zeros_ = std::any_of(zeros_, zeros_ + d_.out_channels, [](uint32_t zero) { return zero != 0; });
    for (int i = 0; i < ConvolutionDesc::kMaxSpatial; ++i) {
      has_padding_ = has_padding_ || d_.pad_before[i] > 0 || End(i, d_.output[i] - 1) > d_.input[i];
    }
    if (zero_ == 0) return;
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
  void Apply(const Division::Part& part, int32_t* sums) const {
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
  void GiveBack(int64_t pixel, const Division::Part& part, uint32_t* row) const {
    host_runtime::ForEachTap(d_, pixel % Cells(d_.output), [&](int64_t tap, int64_t cell) {
      if (cell >= 0) return;
      const int32_t* const of_tap = filter_sums_ + tap * d_.out_channels + part.first;
      for (int64_t j = 0; j < part.count; ++j) row[j] += static_cast<uint32_t>(of_tap[j]) * zero_;
    });
  }
  void TakeFilterZeros(int64_t pixel, const Division::Part& part, uint32_t* row) const {
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

// The sums of a part, of x and the filter as they are.
Status Multiply(const Division& division, const Packing& packing, const Division::Part& part, const Args& args,
                const void* packed, int32_t* sums) {
  if (part.of.desc.input[0] <= 0) {  // nothing but padding
    std::memset(sums, 0, part.pixels * part.count * sizeof(int32_t));
    return OkStatus();
  }
  std::shared_ptr<OnednnPlan> plan;
  XPU_RETURN_IF_ERROR(FindPlan(part.of.desc, FilterUse::kPacked, packing.layout(part.block), Alone(), &plan));
  if (plan->usable()) {
    const auto* const x = static_cast<const uint8_t*>(args.in[0]) + part.of.x;
    return plan->Run({x, packing.filter(packed, part.block), sums}, Alone());
  }
  // A part at the edge may have another form.
  const int64_t channels = division.d.out_channels;
  ScratchFrame frame;
  const int32_t zero = 0;
  auto *const zeros = frame.Get<int32_t>(channels), *const all = frame.Get<int32_t>(part.pixels * channels);
  std::memset(zeros, 0, channels * sizeof(int32_t));
  Args at = args;
  at.in[2] = &zero;
  at.in[3] = zeros;
  plain::ConvolveBytes(division.d, at, part.pixel, part.pixel + part.pixels, all);
  for (int64_t i = 0; i < part.pixels; ++i) {
    std::memcpy(sums + i * part.count, all + i * channels + part.first, part.count * sizeof(int32_t));
  }
  return OkStatus();
}

void RunPlain(const ConvolutionDesc& d, const Args& args, const ThreadTeam& team, const Finish& finish) {
  const int64_t pixels = d.batch * Cells(d.output);
  const int64_t grain = std::max<int64_t>(1, kSumsOfPart / d.out_channels);
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

}  // namespace

bool HasBytes(const ConvolutionDesc& d) {
  if (ActiveIsa() != Isa::kAvx512Vnni || !HasElements(d)) return false;
  const Division division(d);
  return Packing(division).usable();
}

int64_t BytesFilterBytes(const ConvolutionDesc& d) {
  if (ActiveIsa() != Isa::kAvx512Vnni || !HasElements(d)) return 0;
  const Division division(d);
  const Packing packing(division);
  return packing.usable() ? packing.bytes() : 0;
}

Status PackBytesFilter(const ConvolutionDesc& d, const void* filter, void* packed) {
  const Division division(d);
  return Packing(division).Pack(static_cast<const int8_t*>(filter), packed);
}

Status RunBytes(const ConvolutionDesc& d, const Args& args, const ThreadTeam& team) {
  if (OutputSize(d) == 0) return OkStatus();
  ScratchFrame frame;
  Finish finish(d, args, &frame);
  std::optional<Division> division;
  std::optional<Packing> packing;
  if (ActiveIsa() == Isa::kAvx512Vnni && HasElements(d)) packing.emplace(division.emplace(d));
  if (!packing || !packing->usable()) {
    RunPlain(d, args, team, finish);
    return finish.RunRest(team);
  }
  const void* packed = d.packed_filter_bytes > 0 ? args.in[PackedFilterInput(d)] : nullptr;
  if (packed == nullptr) {
    void* const memory = frame.Bytes(packing->bytes());
    XPU_RETURN_IF_ERROR(packing->Pack(static_cast<const int8_t*>(args.in[1]), memory));
    packed = memory;
  }
  const Zeros zeros(*division, args, packing->sums(packed), &frame);
  host_runtime::SharedStatus status;
  const auto run = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Division::Part part = division->At(i);
      ScratchFrame of_part;
      auto* const sums = of_part.Get<int32_t>(part.pixels * part.count);
      const Status ran = Multiply(*division, *packing, part, args, packed, sums);
      status.Update(ran);
      if (!ran.ok()) return;
      zeros.Apply(part, sums);
      finish.Store(sums, zeros.shift(part.first), part.pixel, part.pixels, part.first, part.count);
    }
  };
  (division->IsShared() ? team : Alone()).ParallelFor(division->parts, 1, run);
  XPU_RETURN_IF_ERROR(status.get());
  return finish.RunRest(team);
}

}  // namespace xpu::cpu

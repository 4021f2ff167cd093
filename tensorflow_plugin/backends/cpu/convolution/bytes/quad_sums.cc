#if defined(__x86_64__)
#include <algorithm>
#include <cstring>
#include <memory>

#include "tensorflow_plugin/backends/cpu/convolution/bytes/byte_products.h"
#include "tensorflow_plugin/backends/cpu/convolution/bytes/byte_windows.h"
#include "tensorflow_plugin/backends/cpu/convolution/bytes/compensated_sums.h"
#include "tensorflow_plugin/backends/cpu/convolution/sizes.h"
#include "tensorflow_plugin/backends/cpu/cost.h"
#include "tensorflow_plugin/backends/cpu/scratch.h"

namespace xpu::cpu {
namespace {

using host_runtime::ThreadTeam;

// The filter is read in panels of some columns, which stay in a core's own cache.
constexpr int64_t kPanelBytes = 1 << 18;
// Windows of a block.
constexpr int64_t kBlockWindows = kBlockTiles * kTileRows;

class ByQuads final : public CompensatedSums {
 public:
  explicit ByQuads(const ConvolutionDesc& d)
      : CompensatedSums(d),
        out_channels_(d.out_channels),
        groups_(d.groups),
        columns_(d.out_channels / d.groups),
        input_bytes_(InputSize(d)),
        windows_(d, kTileRows, ByteTerms()),
        terms_(windows_.runs() * windows_.run_terms()),
        matrix_bytes_(RoundUp(columns_, kByteGroup) * terms_) {}

  void Run(const Args& args, const void* packed, const ThreadTeam& team, const SumsEpilogue& epilogue) const override {
    const auto* const x = static_cast<const uint8_t*>(args.in[0]);
    const int32_t zero_point = *static_cast<const int32_t*>(args.in[2]);
    const auto* const matrices = static_cast<const int8_t*>(packed);
    ScratchFrame frame;
    const int32_t* const compensation = Compensation(packed, zero_point, &frame);
    const int64_t at_once = windows_.planes_at_once();
    uint8_t* const copy = windows_.is_copied() ? frame.Get<uint8_t>(windows_.CopyBytes(at_once)) : nullptr;
    for (int64_t plane = 0; plane < windows_.planes(); plane += at_once) {
      const int64_t planes = std::min(at_once, windows_.planes() - plane);
      if (copy != nullptr) windows_.Copy(x, zero_point, plane, planes, team, copy);
      Multiply({copy == nullptr ? x : copy, plane, planes}, matrices, compensation, team, epilogue);
    }
  }

 protected:
  // The matrices of all groups.
  int64_t FilterBytes() const override { return groups_ * matrix_bytes_; }

  void PackFilter(const int8_t* filter, int8_t* to) const override {
    const int64_t length = windows_.run_length();
    for (int64_t group = 0; group < groups_; ++group) {
      for (int64_t column = 0; column < columns_; column += kByteGroup) {
        const int64_t columns = std::min(kByteGroup, columns_ - column);
        for (int64_t run = 0; run < windows_.runs(); ++run) {
          const int8_t* const from = filter + run * length * out_channels_ + group * columns_ + column;
          for (int64_t term = 0; term < windows_.run_terms(); term += 4) {
            for (int64_t j = 0; j < kByteGroup; ++j) {
              for (int64_t i = term; i < term + 4; ++i) {
                *to++ = i < length && j < columns ? from[i * out_channels_ + j] : 0;
              }
            }
          }
        }
      }
    }
  }

 private:
  // Planes, of which the first one's images begin at `data`.
  struct Planes {
    const uint8_t* data;
    int64_t first, count;
  };

  void Multiply(const Planes& planes, const int8_t* matrices, const int32_t* compensation, const ThreadTeam& team,
                const SumsEpilogue& epilogue) const {
    const int64_t of_plane = Count(windows_.plane_windows(), kBlockWindows), blocks = planes.count * of_plane;
    const int64_t panel_columns = PanelColumns(blocks, team.size()), panels = Count(columns_, panel_columns);
    team.ParallelFor(groups_ * panels * blocks, Grain(panel_columns), [&](int64_t begin, int64_t end) {
      ScratchFrame frame;
      auto* const ends = frame.Get<uint8_t>(kBlockTiles * windows_.Reach());
      ByteBlock block{};
      block.pitch = windows_.pitch();
      block.runs = windows_.runs();
      block.terms = windows_.run_terms();
      block.offsets = windows_.offsets();
      block.sums = frame.Get<int32_t>(kBlockWindows * kBlockColumns);
      SumsBlock sums{};
      sums.ld = kBlockColumns;
      ByteEpilogue in_registers{ByteProducts::MayFinish() ? epilogue.chain : nullptr, nullptr, out_channels_, 0, 0};
      const ByteProducts products;
      for (int64_t i = begin; i < end; ++i) {
        const int64_t plane = i % blocks / of_plane, window = i % of_plane * kBlockWindows;
        const int64_t panel = i / blocks % panels, group = i / blocks / panels;
        FindTiles(planes, plane, window, group, ends, &block);
        const int64_t last = std::min((panel + 1) * panel_columns, columns_);
        for (int64_t column = panel * panel_columns; column < last; column += kBlockColumns) {
          const int64_t columns = std::min(kBlockColumns, last - column), first = group * columns_ + column;
          block.packed = matrices + group * matrix_bytes_ + column * terms_;
          block.groups = Count(columns, kByteGroup);
          sums.compensation = FromColumn(compensation, first);
          if (in_registers.chain != nullptr && columns % kByteGroup == 0 && IsOfPixels(window)) {
            in_registers.compensation = sums.compensation;
            in_registers.offset = PixelOf(planes.first + plane, window) * out_channels_ + first;
            in_registers.col = first;
            block.epilogue = &in_registers;
            products.Multiply(block);
            continue;
          }
          block.epilogue = nullptr;
          products.Multiply(block);
          sums.first = first;
          sums.count = columns;
          Give(block.sums, planes.first + plane, window, &sums, epilogue);
        }
      }
    });
  }

  // Products may not read behind x. Tiles for which they would are copied to `ends`.
  void FindTiles(const Planes& planes, int64_t plane, int64_t window, int64_t group, uint8_t* ends,
                 ByteBlock* block) const {
    const int64_t reach = windows_.Reach(), rest = windows_.plane_windows() - window;
    block->rows = std::min(kBlockWindows, rest);
    for (int64_t i = 0; i * kTileRows < block->rows; ++i) {
      const int64_t place = windows_.Place(plane, window + i * kTileRows, group);
      block->tiles[i] = planes.data + place;
      if (windows_.is_copied() || place + reach <= input_bytes_) continue;
      std::memcpy(ends + i * reach, planes.data + place, input_bytes_ - place);
      block->tiles[i] = ends + i * reach;
    }
  }

  // True if the block from a window on is full, and all its windows are pixels of one row.
  bool IsOfPixels(int64_t window) const {
    return window % windows_.row_windows() + kBlockWindows <= windows_.row_pixels();
  }

  // The pixel of the results that a window belongs to.
  int64_t PixelOf(int64_t plane, int64_t window) const {
    const int64_t row = window / windows_.row_windows(), col = window % windows_.row_windows();
    return (plane * windows_.rows() + row) * windows_.row_pixels() + col;
  }

  // Hands the sums of a block's windows on, row of pixels by row, but for those between rows.
  void Give(int32_t* sums, int64_t plane, int64_t window, SumsBlock* block, const SumsEpilogue& epilogue) const {
    const int64_t step = windows_.row_windows(), end = std::min(window + kBlockWindows, windows_.plane_windows());
    for (int64_t row = window / step; row * step < end; ++row) {
      const int64_t begin = std::max(window, row * step), last = std::min(end, row * step + windows_.row_pixels());
      if (begin >= last) continue;
      block->sums = sums + (begin - window) * kBlockColumns;
      block->pixel = PixelOf(plane, begin);
      block->pixels = last - begin;
      epilogue.take(*block);
    }
  }

  // Threads share the columns if there are too few blocks of windows.
  int64_t PanelColumns(int64_t blocks, int threads) const {
    const int64_t in_cache = std::max<int64_t>(1, kPanelBytes / (kBlockColumns * terms_)) * kBlockColumns;
    const int64_t wanted = std::max<int64_t>(1, 2 * threads / blocks);
    return std::min(in_cache, RoundUp(Count(columns_, wanted), kBlockColumns));
  }

  // Blocks that are worth a thread.
  int64_t Grain(int64_t panel_columns) const {
    const auto sums = static_cast<double>(std::min(panel_columns, columns_) * kBlockWindows);
    const double ns = sums * (static_cast<double>(terms_) / BytesMultipliedPerNs() + kSumEpilogueNs);
    return static_cast<int64_t>(host_runtime::kGrainNs / ns) + 1;
  }

  const int64_t out_channels_, groups_, columns_, input_bytes_;
  const ByteWindows windows_;
  const int64_t terms_, matrix_bytes_;
};

}  // namespace

std::unique_ptr<ByteSums> QuadSums(const ConvolutionDesc& d) {
  // Products of groups with fewer channels would mostly be of padding.
  constexpr int64_t kFewestChannels = 16;
  const bool is_wide = d.in_channels / d.groups >= kFewestChannels && d.out_channels / d.groups >= kFewestChannels;
  return HasByteProducts() && (d.groups == 1 || is_wide) ? std::make_unique<ByQuads>(d) : nullptr;
}

}  // namespace xpu::cpu
#endif

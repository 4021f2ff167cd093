#include "tensorflow_plugin/backends/cpu/convolution/direct.h"

#include <algorithm>
#include <vector>

#include "tensorflow_plugin/backends/cpu/convolution/axes.h"
#include "tensorflow_plugin/backends/cpu/convolution/sizes.h"
#include "tensorflow_plugin/backends/cpu/cost.h"
#include "tensorflow_plugin/backends/cpu/matmul/panels.h"
#include "tensorflow_plugin/backends/cpu/scratch.h"
#include "tensorflow_plugin/backends/cpu/simd/isa.h"
#include "tensorflow_plugin/backends/host_runtime/spatial.h"
#include "tensorflow_plugin/primitives/check.h"

namespace xpu::cpu {
namespace {

using host_runtime::ThreadTeam;

// oneDNN is slow with fewer channels, or as many.
constexpr int64_t kFew = 4;
// Elements of a filter that is packed in each call, which stay in a core's cache, and terms of a sum. That of a data
// gradient is turned as well.
constexpr int64_t kLargestFilter = 1 << 16, kLargestFilterOfGradient = 1 << 12, kLongestSum = 2048;
// Multiplications of a data gradient.
constexpr int64_t kMostWorkOfGradient = 1 << 25;
// Pixels of the result that are computed together.
constexpr int64_t kPixels = 512;
// Columns of a block, and of an image. Fewer are no whole tiles of any width (matmul/panels.h).
constexpr int64_t kFewestColumns = 12;
// Multiplications worth handing to another thread.
constexpr int64_t kGrainWork = 1 << 17;

bool IsForward(const ConvolutionDesc& d) { return d.direction == Direction::kForward; }
int64_t ChannelsRead(const ConvolutionDesc& d) { return IsForward(d) ? d.in_channels : d.out_channels; }
int64_t ChannelsWritten(const ConvolutionDesc& d) { return IsForward(d) ? d.out_channels : d.in_channels; }
int64_t TermsOf(const ConvolutionDesc& d) { return host_runtime::Pixels(d.filter) * ChannelsRead(d); }

// Pixels of the result, `step` apart from `first` on, along one axis. They meet the same taps. Pixel i of these reads
// pixels of the image from read_first + i * read_step on, read_apart from tap to tap. Taps are in the order of the
// pixels that they read, so a step from tap to tap may be negative.
struct GridAxis {
  int64_t first = 0, step = 1, count = 0;
  int64_t read_first = 0, read_step = 1, read_apart = 1;
  int64_t first_tap = 0, tap_step = 1, taps = 0;
  int64_t image = 0, result = 0;  // their extents
};

GridAxis ForwardAxis(const SpatialAxis& axis) {
  GridAxis grid;
  grid.count = axis.output;
  grid.read_first = -axis.pad;
  grid.read_step = axis.stride;
  grid.read_apart = axis.dilation;
  grid.taps = axis.filter;
  grid.image = axis.input;
  grid.result = axis.output;
  return grid;
}

// The pixels of a data gradient that are a stride apart. They meet each stride-th tap from some tap on, and a later tap
// reads an earlier pixel of the image.
GridAxis GradientAxis(const SpatialAxis& axis, int64_t first) {
  const int64_t met = (first + axis.pad) % axis.stride, last_read = (first + axis.pad) / axis.stride;
  GridAxis grid;
  grid.first = first;
  grid.step = axis.stride;
  grid.count = axis.input > first ? Count(axis.input - first, axis.stride) : 0;
  grid.taps = Count(axis.filter - met, axis.stride);
  grid.read_first = last_read - (grid.taps - 1);
  grid.first_tap = met + (grid.taps - 1) * axis.stride;
  grid.tap_step = -axis.stride;
  grid.image = axis.output;
  grid.result = axis.input;
  return grid;
}

struct Grid {
  int64_t terms(const ConvolutionDesc& d) const { return down.taps * across.taps * ChannelsRead(d); }

  GridAxis down, across;
};

std::vector<Grid> GridsOf(const ConvolutionDesc& d) {
  const SpatialAxis down = AxesOf(d)[kAxes - 2], across = AxesOf(d)[kAxes - 1];
  if (IsForward(d)) return {{ForwardAxis(down), ForwardAxis(across)}};
  std::vector<Grid> grids;
  for (int64_t i = 0; i < down.stride * across.stride; ++i) {
    grids.push_back({GradientAxis(down, i / across.stride), GradientAxis(across, i % across.stride)});
  }
  return grids;
}

// The taps of a data gradient's grid as rows of a matrix, each with a row for each channel that is read. The filter of
// a forward convolution is such a matrix.
void LayOutTaps(const ConvolutionDesc& d, const Grid& grid, const float* filter, float* rows) {
  const int64_t columns = AxesOf(d)[kAxes - 1].filter, read = ChannelsRead(d), written = ChannelsWritten(d);
  for (int64_t i = 0; i < grid.down.taps; ++i) {
    for (int64_t j = 0; j < grid.across.taps; ++j) {
      const int64_t tap =
          (grid.down.first_tap + i * grid.down.tap_step) * columns + grid.across.first_tap + j * grid.across.tap_step;
      const float* const from = filter + tap * read * written;
      for (int64_t k = 0; k < read; ++k, rows += written) {
        for (int64_t n = 0; n < written; ++n) rows[n] = from[n * read + k];
      }
    }
  }
}

// The grids of a convolution in blocks of some rows and columns.
class Blocks {
 public:
  Blocks(const ConvolutionDesc& d, const float* image, const float* packed, float* result, int threads)
      : image_(image), result_(result), batch_(d.batch), read_(ChannelsRead(d)), written_(ChannelsWritten(d)) {
    for (const Grid& grid : GridsOf(d)) {
      grids_.push_back(grid);
      filters_.emplace_back(grid.terms(d), written_, packed);
      packed += PanelMatrix::Elements(grid.terms(d), written_);
    }
    const Grid& grid = grids_[0];  // the largest
    across_ = Count(grid.across.count, kPixels);
    down_ = Count(grid.down.count, std::max<int64_t>(1, kPixels * across_ / grid.across.count));
    const int64_t work = Multiplications(d);
    const int64_t shares = std::clamp<int64_t>(work / kGrainWork, 1, threads);
    // All threads have as many blocks: of rows, or of columns if there is one row.
    int64_t& divided = grid.down.count > 1 ? down_ : across_;
    const int64_t most = grid.down.count > 1 ? grid.down.count : grid.across.count / kFewestColumns;
    const int64_t others = batch_ * down_ * across_ / divided;
    int64_t best = divided;
    for (int64_t tried = divided + 1; tried < divided + shares && tried <= most; ++tried) {
      if (Unevenness(others * tried, shares) < Unevenness(others * best, shares)) best = tried;
    }
    divided = best;
    grain_ = std::max<int64_t>(1, kGrainWork * count() / work);
  }

  int64_t count() const { return batch_ * down_ * across_; }
  int64_t grain() const { return grain_; }

  // The block's pixels of all grids.
  void Run(int64_t block, const ChainEpilogue* chain, const FusedEpilogue* on_rows) const {
    const int64_t image = block / (down_ * across_), down = block / across_ % down_, across = block % across_;
    for (size_t i = 0; i < grids_.size(); ++i) {
      const Grid& grid = grids_[i];
      RunGrid(grid, filters_[i], image, ShareOf(grid.down.count, down, down_),
              ShareOf(grid.across.count, across, across_), chain, on_rows);
    }
  }

 private:
  struct Extent {
    int64_t begin, size;
  };
  struct Window {
    const float* data;
    int64_t stride;  // from row to row
  };

  static Extent ShareOf(int64_t all, int64_t share, int64_t shares) {
    const int64_t begin = all * share / shares;
    return {begin, all * (share + 1) / shares - begin};
  }

  void RunGrid(const Grid& grid, const PanelMatrix& filter, int64_t image, const Extent& rows, const Extent& cols,
               const ChainEpilogue* chain, const FusedEpilogue* on_rows) const {
    if (rows.size == 0 || cols.size == 0) return;
    const GridAxis &down = grid.down, &across = grid.across;
    ScratchFrame frame;
    const Window window = WindowOf(grid, image, Read(down, rows), Read(across, cols), &frame);
    const RowTerms terms = TermsIn(grid, window, &frame);
    const auto at = [&](int64_t i) {
      const int64_t row = image * down.result + down.first + (rows.begin + i) * down.step;
      return (row * across.result + across.first + cols.begin * across.step) * written_;
    };
    const int64_t lda = across.read_step * read_, ldc = across.step * written_;
    for (int64_t panel = 0; panel < filter.count(); ++panel) {
      for (int64_t i = 0; i < rows.size; ++i) {
        const float* const from = window.data + i * down.read_step * window.stride;
        filter.MultiplyBy(panel, cols.size, terms, from, lda, result_ + at(i), ldc, at(i), chain);
      }
    }
    if (on_rows == nullptr) return;
    const int64_t together = across_ == 1 ? rows.size : 1;  // rows that lie in one piece
    for (int64_t i = 0; i < rows.size; i += together) on_rows->Run(at(i), together * cols.size * written_);
  }

  // The pixels of the image that some of a grid read, padding included.
  static Extent Read(const GridAxis& axis, const Extent& pixels) {
    return {axis.read_first + pixels.begin * axis.read_step,
            (pixels.size - 1) * axis.read_step + (axis.taps - 1) * axis.read_apart + 1};
  }

  // Part of an image. Where some of it is padding, that is a copy.
  Window WindowOf(const Grid& grid, int64_t image, const Extent& rows, const Extent& cols, ScratchFrame* frame) const {
    const int64_t height = grid.down.image, length = grid.across.image, stride = length * read_;
    const float* const from = image_ + image * height * stride;
    const auto is_inside = [](const Extent& e, int64_t all) { return e.begin >= 0 && e.begin + e.size <= all; };
    if (is_inside(rows, height) && is_inside(cols, length)) {
      return {from + rows.begin * stride + cols.begin * read_, stride};
    }
    const int64_t width = cols.size * read_;
    const int64_t first = std::clamp<int64_t>(cols.begin, 0, length);
    const int64_t last = std::clamp<int64_t>(cols.begin + cols.size, first, length);
    const int64_t before = (first - cols.begin) * read_, inside = (last - first) * read_;
    float* const copy = frame->Get<float>(rows.size * width);
    float* to = copy;
    for (int64_t row = rows.begin; row < rows.begin + rows.size; ++row, to += width) {
      if (row < 0 || row >= height || inside == 0) {
        std::fill_n(to, width, 0.0f);
        continue;
      }
      std::fill_n(to, before, 0.0f);
      std::copy_n(from + row * stride + first * read_, inside, to + before);
      std::fill_n(to + before + inside, width - before - inside, 0.0f);
    }
    return {copy, width};
  }

  // The terms of the first pixel's sums. Taps next to each other are one piece.
  RowTerms TermsIn(const Grid& grid, const Window& window, ScratchFrame* frame) const {
    const bool is_whole = grid.across.read_apart == 1;
    const int64_t pieces = is_whole ? 1 : grid.across.taps;  // of a row of taps
    auto* const offsets = frame->Get<int64_t>(grid.down.taps * pieces);
    for (int64_t row = 0; row < grid.down.taps; ++row) {
      for (int64_t i = 0; i < pieces; ++i) {
        offsets[row * pieces + i] = row * grid.down.read_apart * window.stride + i * grid.across.read_apart * read_;
      }
    }
    return {grid.down.taps * pieces, (is_whole ? grid.across.taps : 1) * read_, offsets};
  }

  const float* const image_;
  float* const result_;
  const int64_t batch_, read_, written_;
  std::vector<Grid> grids_;
  std::vector<PanelMatrix> filters_;  // by grid
  int64_t across_, down_, grain_;
};

// A data gradient with strides, all of whose pixels meet taps. oneDNN shares much work as well, and multiplies faster.
bool HasStridesAndLittleWork(const ConvolutionDesc& d) {
  bool has_strides = false;
  for (int i = 0; i < d.spatial_rank; ++i) {
    if (d.stride[i] > d.filter[i] || d.dilation[i] > 1) return false;
    has_strides |= d.stride[i] > 1;
  }
  return has_strides && Multiplications(d) <= kMostWorkOfGradient;
}

// True if the filter is packed in each call.
bool PacksInCall(const ConvolutionDesc& d) {
  const int64_t largest = IsForward(d) ? kLargestFilter : kLargestFilterOfGradient;
  return TermsOf(d) <= kLongestSum && FilterSize(d) <= largest;
}

}  // namespace

bool DirectPays(const ConvolutionDesc& d, const Machine& machine) {
  if (d.type != DType::kFloat || d.order != ChannelOrder::kLast || d.spatial_rank > 2 || d.groups != 1 ||
      machine.isa == Isa::kBaseline) {
    return false;
  }
  const bool has_panels = d.packed_filter_bytes > 0 || PacksInCall(d);
  if (d.direction == Direction::kDataGradient) return has_panels && HasStridesAndLittleWork(d);
  if (d.direction != Direction::kForward) return false;
  const SpatialAxis down = AxesOf(d)[kAxes - 2], across = AxesOf(d)[kAxes - 1];
  const bool is_pointwise = HasFilterOfOnePixel(d), is_narrow = across.output < kFewestColumns;
  if (is_pointwise && is_narrow) return false;  // such as a product, whose rows are images of one pixel
  if (d.in_channels <= kFew && d.out_channels >= kFew) return PacksInCall(d);
  if (is_pointwise || is_narrow) return false;
  if (d.out_channels < kFew) return has_panels;
  const bool is_one_row = down.output == 1 && down.filter == 1;
  return d.packed_filter_bytes > 0 && (is_one_row || down.dilation > 1 || across.dilation > 1);
}

int64_t DirectFilterBytes(const ConvolutionDesc& d) {
  int64_t elements = 0;
  for (const Grid& grid : GridsOf(d)) elements += PanelMatrix::Elements(grid.terms(d), ChannelsWritten(d));
  return elements * static_cast<int64_t>(sizeof(float));
}

void PackDirectFilter(const ConvolutionDesc& d, const float* filter, float* packed) {
  if (IsForward(d)) return PanelMatrix::Pack(TermsOf(d), d.out_channels, filter, packed);
  ScratchFrame frame;
  float* const rows = frame.Get<float>(FilterSize(d));
  for (const Grid& grid : GridsOf(d)) {
    LayOutTaps(d, grid, filter, rows);
    PanelMatrix::Pack(grid.terms(d), ChannelsWritten(d), rows, packed);
    packed += PanelMatrix::Elements(grid.terms(d), ChannelsWritten(d));
  }
}

void RunDirect(const ConvolutionDesc& d, const Args& args, const ThreadTeam& team,
               std::optional<FusedEpilogue>* epilogue) {
  ScratchFrame frame;
  const auto* packed = static_cast<const float*>(args.in[2]);
  if (d.packed_filter_bytes == 0) {
    auto* const made = static_cast<float*>(frame.Bytes(DirectFilterBytes(d)));
    PackDirectFilter(d, static_cast<const float*>(args.in[FilterInput(d)]), made);
    packed = made;
  }
  const ChainEpilogue* const chain = *epilogue ? (*epilogue)->InRegisters(ChannelsWritten(d)) : nullptr;
  // The pixels of a grid with steps lie in no piece.
  const FusedEpilogue* const on_rows = *epilogue && chain == nullptr && IsForward(d) ? &**epilogue : nullptr;
  const Blocks blocks(d, static_cast<const float*>(args.in[1 - FilterInput(d)]), packed,
                      static_cast<float*>(args.out[0]), team.size());
  team.ParallelFor(blocks.count(), blocks.grain(), [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) blocks.Run(block, chain, on_rows);
  });
  if (chain != nullptr || on_rows != nullptr) epilogue->reset();
}

}  // namespace xpu::cpu

#include "tensorflow_plugin/backends/cpu/convolution/winograd.h"

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "tensorflow_plugin/backends/cpu/arrays/transpose.h"
#include "tensorflow_plugin/backends/cpu/convolution/winograd_loops.h"
#include "tensorflow_plugin/backends/cpu/cost.h"
#include "tensorflow_plugin/backends/cpu/scratch.h"
#include "tensorflow_plugin/backends/cpu/simd/isa.h"
#include "tensorflow_plugin/primitives/types.h"

namespace xpu::cpu {
namespace {

using host_runtime::ThreadTeam;

constexpr int64_t kPoints = 36, kTileIn = 6, kTileOut = 4, kFilter = 3;

int64_t Up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// Images with channels last.
template <typename T>
struct Images {
  T* data;
  int64_t height, width, channels;

  // The addresses of `side` x `side` pixels from (row, column) of an image on; `outside` for those that it has not.
  void Pixels(int64_t image, int64_t row, int64_t column, int64_t side, T* outside, T** pixels) const {
    for (int64_t i = 0; i < side; ++i) {
      for (int64_t j = 0; j < side; ++j) {
        const int64_t r = row + i, c = column + j;
        const bool inside = r >= 0 && r < height && c >= 0 && c < width;
        pixels[i * side + j] = inside ? data + ((image * height + r) * width + c) * channels : outside;
      }
    }
  }
};

// Tiles of four by four pixels.
struct Tiles {
  Tiles(int64_t images, int64_t height, int64_t width)
      : down((height + kTileOut - 1) / kTileOut),
        across((width + kTileOut - 1) / kTileOut),
        all(images * down * across) {}
  int64_t image(int64_t tile) const { return tile / (down * across); }
  int64_t row(int64_t tile) const { return tile / across % down * kTileOut; }
  int64_t column(int64_t tile) const { return tile % across * kTileOut; }
  const int64_t down, across, all;
};

// f(begin, n) of all elements of tiles [first, first + count), of those of a row at a time that lie in one piece.
template <typename F>
void EachPiece(const Tiles& tiles, int64_t first, int64_t count, const Images<float>& y, F f) {
  for (int64_t t = first, next; t < first + count; t = next) {
    next = std::min(first + count, (t / tiles.across + 1) * tiles.across);
    const int64_t row = tiles.row(t), column = tiles.column(t);
    const int64_t pixels = std::min((next - t) * kTileOut, y.width - column);
    for (int64_t r = row; r < std::min(row + kTileOut, y.height); ++r) {
      f(((tiles.image(t) * y.height + r) * y.width + column) * y.channels, pixels * y.channels);
    }
  }
}

// Numbers of points that go through the second-level cache without being pushed out.
constexpr int64_t kCached = 160 << 10;

// The nearest number of tiles that a block may have.
int64_t TilesOfABlock(int64_t wanted, const Machine& machine) {
  const int64_t tall = TallRows(machine.vector_bytes());
  return std::clamp(wanted, 2 * tall, 8 * tall);
}

// The tiles of a block, each of which has `numbers` at a point, so that all its points' are at most `cached`.
int64_t BlockTiles(const Tiles& tiles, int64_t numbers, int64_t cached, const Machine& machine) {
  const int64_t tall = TallRows(machine.vector_bytes()), fitting = cached / (kPoints * numbers) / tall * tall;
  const int64_t fair = Up((tiles.all + 2 * machine.threads - 1) / (2 * machine.threads), tall);  // two for each thread
  return TilesOfABlock(std::min(fitting, fair), machine);
}

// For the filter's gradient: there, the sums that a block's products are added to had better stay in the cache.
int64_t GradientBlockTiles(const ConvolutionDesc& d, const Tiles& tiles, const Machine& machine) {
  const int64_t sums = kPoints * d.in_channels * d.out_channels;
  return BlockTiles(tiles, d.in_channels + d.out_channels, std::max(kCached, sums), machine);
}

// How many sums of the filter's gradient there are at a time, of 36 numbers for each of its elements.
int64_t Sums(const ConvolutionDesc& d, int64_t blocks, const Machine& machine) {
  constexpr int64_t kMost = 1 << 22;  // numbers of all of them
  const int64_t fitting = kMost / (kPoints * d.in_channels * d.out_channels);
  return std::min<int64_t>(blocks, std::clamp<int64_t>(fitting, machine.threads, 2 * machine.threads));
}

// The points of a filter, of which `w(c, pixels)` gives the addresses of the nine pixels for input channel c.
template <typename Filter>
void FilterPoints(int64_t depth, int64_t columns, Filter w, float* points, const ThreadTeam& team) {
  const auto filter_to_points = XPU_PICK_ISA(FilterToPoints);
  team.ParallelFor(depth, std::max<int64_t>(1, (1 << 14) / columns), [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      const float* pixels[kFilter * kFilter];
      w(c, pixels);
      filter_to_points(pixels, columns, points, depth * columns, c, depth);
    }
  });
}

// The taps of a filter as it is.
auto PixelsOf(const float* filter, int64_t in, int64_t out) {
  return [=](int64_t c, const float** pixels) {
    for (int64_t i = 0; i < kFilter * kFilter; ++i) pixels[i] = filter + (i * in + c) * out;
  };
}

// A convolution by a filter that has these points, a block of tiles at a time.
class TileBlocks {
 public:
  TileBlocks(const Images<const float>& x, const Images<float>& y, int64_t images, const int64_t* pad,
             const float* filter)
      : x_(x), y_(y), pad_(pad), filter_(filter), tiles_(images, y.height, y.width) {}

  // False if there is an infinity or a NaN. An epilogue that has been run is reset.
  bool Run(const ThreadTeam& team, std::optional<FusedEpilogue>* epilogue) {
    const Machine machine = Machine::Here(team.size());
    const int64_t threads = team.size(), fewest = TilesOfABlock(0, machine);
    int64_t size = BlockTiles(tiles_, x_.channels + panel_, kCached, machine);
    const int64_t blocks = Count(tiles_.all, size);
    const bool are_few = threads > 1 && blocks < 4 * threads;
    ScratchFrame frame;
    zeros_ = frame.Get<float>(x_.channels);
    std::fill_n(zeros_, x_.channels, 0.0f);
    if (are_few && tiles_.all < threads * fewest) {
      RunTogether(std::max(size, TogetherTiles(machine)), team, epilogue);
    } else {
      if (are_few) size = Count(tiles_.all, Up(blocks, threads));  // as many for each thread
      RunEach(size, team, epilogue);
    }
    if (finite_) epilogue->reset();
    return finite_;
  }

 private:
  // Rows of the points' matrices: some are no tile's.
  int64_t Rows(int64_t tiles) const { return Up(tiles, XPU_PICK_ISA(ShortRows)()); }

  // So many tiles' points stay in the second cache of each thread.
  int64_t TogetherTiles(const Machine& machine) const {
    constexpr int64_t kMost = 1 << 18;  // numbers
    return TilesOfABlock(kMost / (kPoints * x_.channels), machine);
  }

  // Each thread computes blocks of its own.
  void RunEach(int64_t size, const ThreadTeam& team, std::optional<FusedEpilogue>* epilogue) {
    team.ParallelFor(Count(tiles_.all, size), 1, [&](int64_t begin, int64_t end) {
      ScratchFrame frame;
      float* const input = frame.Get<float>(kPoints * Rows(size) * x_.channels);
      float* const output = frame.Get<float>(kPoints * Rows(size) * panel_);
      for (int64_t b = begin; b < end; ++b) {
        const int64_t first = b * size, count = std::min(size, tiles_.all - first);
        ToPoints(first, 0, Rows(count), count, input);
        for (int64_t j = 0; j < y_.channels; j += panel_) Multiply(first, count, j, input, output);
        RunEpilogue(first, count, epilogue);
      }
    });
  }

  // The threads share each block: first its tiles, then the filter's panels.
  void RunTogether(int64_t size, const ThreadTeam& team, std::optional<FusedEpilogue>* epilogue) {
    ScratchFrame frame;
    float* const input = frame.Get<float>(kPoints * Rows(size) * x_.channels);
    for (int64_t first = 0; first < tiles_.all; first += size) {
      const int64_t count = std::min(size, tiles_.all - first);
      team.ParallelFor(Rows(count), 2, [&](int64_t begin, int64_t end) { ToPoints(first, begin, end, count, input); });
      team.ParallelFor(Count(y_.channels, panel_), 1, [&](int64_t begin, int64_t end) {
        ScratchFrame frame;
        float* const output = frame.Get<float>(kPoints * Rows(count) * panel_);
        for (int64_t j = begin; j < end; ++j) Multiply(first, count, j * panel_, input, output);
      });
      team.ParallelFor(count, tiles_.across,
                       [&](int64_t begin, int64_t end) { RunEpilogue(first + begin, end - begin, epilogue); });
    }
  }

  // Rows [begin, end) of the points' matrices, for a block of `count` tiles.
  void ToPoints(int64_t first, int64_t begin, int64_t end, int64_t count, float* input) const {
    const auto to_points = XPU_PICK_ISA(InputToPoints);
    const int64_t depth = x_.channels, rows = Rows(count);
    for (int64_t t = begin; t < std::min(end, count); ++t) {
      const float* pixels[kTileIn * kTileIn];
      x_.Pixels(tiles_.image(first + t), tiles_.row(first + t) - pad_[0], tiles_.column(first + t) - pad_[1], kTileIn,
                zeros_, pixels);
      to_points(pixels, depth, input, rows * depth, t);
    }
    const int64_t of_none = std::max(begin, count);
    for (int64_t p = 0; of_none < end && p < kPoints; ++p) {
      std::fill(input + (p * rows + of_none) * depth, input + (p * rows + end) * depth, 0.0f);
    }
  }

  // The columns of a panel from column j on.
  void Multiply(int64_t first, int64_t count, int64_t j, const float* input, float* output) {
    const auto multiply = XPU_PICK_ISA(MultiplyPanel);
    const auto from_points = XPU_PICK_ISA(OutputFromPoints);
    const int64_t depth = x_.channels, columns = y_.channels, rows = Rows(count);
    const int64_t width = std::min(panel_, columns - j);
    for (int64_t p = 0; p < kPoints; ++p) {
      const float* const panel = filter_ + (p * columns + j) * depth;
      // After the last point comes the first one of the next columns.
      const float* const next = p + 1 < kPoints ? panel + columns * depth : filter_ + (j + width) % columns * depth;
      multiply(rows, depth, input + p * rows * depth, depth, panel, next, width, output + p * rows * width, width);
    }
    ScratchFrame frame;
    float* const unused = frame.Get<float>(width);
    for (int64_t t = 0; t < count; ++t) {
      float* pixels[kTileOut * kTileOut];
      const Images<float> from{y_.data + j, y_.height, y_.width, columns};
      from.Pixels(tiles_.image(first + t), tiles_.row(first + t), tiles_.column(first + t), kTileOut, unused, pixels);
      if (!from_points(output + t * width, rows * width, width, pixels)) finite_ = false;
    }
  }

  void RunEpilogue(int64_t first, int64_t count, std::optional<FusedEpilogue>* epilogue) const {
    if (!*epilogue || !finite_) return;
    EachPiece(tiles_, first, count, y_, [&](int64_t begin, int64_t n) { (*epilogue)->Run(begin, n); });
  }

  const Images<const float>& x_;
  const Images<float>& y_;
  const int64_t* const pad_;
  const float* const filter_;
  const Tiles tiles_;
  const int64_t panel_ = XPU_PICK_ISA(PanelColumns)();
  float* zeros_ = nullptr;
  std::atomic<bool> finite_{true};
};

// y = x convolved with the filter that has these points.
bool Convolve(const Images<const float>& x, const Images<float>& y, int64_t images, const int64_t* pad,
              const float* filter, const ThreadTeam& team, std::optional<FusedEpilogue>* epilogue) {
  return TileBlocks(x, y, images, pad, filter).Run(team, epilogue);
}

bool FilterGradient(const ConvolutionDesc& d, const Args& args, const ThreadTeam& team) {
  const auto input_to_points = XPU_PICK_ISA(InputToPoints);
  const auto gradient_to_points = XPU_PICK_ISA(OutputGradientToPoints);
  const auto multiply = XPU_PICK_ISA(MultiplyTransposed);
  const auto filter_from_points = XPU_PICK_ISA(FilterGradientFromPoints);
  const Images<const float> x{static_cast<const float*>(args.in[0]), d.input[0], d.input[1], d.in_channels};
  const Images<const float> dy{static_cast<const float*>(args.in[1]), d.output[0], d.output[1], d.out_channels};
  const Tiles tiles(d.batch, dy.height, dy.width);
  const Machine machine = Machine::Here(team.size());
  const int64_t rows = x.channels, columns = dy.channels, block = GradientBlockTiles(d, tiles, machine);
  const int64_t blocks = (tiles.all + block - 1) / block, sums = Sums(d, blocks, machine), one = rows * columns;

  ScratchFrame frame;
  float* const sum = frame.Get<float>(sums * kPoints * one);
  float* const zeros = frame.Get<float>(std::max(rows, columns));
  std::fill_n(zeros, std::max(rows, columns), 0.0f);
  team.ParallelFor(sums, 1, [&](int64_t begin, int64_t end) {
    ScratchFrame frame;
    float* const input = frame.Get<float>(kPoints * block * rows);
    float* const gradient = frame.Get<float>(kPoints * block * columns);
    for (int64_t s = begin; s < end; ++s) {
      const int64_t from = s * blocks / sums;
      for (int64_t b = from; b < (s + 1) * blocks / sums; ++b) {
        const int64_t first = b * block, count = std::min(block, tiles.all - first);
        for (int64_t t = 0; t < count; ++t) {
          const int64_t image = tiles.image(first + t), row = tiles.row(first + t), column = tiles.column(first + t);
          const float* pixels[kTileIn * kTileIn];
          x.Pixels(image, row - d.pad_before[0], column - d.pad_before[1], kTileIn, zeros, pixels);
          input_to_points(pixels, rows, input, count * rows, t);
          dy.Pixels(image, row, column, kTileOut, zeros, pixels);
          gradient_to_points(pixels, columns, gradient, count * columns, t, count);
        }
        for (int64_t p = 0; p < kPoints; ++p) {
          multiply(rows, count, input + p * count * rows, gradient + p * count * columns, columns,
                   sum + (s * kPoints + p) * one, b > from);
        }
      }
    }
  });
  float* const out = static_cast<float*>(args.out[0]);
  std::atomic<bool> finite{true};
  team.ParallelFor(rows, std::max<int64_t>(1, (1 << 13) / columns), [&](int64_t begin, int64_t end) {
    for (int64_t s = 1; s < sums; ++s) {
      for (int64_t p = 0; p < kPoints; ++p) {
        float* const to = sum + p * one;
        const float* const from = sum + (s * kPoints + p) * one;
        for (int64_t i = begin * columns; i < end * columns; ++i) to[i] += from[i];
      }
    }
    for (int64_t c = begin; c < end; ++c) {
      float* pixels[kFilter * kFilter];
      for (int64_t i = 0; i < kFilter * kFilter; ++i) pixels[i] = out + (i * rows + c) * columns;
      if (!filter_from_points(sum + c * columns, one, columns, pixels)) finite = false;
    }
  });
  return finite;
}

// An output of nothing but padding is zero, and here it would be nearly so.
bool AllHaveInputs(const ConvolutionDesc& d) {
  for (int i = 0; i < 2; ++i) {
    const int64_t before = d.pad_before[i], after = d.output[i] + kFilter - 1 - d.input[i] - before;
    if (std::min(before, after) < 0 || std::max(before, after) >= kFilter) return false;
  }
  return true;
}

}  // namespace

bool WinogradPays(const ConvolutionDesc& d, const Machine& machine) {
  const int64_t lanes = machine.float_lanes();
  const bool fits = d.type == DType::kFloat && d.order == ChannelOrder::kLast && d.spatial_rank == 2 && d.groups == 1 &&
                    d.filter[0] == kFilter && d.filter[1] == kFilter && d.stride[0] == 1 && d.stride[1] == 1 &&
                    d.dilation[0] == 1 && d.dilation[1] == 1 && d.in_channels % lanes == 0 &&
                    d.out_channels % lanes == 0;
  if (!machine.winograd || !fits || !AllHaveInputs(d) || machine.isa == Isa::kBaseline) return false;

  // Picoseconds of one thread, measured on a Zen 4, whose cores multiply and add 57 pairs in a nanosecond. Others
  // differ, but all three kinds of work go with the width of their vectors.
  constexpr double kMultiply = 17.5, kChannelOfTile = 6300;
  const bool to_input = d.direction == Direction::kDataGradient;
  const int64_t* const outputs = to_input ? d.input : d.output;
  const Tiles tiles(d.batch, outputs[0], outputs[1]);
  const double elements = static_cast<double>(d.in_channels) * static_cast<double>(d.out_channels);
  const double all = static_cast<double>(tiles.all);
  const double channels = static_cast<double>(d.in_channels + d.out_channels);
  double of_filter = 0;  // for each of its elements, written and read as 36 numbers
  if (d.direction == Direction::kFilterGradient) {
    const int64_t block = GradientBlockTiles(d, tiles, machine), blocks = (tiles.all + block - 1) / block;
    of_filter = static_cast<double>(blocks + Sums(d, blocks, machine)) * (elements <= (1 << 12)   ? 2000
                                                                          : elements <= (1 << 15) ? 8000
                                                                                                  : 16000);
  } else if (d.packed_filter_bytes == 0) {
    of_filter = elements <= (1 << 15) ? 8000 : 40000;  // cached, or not
  } else {
    of_filter = elements <= (1 << 15) ? 0 : 6000;  // read
  }
  const double direct =
      kFilter * kFilter * elements * static_cast<double>(d.batch * outputs[0] * outputs[1]) * kMultiply;
  const double by_points = (kPoints * elements * kMultiply + channels * kChannelOfTile) * all + elements * of_filter;
  return by_points * 1.1 < direct;
}

int64_t WinogradFilterBytes(const ConvolutionDesc& d) {
  return kPoints * d.in_channels * d.out_channels * static_cast<int64_t>(sizeof(float));
}

void WinogradFilter(const ConvolutionDesc& d, const float* filter, float* points, const ThreadTeam& team) {
  FilterPoints(d.in_channels, d.out_channels, PixelsOf(filter, d.in_channels, d.out_channels), points, team);
}

bool RunWinograd(const ConvolutionDesc& d, const Args& args, const ThreadTeam& team,
                 std::optional<FusedEpilogue>* epilogue) {
  const int64_t in = d.in_channels, out = d.out_channels;
  const Images<const float> read{static_cast<const float*>(args.in[0]), d.input[0], d.input[1], in};
  if (d.direction == Direction::kFilterGradient) return FilterGradient(d, args, team);
  ScratchFrame frame;
  if (d.direction == Direction::kForward) {
    const float* filter = static_cast<const float*>(args.in[2]);
    if (d.packed_filter_bytes == 0) {
      float* const points = frame.Get<float>(kPoints * in * out);
      WinogradFilter(d, static_cast<const float*>(args.in[1]), points, team);
      filter = points;
    }
    return Convolve(read, {static_cast<float*>(args.out[0]), d.output[0], d.output[1], out}, d.batch, d.pad_before,
                    filter, team, epilogue);
  }
  // The gradient of the input is the gradient of the output convolved with the filter turned round, from the output's
  // channels to the input's.
  float* const points = frame.Get<float>(kPoints * in * out);
  float* const turned = frame.Get<float>(kFilter * kFilter * in * out);
  const auto transpose = TransposeFunctionFor(sizeof(float));
  for (int64_t i = 0; i < kFilter * kFilter; ++i) {
    const float* const from = static_cast<const float*>(args.in[0]) + (kFilter * kFilter - 1 - i) * in * out;
    transpose(reinterpret_cast<const char*>(from), out * 4, reinterpret_cast<char*>(turned + i * in * out), in * 4, 4,
              out, in);
  }
  FilterPoints(out, in, PixelsOf(turned, out, in), points, team);
  const int64_t pad[] = {kFilter - 1 - d.pad_before[0], kFilter - 1 - d.pad_before[1]};
  return Convolve({static_cast<const float*>(args.in[1]), d.output[0], d.output[1], out},
                  {static_cast<float*>(args.out[0]), d.input[0], d.input[1], in}, d.batch, pad, points, team, epilogue);
}

}  // namespace xpu::cpu

#include "tensorflow_plugin/backends/cpu/convolution/pointwise.h"

#include <algorithm>

#include "tensorflow_plugin/backends/cpu/convolution/products.h"
#include "tensorflow_plugin/backends/cpu/convolution/sizes.h"
#include "tensorflow_plugin/backends/cpu/matmul/panels.h"
#include "tensorflow_plugin/backends/cpu/scratch.h"
#include "tensorflow_plugin/backends/host_runtime/spatial.h"

namespace xpu::cpu {
namespace {

using host_runtime::ThreadTeam;

// One row waits for the filter. Threads read parts of it, which are adjacent in a packed one. So each part fits into a
// core's own cache, and the processor prefetches it. That pays for a filter of so many elements: a smaller one is there
// anyway, and threads read a larger one by rows.
constexpr int64_t kLeastOfOneRow = 1 << 15, kMostOfOneRow = 1 << 18, kFewestColumns = 65;
// A few rows read the filter as fast as it lies. With very many there is nothing to gain, unless the sums are long:
// then a panel is read by few rows at a time.
constexpr int64_t kFewestRows = 5, kMostRows = 1024, kMostRowsOfLongSums = 1 << 14, kLongSum = 512;
constexpr int64_t kFewestRowsOfSmall = 24, kSmallFilter = 1 << 16, kLongestSum = 6144;
// So many rows multiply with any filter. Elements of a filter for more rows, and for very many.
constexpr int64_t kAnyFilterRows = 128;
constexpr int64_t kMostOfFilter = 1 << 20, kVeryManyRows = 256, kMostForVeryMany = 1 << 18;

int64_t Pixels(const ConvolutionDesc& d) { return d.batch * host_runtime::Pixels(d.output); }
// The terms of a sum.
int64_t Depth(const ConvolutionDesc& d) { return host_runtime::Pixels(d.filter) * d.in_channels; }

// True if a product of so many pixels and a filter of one pixel gains by a packed filter.
bool PackingPays(const ConvolutionDesc& d, const Machine& machine) {
  const int64_t rows = Pixels(d);
  const int64_t most_rows = d.in_channels >= kLongSum ? kMostRowsOfLongSums : kMostRows;
  if (d.type != DType::kFloat || rows > most_rows || d.out_channels < 4 || d.in_channels > kLongestSum ||
      machine.isa == Isa::kBaseline) {
    return false;
  }
  const int64_t elements = d.in_channels * d.out_channels;
  if (rows < kFewestRows) {
    return rows == 1 && elements > kLeastOfOneRow && elements <= kMostOfOneRow && d.out_channels >= kFewestColumns;
  }
  // A small filter is read as it lies by few rows (matmul/panels.h).
  if (elements <= kSmallFilter) return rows >= kFewestRowsOfSmall;
  return rows <= kAnyFilterRows || elements <= (rows <= kVeryManyRows ? kMostOfFilter : kMostForVeryMany);
}

// True if the channels of a pixel are what a filter of one pixel multiplies.
bool ReadsPixels(const ConvolutionDesc& d) {
  return d.direction == Direction::kForward && d.order == ChannelOrder::kLast && d.groups == 1 &&
         HasFilterOfOnePixel(d);
}

// The product of rows of the input, or of its windows, and the filter's panels.
void MultiplyRows(const ConvolutionDesc& d, const float* rows, const Args& args, const ThreadTeam& team,
                  std::optional<FusedEpilogue>* epilogue) {
  const int64_t m = Pixels(d), k = Depth(d), n = d.out_channels;
  const PanelMatrix panels(k, n, static_cast<const float*>(args.in[2]));
  const ChainEpilogue* const chain = *epilogue ? (*epilogue)->InRegisters(n) : nullptr;
  // Another epilogue runs on whole rows: on those of each part, or afterwards where these are too few for parts.
  const bool has_rest = *epilogue && chain == nullptr && !HasFewRows(d);

  const PanelParts parts(m, n, k, /*is_packed=*/true, has_rest, team.size());
  auto* const y = static_cast<float*>(args.out[0]);
  team.ParallelFor(parts.count(), parts.grain(), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto [row, count, first, last] = parts.at(i);
      panels.MultiplySome(first, last, count, rows + row * k, k, y + row * n, row * n, chain);
      if (has_rest) (*epilogue)->Run(row * n, count * n);
    }
  });
  if (has_rest || chain != nullptr) epilogue->reset();
}

}  // namespace

bool HasFewRows(const ConvolutionDesc& d) { return Pixels(d) < kFewestRows; }

bool IsPointwise(const ConvolutionDesc& d) {
  for (int i = 0; i < d.spatial_rank; ++i) {
    if (d.stride[i] != 1) return false;
  }
  return ReadsPixels(d);
}

bool PointwisePays(const ConvolutionDesc& d, const Machine& machine) {
  return IsPointwise(d) && PackingPays(d, machine);
}

bool WindowsPay(const ConvolutionDesc& d, const Machine& machine) {
  if (ReadsPixels(d)) return PackingPays(d, machine);  // some of them
  return d.type == DType::kFloat && d.direction == Direction::kForward && ProductPays(d) && Depth(d) <= kLongestSum &&
         d.out_channels >= 4 && !HasFewRows(d) && machine.isa != Isa::kBaseline;
}

int64_t PointwiseFilterBytes(const ConvolutionDesc& d) {
  return PanelMatrix::Elements(Depth(d), d.out_channels) * static_cast<int64_t>(sizeof(float));
}

void PackPointwiseFilter(const ConvolutionDesc& d, const float* filter, float* packed) {
  PanelMatrix::Pack(Depth(d), d.out_channels, filter, packed);
}

void RunPointwise(const ConvolutionDesc& d, const Args& args, const ThreadTeam& team,
                  std::optional<FusedEpilogue>* epilogue) {
  MultiplyRows(d, static_cast<const float*>(args.in[0]), args, team, epilogue);
}

void RunWindowsInPanels(const ConvolutionDesc& d, const Args& args, const ThreadTeam& team,
                        std::optional<FusedEpilogue>* epilogue) {
  ScratchFrame frame;
  MultiplyRows(d, reinterpret_cast<const float*>(LayOutWindows(d, args.in[0], team, &frame)), args, team, epilogue);
}

}  // namespace xpu::cpu

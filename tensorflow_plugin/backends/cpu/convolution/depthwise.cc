#include "tensorflow_plugin/backends/cpu/convolution/depthwise.h"

#include <algorithm>

#include "tensorflow_plugin/backends/cpu/convolution/depthwise_loops.h"
#include "tensorflow_plugin/backends/cpu/cost.h"
#include "tensorflow_plugin/backends/cpu/elementwise/chain_epilogue.h"
#include "tensorflow_plugin/backends/cpu/simd/isa.h"
#include "tensorflow_plugin/backends/host_runtime/spatial.h"
#include "tensorflow_plugin/primitives/types.h"

namespace xpu::cpu {
namespace {

using host_runtime::ThreadTeam;

// Multiplications worth handing to another thread.
constexpr int64_t kGrainWork = 1 << 16;
constexpr int64_t kChannelsOfPart = 32;

}  // namespace

bool IsDepthwise(const ConvolutionDesc& d, const Machine& machine) {
  const int64_t width = d.filter[1];
  return d.direction == Direction::kForward && d.type == DType::kFloat && d.order == ChannelOrder::kLast &&
         d.spatial_rank == 2 && d.groups == d.in_channels && d.out_channels == d.in_channels && d.dilation[0] == 1 &&
         d.dilation[1] == 1 && (width == 3 || width == 5 || width == 7) && d.stride[1] <= 2 &&
         machine.isa != Isa::kBaseline;
}

void RunDepthwise(const ConvolutionDesc& d, const Args& args, const ThreadTeam& team,
                  std::optional<FusedEpilogue>* epilogue) {
  DepthwiseRows rows;
  rows.x = static_cast<const float*>(args.in[0]);
  rows.w = static_cast<const float*>(args.in[1]);
  rows.y = static_cast<float*>(args.out[0]);
  rows.channels = d.in_channels;
  rows.row = d.input[1] * d.in_channels;
  rows.in_rows = d.input[0];
  rows.in_cols = d.input[1];
  rows.out_rows = d.output[0];
  rows.out_cols = d.output[1];
  rows.filter_rows = d.filter[0];
  rows.stride = d.stride[0];
  rows.before_rows = d.pad_before[0];
  rows.before_cols = d.pad_before[1];
  const ChainEpilogue* const chain = *epilogue ? (*epilogue)->InRegisters(d.in_channels) : nullptr;
  const bool runs_on_rows = *epilogue && chain == nullptr;  // which is run on whole rows
  const auto run = XPU_PICK_ISA(Depthwise);
  const auto width = static_cast<int>(d.filter[1]), stride = static_cast<int>(d.stride[1]);
  const int64_t num_rows = d.batch * d.output[0], of_row = d.output[1] * d.in_channels;
  const int64_t work = num_rows * of_row * d.filter[0] * d.filter[1];
  const auto grain = [&](int64_t parts) { return std::max<int64_t>(1, kGrainWork * parts / work); };
  if (runs_on_rows) {
    // Some rows at a time, so that they are in the cache when the epilogue sees them.
    const int64_t at_once = std::max<int64_t>(1, kPartElements / 4 / of_row);
    team.ParallelFor(num_rows, grain(num_rows), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; row += at_once) {
        const int64_t last = std::min(row + at_once, end);
        run(rows, width, stride, {row, last, 0, d.in_channels}, nullptr);
        (*epilogue)->Run(row * of_row, (last - row) * of_row);
      }
    });
  } else if (num_rows < d.filter[0] * team.size() && d.in_channels > d.batch * d.input[0] * d.input[1]) {
    // Shares of fewer rows than the filter's read most of the image, and are uneven.
    const int64_t parts = Count(d.in_channels, kChannelsOfPart);
    team.ParallelFor(parts, grain(parts), [&](int64_t begin, int64_t end) {
      run(rows, width, stride, {0, num_rows, begin * kChannelsOfPart, std::min(end * kChannelsOfPart, d.in_channels)},
          chain);
    });
  } else {
    team.ParallelFor(num_rows, grain(num_rows), [&](int64_t begin, int64_t end) {
      run(rows, width, stride, {begin, end, 0, d.in_channels}, chain);
    });
  }
  epilogue->reset();
}

}  // namespace xpu::cpu

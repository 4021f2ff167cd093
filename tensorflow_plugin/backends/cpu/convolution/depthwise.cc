#include "tensorflow_plugin/backends/cpu/convolution/depthwise.h"

#include <algorithm>

#include "tensorflow_plugin/backends/cpu/convolution/depthwise_loops.h"
#include "tensorflow_plugin/backends/cpu/elementwise/chain_epilogue.h"
#include "tensorflow_plugin/backends/cpu/simd/isa.h"
#include "tensorflow_plugin/backends/host_runtime/spatial.h"
#include "tensorflow_plugin/primitives/types.h"

namespace xpu::cpu {
namespace {

using host_runtime::ThreadTeam;

// Multiplications worth handing to another thread.
constexpr int64_t kGrainWork = 1 << 16;

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
  const int64_t of_row = d.output[1] * d.in_channels, work = of_row * d.filter[0] * d.filter[1];
  team.ParallelFor(d.batch * d.output[0], std::max<int64_t>(1, kGrainWork / work), [&](int64_t begin, int64_t end) {
    if (!runs_on_rows) {
      run(rows, static_cast<int>(d.filter[1]), static_cast<int>(d.stride[1]), begin, end, chain);
      return;
    }
    // Some rows at a time, so that they are in the cache when the epilogue sees them.
    const int64_t at_once = std::max<int64_t>(1, kPartElements / 4 / of_row);
    for (int64_t row = begin; row < end; row += at_once) {
      const int64_t last = std::min(row + at_once, end);
      run(rows, static_cast<int>(d.filter[1]), static_cast<int>(d.stride[1]), row, last, nullptr);
      (*epilogue)->Run(row * of_row, (last - row) * of_row);
    }
  });
  epilogue->reset();
}

}  // namespace xpu::cpu

#include <algorithm>

#include "tensorflow_plugin/backends/cpu/cost.h"
#include "tensorflow_plugin/backends/cpu/elementwise/quantized_chain.h"
#include "tensorflow_plugin/backends/cpu/elementwise/tile_runner.h"
#include "tensorflow_plugin/backends/cpu/kernels.h"
#include "tensorflow_plugin/backends/host_runtime/shared_status.h"

namespace xpu::cpu {
namespace {

using host_runtime::ThreadTeam;

// Runs a program that quantizes floats to bytes, element by element. False if it is another program.
bool RunByteChain(const ElementwiseDesc& desc, const Args& args, const ThreadTeam& team) {
  constexpr int64_t kColumns = 64;
  constexpr double kNs = 0.2;  // of an element
  ScratchFrame frame;
  QuantizedChain chain;
  if (desc.shape.rank() != 1 || desc.in_strides[0] != Dims{1} || !MakeByteChain(desc, args, &frame, &chain)) {
    return false;
  }
  const FloatsInRows x{static_cast<const float*>(args.in[0]), kColumns};
  const int64_t n = desc.shape[0], rows = n / kColumns;
  team.ParallelFor(rows, static_cast<int64_t>(host_runtime::kGrainNs / (kNs * kColumns)),
                   [&](int64_t begin, int64_t end) {
                     ApplyQuantizedChain(chain, x.At(begin, 0), {begin, end - begin, 0, kColumns, kColumns});
                   });
  const int64_t rest = n - rows * kColumns;
  if (rest > 0) ApplyQuantizedChain(chain, x.At(rows, 0), {rows, 1, 0, rest, kColumns});
  return true;
}

// `merged` has its dimensions merged.
Status RunMerged(const ElementwiseDesc& merged, const Args& args, const ThreadTeam& team) {
  const int64_t n = merged.shape.num_elements();
  if (n == 0 || RunByteChain(merged, args, team)) return OkStatus();
  if (n <= TileRunner::kTile) {
    TileRunner runner(merged, args);
    runner.Run(0, n);
    return runner.status();
  }
  const PreparedProgram& prepared = Prepare(merged.program);
  // Parts are worth kGrainNs, whole numbers of tiles, and as many for each thread.
  const int64_t tiles = Count(n, TileRunner::kTile);
  int64_t parts = std::min(
      tiles, static_cast<int64_t>(static_cast<double>(n) * prepared.cost_per_element / host_runtime::kGrainNs));
  parts -= parts > team.size() ? parts % team.size() : 0;
  const int64_t tiles_each = Count(tiles, std::max<int64_t>(parts, 1));
  host_runtime::SharedStatus status;
  team.ParallelFor(n, tiles_each * TileRunner::kTile, [&](int64_t begin, int64_t end) {
    TileRunner runner(merged, args);
    runner.Run(begin, end - begin);
    status.Update(runner.status());
  });
  return status.get();
}

}  // namespace

Status CpuKernels::Run(const ElementwiseDesc& desc, const Args& args, const ThreadTeam& team) const {
  // A copy takes as long as a small program.
  return desc.shape.rank() <= 1 ? RunMerged(desc, args, team) : RunMerged(Merged(desc), args, team);
}

}  // namespace xpu::cpu

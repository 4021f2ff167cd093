#include <algorithm>

#include "tensorflow_plugin/backends/cpu/cost.h"
#include "tensorflow_plugin/backends/cpu/elementwise/tile_runner.h"
#include "tensorflow_plugin/backends/cpu/kernels.h"
#include "tensorflow_plugin/backends/host_runtime/shared_status.h"

namespace xpu::cpu {

Status CpuKernels::Run(const ElementwiseDesc& desc, const Args& args, const host_runtime::ThreadTeam& team) const {
  const ElementwiseDesc merged = Merged(desc);
  const int64_t n = merged.shape.num_elements();
  if (n == 0) return OkStatus();
  const PreparedProgram& prepared = Prepare(merged.program);
  // Parts are worth kGrainNs, whole numbers of tiles, and as many for each thread.
  const int64_t tiles = Count(n, TileRunner::kTile);
  int64_t parts = std::min(tiles, static_cast<int64_t>(static_cast<double>(n) * prepared.cost_per_element / kGrainNs));
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

}  // namespace xpu::cpu

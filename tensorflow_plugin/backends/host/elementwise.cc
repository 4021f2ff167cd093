#include "tensorflow_plugin/backends/host/kernels.h"
#include "tensorflow_plugin/backends/host/tile_runner.h"
#include "tensorflow_plugin/backends/runtime/shared_status.h"

namespace xpu::host {

Status HostKernels::Run(const ElementwiseDesc& desc, const Args& args, const runtime::ThreadTeam& team) const {
  const ElementwiseDesc merged = Merged(desc);
  const int64_t n = merged.shape.num_elements();
  if (n == 0) return OkStatus();
  const PreparedProgram& prepared = Prepare(merged.program);
  // A grain is worth some 20 us, and a whole number of tiles.
  const int64_t tiles = static_cast<int64_t>(20000 / prepared.cost_per_element / TileRunner::kTile) + 1;
  runtime::SharedStatus status;
  team.ParallelFor(n, tiles * TileRunner::kTile, [&](int64_t begin, int64_t end) {
    TileRunner runner(merged, args);
    runner.Run(begin, end - begin);
    status.Update(runner.status());
  });
  return status.get();
}

}  // namespace xpu::host

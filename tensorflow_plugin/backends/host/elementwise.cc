#include <mutex>

#include "tensorflow_plugin/backends/host/kernels.h"
#include "tensorflow_plugin/backends/host/tile_runner.h"

namespace xpu::host {

Status HostKernels::Run(const ElementwiseDesc& desc, const Args& args, const runtime::ThreadTeam& team) const {
  const ElementwiseDesc merged = Merged(desc);
  const int64_t n = merged.shape.num_elements();
  if (n == 0) return OkStatus();
  const PreparedProgram& prepared = Prepare(merged.program);
  // A grain is worth some 20 us, and a whole number of tiles.
  const int64_t tiles = static_cast<int64_t>(20000 / prepared.cost_per_element / TileRunner::kTile) + 1;
  std::mutex mu;
  Status status;
  team.ParallelFor(n, tiles * TileRunner::kTile, [&](int64_t begin, int64_t end) {
    TileRunner runner(merged, args);
    runner.Run(begin, end - begin);
    if (!runner.status().ok()) {
      std::lock_guard<std::mutex> lock(mu);
      status = runner.status();
    }
  });
  return status;
}

}  // namespace xpu::host

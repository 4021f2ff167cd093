// The epilogue of a product or a convolution, computed part by part while the results are in the cache.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_EPILOGUE_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_EPILOGUE_H_

#include <cstdint>
#include <optional>

#include "tensorflow_plugin/backends/cpu/elementwise/tile_runner.h"
#include "tensorflow_plugin/backends/cpu/kernels.h"
#include "tensorflow_plugin/backends/plain/loops.h"
#include "tensorflow_plugin/primitives/check.h"

namespace xpu::cpu {

class Epilogue {
 public:
  // The most results of a part, so that they are still in the core's own cache when the epilogue sees them.
  static constexpr int64_t kPartElements = 1 << 17;

  // For a MatMulDesc or ConvolutionDesc that has one.
  template <typename Desc>
  Epilogue(const Desc& d, const Args& args) : rest_(plain::EpilogueOf(d, args)) {
    rest_.desc = Merged(rest_.desc);
  }

  // For ranges of results that are there, in row-major order; one per thread. Not beyond the epilogue's life.
  TileRunner Runner() const { return TileRunner(rest_.desc, rest_.args); }
  Status RunAll(const host_runtime::ThreadTeam& team) const { return Kernels().Run(rest_.desc, rest_.args, team); }

 private:
  plain::Epilogue rest_;
};

// Calls `compute(epilogue)` with the epilogue of `desc`, if it has one. The function runs it with its parts and takes
// it away, or leaves it to be run on everything.
template <typename Desc, typename Compute>
Status WithEpilogue(const Desc& desc, const Args& args, const host_runtime::ThreadTeam& team, Compute compute) {
  std::optional<Epilogue> epilogue;
  if (HasEpilogue(desc)) epilogue.emplace(desc, args);
  XPU_RETURN_IF_ERROR(compute(&epilogue));
  return epilogue ? epilogue->RunAll(team) : OkStatus();
}

}  // namespace xpu::cpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_EPILOGUE_H_

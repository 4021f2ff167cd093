// The epilogue of a product or a convolution, computed part by part while the results are in the cache.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_EPILOGUE_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_EPILOGUE_H_

#include <algorithm>
#include <cstdint>
#include <optional>

#include "tensorflow_plugin/backends/cpu/elementwise/finish.h"
#include "tensorflow_plugin/backends/cpu/elementwise/tile_runner.h"
#include "tensorflow_plugin/backends/cpu/kernels.h"
#include "tensorflow_plugin/backends/cpu/scratch.h"
#include "tensorflow_plugin/backends/plain/loops.h"
#include "tensorflow_plugin/primitives/check.h"

namespace xpu::cpu {

class Epilogue {
 public:
  // The most results of a part, so that they are still in the core's own cache when the epilogue sees them.
  static constexpr int64_t kPartElements = 1 << 17;

  // For a MatMulDesc or ConvolutionDesc that has one. The steps' operands lie in `frame`.
  template <typename Desc>
  Epilogue(const Desc& d, const Args& args, ScratchFrame* frame) : rest_(plain::EpilogueOf(d, args)) {
    rest_.desc = Merged(rest_.desc);
    is_chain_ = MakeFinish(rest_.desc, rest_.args, frame, &finish_);
  }

  // The epilogue as steps on rows of so many elements; null if it is none.
  const Finish* InRegisters(int64_t columns) const {
    return is_chain_ && (finish_.columns == 0 || finish_.columns == columns) ? &finish_ : nullptr;
  }

  // For a range of results that are there, in row-major order.
  void Run(int64_t begin, int64_t n) const {
    if (is_chain_ && finish_.columns != 0 && begin % finish_.columns == 0 && n % finish_.columns == 0) {
      FinishInPlace(finish_, begin / finish_.columns, n / finish_.columns, static_cast<float*>(rest_.args.out[0]));
    } else {
      TileRunner(rest_.desc, rest_.args).Run(begin, n);
    }
  }
  Status RunAll(const host_runtime::ThreadTeam& team) const {
    const int64_t elements = rest_.desc.shape.num_elements();
    if (!is_chain_ || finish_.columns == 0) return Kernels().Run(rest_.desc, rest_.args, team);
    constexpr int64_t kGrainElements = 1 << 16;
    const int64_t grain = std::max<int64_t>(1, kGrainElements / finish_.columns);
    team.ParallelFor(elements / finish_.columns, grain, [&](int64_t begin, int64_t end) {
      Run(begin * finish_.columns, (end - begin) * finish_.columns);
    });
    return OkStatus();
  }

 private:
  plain::Epilogue rest_;
  bool is_chain_;
  Finish finish_;
};

// Calls `compute(epilogue)` with the epilogue of `desc`, if it has one. The function runs it with its parts and takes
// it away, or leaves it to be run on everything.
template <typename Desc, typename Compute>
Status WithEpilogue(const Desc& desc, const Args& args, const host_runtime::ThreadTeam& team, Compute compute) {
  ScratchFrame frame;
  std::optional<Epilogue> epilogue;
  if (HasEpilogue(desc)) epilogue.emplace(desc, args, &frame);
  XPU_RETURN_IF_ERROR(compute(&epilogue));
  return epilogue ? epilogue->RunAll(team) : OkStatus();
}

}  // namespace xpu::cpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_EPILOGUE_H_

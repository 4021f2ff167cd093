// The epilogue of a product. It is computed in one of three ways, and a profile says in which. The first is within the
// product's kernel, while the sums are in registers. The second is part by part, while the results are in the cache.
// The third is afterwards, on all of them.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_EPILOGUE_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_EPILOGUE_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>

#include "tensorflow_plugin/backends/cpu/elementwise/chain_epilogue.h"
#include "tensorflow_plugin/backends/cpu/elementwise/tile_runner.h"
#include "tensorflow_plugin/backends/cpu/kernels.h"
#include "tensorflow_plugin/backends/cpu/machine.h"
#include "tensorflow_plugin/backends/cpu/scratch.h"
#include "tensorflow_plugin/backends/host_runtime/kernel_span.h"
#include "tensorflow_plugin/backends/plain/loops.h"
#include "tensorflow_plugin/primitives/check.h"
#include "tensorflow_plugin/trace/trace_events.h"

namespace xpu::cpu {

class FusedEpilogue {
 public:
  // `d` has an epilogue. It and `args` outlive this object. The steps' operands lie in `frame`.
  template <typename Desc>
  FusedEpilogue(const Desc& d, const Args& args, ScratchFrame* frame)
      : product_(&d),
        elements_(d.epilogue.shape.num_elements()),
        args_(args),
        make_([](const void* product, const Args& of) {
          return plain::EpilogueOf(*static_cast<const Desc*>(product), of);
        }) {
    Args chain;
    chain.out[0] = args.out[0];
    std::copy_n(args.in + NumOperands(d), d.epilogue.program->num_inputs() - 1, chain.in + 1);
    has_chain_ = MakeChainEpilogue(d.epilogue, chain, frame, &chain_);
  }

  ~FusedEpilogue() {
    if (!trace::On()) return;
    host_runtime::KernelSpan::SetEpilogue(ran_afterwards_ ? "afterwards"
                                          : ran_on_parts_ ? "part by part"
                                                          : "in registers");
  }
  FusedEpilogue(const FusedEpilogue&) = delete;
  FusedEpilogue& operator=(const FusedEpilogue&) = delete;

  // The epilogue as a chain on rows of so many elements; null if it is no chain.
  const ChainEpilogue* InRegisters(int64_t columns) const {
    return has_chain_ && (chain_.columns == 0 || chain_.columns == columns) ? &chain_ : nullptr;
  }

  // For a range of results that are there, in row-major order.
  void Run(int64_t begin, int64_t n) const {
    if (trace::On()) ran_on_parts_ = true;
    if (has_chain_ && begin % unit() == 0 && n % unit() == 0) {
      ApplyChainInPlace(chain_, begin, n, static_cast<float*>(args_.out[0]));
    } else {
      TileRunner(command().desc, command().args).Run(begin, n);
    }
  }
  Status RunAll(const host_runtime::ThreadTeam& team) const {
    ran_afterwards_ = true;
    if (!has_chain_) return Kernels().Run(command().desc, command().args, team);
    constexpr int64_t kGrainElements = 1 << 16;
    const int64_t grain = std::max<int64_t>(1, kGrainElements / unit());
    team.ParallelFor(elements_ / unit(), grain,
                     [&](int64_t begin, int64_t end) { Run(begin * unit(), (end - begin) * unit()); });
    return OkStatus();
  }

 private:
  // Elements that the chain needs at a time: a row, or one.
  int64_t unit() const { return std::max<int64_t>(1, chain_.columns); }

  // The inputs of a product that come before its epilogue's.
  static int NumOperands(const MatMulDesc&) { return 2; }
  static int NumOperands(const WeightMatMulDesc&) { return 5; }
  static int NumOperands(const ConvolutionDesc& d) { return xpu::NumOperands(d); }

  // As a command of its own. It is made when it is first needed: that takes as long as a small product.
  const plain::EpilogueCommand& command() const {
    std::call_once(made_, [this] {
      command_.emplace(make_(product_, args_));
      command_->desc = Merged(command_->desc);
    });
    return *command_;
  }

  const void* const product_;
  const int64_t elements_;
  const Args& args_;
  plain::EpilogueCommand (*const make_)(const void* product, const Args& args);
  mutable std::once_flag made_;
  mutable std::optional<plain::EpilogueCommand> command_;
  mutable std::atomic<bool> ran_on_parts_{false};  // is not kept while no profiler listens
  mutable bool ran_afterwards_ = false;
  bool has_chain_;
  ChainEpilogue chain_;
};

// The form for a product with rows of so many elements. It decides the engine; the engine may still leave a chain to
// Run or RunAll.
inline EpilogueForm FormOf(const std::optional<FusedEpilogue>& epilogue, int64_t columns) {
  if (!epilogue.has_value()) return EpilogueForm::kNone;
  return epilogue->InRegisters(columns) != nullptr ? EpilogueForm::kChain : EpilogueForm::kProgram;
}

// Calls `compute(epilogue)` with the epilogue of `desc`, if it has one. The function runs it in registers or on parts
// and resets it, or leaves it to be run afterwards.
template <typename Desc, typename Compute>
Status WithEpilogue(const Desc& desc, const Args& args, const host_runtime::ThreadTeam& team, Compute compute) {
  ScratchFrame frame;
  std::optional<FusedEpilogue> epilogue;
  if (HasEpilogue(desc)) epilogue.emplace(desc, args, &frame);
  XPU_RETURN_IF_ERROR(compute(&epilogue));
  return epilogue ? epilogue->RunAll(team) : OkStatus();
}

}  // namespace xpu::cpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_EPILOGUE_H_

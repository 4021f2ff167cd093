#include <new>

#include "tensorflow_plugin/backends/cpu/arrays/row_list.h"
#include "tensorflow_plugin/backends/cpu/cost.h"
#include "tensorflow_plugin/backends/cpu/kernels.h"
#include "tensorflow_plugin/backends/cpu/linalg/dense.h"
#include "tensorflow_plugin/backends/cpu/simd/isa.h"
#include "tensorflow_plugin/backends/plain/loops.h"

namespace xpu::cpu {
namespace {

// Factorizes or solves matrices [begin, end); the first that fails, or -1.
template <typename Desc>
using Work = int64_t (*)(const Desc& desc, const Args& args, int64_t begin, int64_t end);

template <typename Desc, int64_t (*run)(const Desc&, const Matrices&, int64_t, int64_t)>
int64_t OnBuffers(const Desc& desc, const Args& args, int64_t begin, int64_t end) {
  return run(desc, {args.in, args.out}, begin, end);
}

Work<FactorizeDesc> WorkOf(const FactorizeDesc& desc) {
  switch (desc.type) {
#define XPU_CASE(type) \
  case DType::type:    \
    return &OnBuffers<FactorizeDesc, &FactorizeDense<DType::type>>;
    XPU_DENSE_TYPES(XPU_CASE)
#undef XPU_CASE
    default:
      return nullptr;
  }
}

Work<SolveDesc> WorkOf(const SolveDesc& desc) {
  if (desc.kind == SolveKind::kTridiagonal) {
    return [](const SolveDesc& d, const Args& args, int64_t begin, int64_t end) -> int64_t {
      plain::SolveTridiagonal(d, args, begin, end);
      return -1;
    };
  }
  switch (desc.type) {
#define XPU_CASE(type) \
  case DType::type:    \
    return &OnBuffers<SolveDesc, &SolveDense<DType::type>>;
    XPU_DENSE_TYPES(XPU_CASE)
#undef XPU_CASE
    default:
      return nullptr;
  }
}

// Each thread takes matrices of its own.
template <typename Desc>
Status RunBatch(const Desc& desc, const Args& args, int64_t ns, const host_runtime::ThreadTeam& team) {
  // Eigen's code here takes instructions that an old CPU lacks.
  const Work<Desc> work = WorkOf(desc);
  if (work == nullptr || ActiveIsa() == Isa::kBaseline) return plain::Run(desc, args);
  FirstBad bad;
  try {
    team.ParallelFor(desc.batch, Grain(ns, desc.batch), [&](int64_t begin, int64_t end) {
      const int64_t first = work(desc, args, begin, end);
      if (first >= 0) bad.Report(first);
    });
  } catch (const std::bad_alloc&) {
    return errors::ResourceExhausted("no memory for the temporaries of ", Name(desc));
  }
  XPU_REQUIRE(!bad.any(), errors::InvalidArgument(Name(desc), ": not of matrix ", bad.position()));
  return OkStatus();
}

}  // namespace

Status CpuKernels::Run(const FactorizeDesc& desc, const Args& args, const host_runtime::ThreadTeam& team) const {
  return RunBatch(desc, args, EstimateNs(desc), team);
}

Status CpuKernels::Run(const SolveDesc& desc, const Args& args, const host_runtime::ThreadTeam& team) const {
  return RunBatch(desc, args, EstimateNs(desc), team);
}

}  // namespace xpu::cpu

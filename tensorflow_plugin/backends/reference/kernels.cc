#include "tensorflow_plugin/backends/reference/kernels.h"

#include <algorithm>

#include "tensorflow_plugin/backends/plain/loops.h"

namespace xpu::reference {

const ReferenceKernels& Kernels() {
  // Never destroyed: worker threads may be at work when the process ends.
  static const auto* const kernels = new ReferenceKernels;
  return *kernels;
}

namespace {

template <typename Desc>
bool SupportsAsDefined(const Desc& desc) {
  return IsDefined(desc);
}
// No layout of filters is better than the one they have.
bool SupportsAsDefined(const ConvolutionDesc& desc) {
  return IsDefined(desc) && desc.packed_filter_bytes == 0 && desc.direction != Direction::kPackFilter;
}

}  // namespace

// The reference is the specification: it supports everything that the descriptors define.
#define XPU_SUPPORTS(name) \
  bool ReferenceKernels::Supports(const name##Desc& desc) const { return SupportsAsDefined(desc); }
XPU_PRIMITIVES(XPU_SUPPORTS)
#undef XPU_SUPPORTS

namespace {

// An element of a plain loop, with its instructions, costs some ten nanoseconds; what multiplies and adds many times
// per element is not priced.
constexpr double kElementNs = 10;

int64_t Total(double elements) { return static_cast<int64_t>(std::min(elements * kElementNs + 100, 1e18)); }
double Product(const Dims& dims) {
  double product = 1;
  for (int64_t extent : dims) product *= static_cast<double>(extent);
  return product;
}

template <typename Desc>
int64_t Estimate(const Desc&) {
  return host_runtime::KernelSet::kNoEstimate;
}
int64_t Estimate(const ElementwiseDesc& desc) {
  return Total(Product(desc.shape) * static_cast<double>(1 + desc.program->instrs().size()));
}
int64_t Estimate(const ReduceDesc& desc) { return Estimate(desc.source); }
int64_t Estimate(const CopyStridedDesc& desc) { return Total(Product(desc.shape)); }
int64_t Estimate(const RandomDesc& desc) { return Total(static_cast<double>(desc.n)); }
int64_t Estimate(const CompactDesc& desc) { return Total(Product(desc.shape)); }

}  // namespace

#define XPU_ESTIMATE(name) \
  int64_t ReferenceKernels::EstimateNs(const name##Desc& desc) const { return Estimate(desc); }
XPU_PRIMITIVES(XPU_ESTIMATE)
#undef XPU_ESTIMATE

#define XPU_PLAIN(name)                                                                                           \
  Status ReferenceKernels::Run(const name##Desc& desc, const Args& args, const host_runtime::ThreadTeam&) const { \
    return plain::Run(desc, args);                                                                                \
  }
XPU_PLAIN(Reduce)
XPU_PLAIN(FindWeights)
XPU_PLAIN(QuantizeRows)
XPU_PLAIN(Pool)
XPU_PLAIN(Normalize)
XPU_PLAIN(Softmax)
XPU_PLAIN(Sample)
XPU_PLAIN(Resample)
XPU_PLAIN(Suppress)
XPU_PLAIN(SelectBoxes)
XPU_PLAIN(Factorize)
XPU_PLAIN(Solve)
#undef XPU_PLAIN

Status ReferenceKernels::Run(const MatMulDesc& desc, const Args& args, const host_runtime::ThreadTeam& team) const {
  XPU_RETURN_IF_ERROR(plain::Run(desc, args));
  return HasEpilogue(desc) ? RunEpilogue(plain::EpilogueOf(desc, args), team) : OkStatus();
}

Status ReferenceKernels::Run(const WeightMatMulDesc& desc, const Args& args,
                             const host_runtime::ThreadTeam& team) const {
  XPU_RETURN_IF_ERROR(plain::Run(desc, args));
  return HasEpilogue(desc) ? RunEpilogue(plain::EpilogueOf(desc, args), team) : OkStatus();
}

Status ReferenceKernels::RunEpilogue(const plain::EpilogueCommand& epilogue,
                                     const host_runtime::ThreadTeam& team) const {
  return Run(epilogue.desc, epilogue.args, team);
}

}  // namespace xpu::reference

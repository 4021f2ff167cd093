#include "tensorflow_plugin/backends/cpu/kernels.h"

#include "tensorflow_plugin/backends/cpu/machine.h"
#include "tensorflow_plugin/backends/cpu/simd/isa.h"
#include "tensorflow_plugin/backends/plain/loops.h"

namespace xpu::cpu {

const CpuKernels& Kernels() {
  // Never destroyed: worker threads may be at work when the process ends.
  static const auto* const kernels = new CpuKernels;
  return *kernels;
}

const char* CpuKernels::instruction_set() const { return Name(ActiveIsa()); }

// Half of the last cache: weights and the other processes need some, too.
int64_t CpuKernels::CacheBytes() const { return Machine::OfProcess().last_cache_bytes / 2; }

// It runs on floats that other weights have become.
EpilogueWay CpuKernels::WayOfEpilogue(const WeightMatMulDesc&) const { return EpilogueWay::kAfterwards; }

namespace {

template <typename Desc>
bool SupportsAsDefined(const Desc& desc) {
  return IsDefined(desc);
}
// A filter is laid out in one way.
bool SupportsAsDefined(const ConvolutionDesc& desc) {
  const bool as_it_is = desc.packed_filter_bytes == 0 && desc.direction != Direction::kPackFilter;
  return IsDefined(desc) && (as_it_is || desc.packed_filter_bytes == Kernels().PackedFilterBytes(desc));
}

}  // namespace

// All that the descriptors define: what has no fast form here has a plain one.
#define XPU_SUPPORTS(name) \
  bool CpuKernels::Supports(const name##Desc& desc) const { return SupportsAsDefined(desc); }
XPU_PRIMITIVES(XPU_SUPPORTS)
#undef XPU_SUPPORTS

// The primitives without a faster form.
#define XPU_PLAIN(name)                                                                                     \
  Status CpuKernels::Run(const name##Desc& desc, const Args& args, const host_runtime::ThreadTeam&) const { \
    return plain::Run(desc, args);                                                                          \
  }
XPU_PLAIN(FindWeights)  // runs once
XPU_PLAIN(Suppress)     // one candidate after the other: what is kept decides about the next
#undef XPU_PLAIN

}  // namespace xpu::cpu

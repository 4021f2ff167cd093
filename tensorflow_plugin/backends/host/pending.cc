#include "tensorflow_plugin/backends/host/kernels.h"

// PENDING: each of these gets a file of its own.
namespace xpu::host {
#define XPU_PENDING(name)                                                                     \
  Status HostKernels::Run(const name##Desc&, const Args&, const runtime::ThreadTeam&) const { \
    return errors::Unimplemented(#name);                                                      \
  }
XPU_PENDING(Scan)
XPU_PENDING(Sort)
XPU_PENDING(Search)
XPU_PENDING(Unique)
XPU_PENDING(Sample)
XPU_PENDING(Fft)
XPU_PENDING(Factorize)
XPU_PENDING(Solve)
XPU_PENDING(Suppress)
#undef XPU_PENDING
#define XPU_PENDING(name) \
  int64_t HostKernels::EstimateNs(const name##Desc&) const { return kNoEstimate; }
XPU_PENDING(Scan)
XPU_PENDING(Sort)
XPU_PENDING(Search)
XPU_PENDING(Unique)
XPU_PENDING(Sample)
XPU_PENDING(Fft)
XPU_PENDING(Factorize)
XPU_PENDING(Solve)
XPU_PENDING(Suppress)
#undef XPU_PENDING
}  // namespace xpu::host

#include "tensorflow_plugin/backends/reference/kernels.h"

// PENDING: each of these gets a file of its own.
namespace xpu::reference {
#define XPU_PENDING(name)                                                                          \
  Status ReferenceKernels::Run(const name##Desc&, const Args&, const runtime::ThreadTeam&) const { \
    return errors::Unimplemented(#name);                                                           \
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
}  // namespace xpu::reference

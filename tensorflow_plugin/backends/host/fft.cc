#include "tensorflow_plugin/backends/host/kernels.h"

// PENDING
namespace xpu::host {

int64_t HostKernels::EstimateNs(const FftDesc&) const { return kNoEstimate; }

Status HostKernels::Run(const FftDesc&, const Args&, const runtime::ThreadTeam&) const {
  return errors::Unimplemented("Fft");
}

}  // namespace xpu::host

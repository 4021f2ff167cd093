#include "tensorflow_plugin/backends/host/kernels.h"

// PENDING
namespace xpu::host {

int64_t HostKernels::EstimateNs(const SolveDesc&) const { return kNoEstimate; }

Status HostKernels::Run(const SolveDesc&, const Args&, const runtime::ThreadTeam&) const {
  return errors::Unimplemented("Solve");
}

}  // namespace xpu::host

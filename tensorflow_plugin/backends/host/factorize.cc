#include "tensorflow_plugin/backends/host/kernels.h"

// PENDING
namespace xpu::host {

int64_t HostKernels::EstimateNs(const FactorizeDesc&) const { return kNoEstimate; }

Status HostKernels::Run(const FactorizeDesc&, const Args&, const runtime::ThreadTeam&) const {
  return errors::Unimplemented("Factorize");
}

}  // namespace xpu::host

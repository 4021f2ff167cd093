#include "tensorflow_plugin/backends/host/kernels.h"

// PENDING
namespace xpu::host {

int64_t HostKernels::EstimateNs(const ScanDesc&) const { return kNoEstimate; }

Status HostKernels::Run(const ScanDesc&, const Args&, const runtime::ThreadTeam&) const {
  return errors::Unimplemented("Scan");
}

}  // namespace xpu::host

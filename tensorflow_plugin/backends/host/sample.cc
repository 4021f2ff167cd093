#include "tensorflow_plugin/backends/host/kernels.h"

// PENDING
namespace xpu::host {

int64_t HostKernels::EstimateNs(const SampleDesc&) const { return kNoEstimate; }

Status HostKernels::Run(const SampleDesc&, const Args&, const runtime::ThreadTeam&) const {
  return errors::Unimplemented("Sample");
}

}  // namespace xpu::host

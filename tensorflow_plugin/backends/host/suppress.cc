#include "tensorflow_plugin/backends/host/kernels.h"

// PENDING
namespace xpu::host {

int64_t HostKernels::EstimateNs(const SuppressDesc&) const { return kNoEstimate; }

Status HostKernels::Run(const SuppressDesc&, const Args&, const runtime::ThreadTeam&) const {
  return errors::Unimplemented("Suppress");
}

}  // namespace xpu::host

#include "tensorflow_plugin/backends/host/kernels.h"

// PENDING
namespace xpu::host {

int64_t HostKernels::EstimateNs(const UniqueDesc&) const { return kNoEstimate; }

Status HostKernels::Run(const UniqueDesc&, const Args&, const runtime::ThreadTeam&) const {
  return errors::Unimplemented("Unique");
}

}  // namespace xpu::host

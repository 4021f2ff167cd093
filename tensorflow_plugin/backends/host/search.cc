#include "tensorflow_plugin/backends/host/kernels.h"

// PENDING
namespace xpu::host {

int64_t HostKernels::EstimateNs(const SearchDesc&) const { return kNoEstimate; }

Status HostKernels::Run(const SearchDesc&, const Args&, const runtime::ThreadTeam&) const {
  return errors::Unimplemented("Search");
}

}  // namespace xpu::host

#include "tensorflow_plugin/backends/reference/kernels.h"

// PENDING
namespace xpu::reference {

Status ReferenceKernels::Run(const ScanDesc&, const Args&, const runtime::ThreadTeam&) const {
  return errors::Unimplemented("Scan");
}

}  // namespace xpu::reference

#include "tensorflow_plugin/backends/reference/kernels.h"

// PENDING
namespace xpu::reference {

Status ReferenceKernels::Run(const SolveDesc&, const Args&, const runtime::ThreadTeam&) const {
  return errors::Unimplemented("Solve");
}

}  // namespace xpu::reference

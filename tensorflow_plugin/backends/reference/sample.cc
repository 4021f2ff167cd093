#include "tensorflow_plugin/backends/reference/kernels.h"

// PENDING
namespace xpu::reference {

Status ReferenceKernels::Run(const SampleDesc&, const Args&, const runtime::ThreadTeam&) const {
  return errors::Unimplemented("Sample");
}

}  // namespace xpu::reference

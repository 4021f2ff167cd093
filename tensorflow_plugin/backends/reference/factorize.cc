#include "tensorflow_plugin/backends/reference/kernels.h"

// PENDING
namespace xpu::reference {

Status ReferenceKernels::Run(const FactorizeDesc&, const Args&, const runtime::ThreadTeam&) const {
  return errors::Unimplemented("Factorize");
}

}  // namespace xpu::reference

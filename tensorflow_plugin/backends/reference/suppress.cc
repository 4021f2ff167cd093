#include "tensorflow_plugin/backends/reference/kernels.h"

// PENDING
namespace xpu::reference {

Status ReferenceKernels::Run(const SuppressDesc&, const Args&, const runtime::ThreadTeam&) const {
  return errors::Unimplemented("Suppress");
}

}  // namespace xpu::reference

#include "tensorflow_plugin/backends/reference/kernels.h"

// PENDING
namespace xpu::reference {

Status ReferenceKernels::Run(const UniqueDesc&, const Args&, const runtime::ThreadTeam&) const {
  return errors::Unimplemented("Unique");
}

}  // namespace xpu::reference

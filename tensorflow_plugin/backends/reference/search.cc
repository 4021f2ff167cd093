#include "tensorflow_plugin/backends/reference/kernels.h"

// PENDING
namespace xpu::reference {

Status ReferenceKernels::Run(const SearchDesc&, const Args&, const runtime::ThreadTeam&) const {
  return errors::Unimplemented("Search");
}

}  // namespace xpu::reference

#include "tensorflow_plugin/backends/reference/kernels.h"

// PENDING
namespace xpu::reference {

Status ReferenceKernels::Run(const FftDesc&, const Args&, const runtime::ThreadTeam&) const {
  return errors::Unimplemented("Fft");
}

}  // namespace xpu::reference

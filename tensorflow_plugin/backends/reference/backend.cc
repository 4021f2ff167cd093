#include "tensorflow_plugin/backends/reference/backend.h"

#include "tensorflow_plugin/backends/host_runtime/host_backend.h"
#include "tensorflow_plugin/backends/reference/kernels.h"

namespace xpu::reference {

// Never destroyed: worker threads may be at work when the process ends.
const Backend& TheBackend() {
  static const Backend* const backend = new host_runtime::HostBackend("XPU_REFERENCE", Kernels());
  return *backend;
}

}  // namespace xpu::reference

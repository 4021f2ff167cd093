#include "tensorflow_plugin/backends/host/backend.h"

#include "tensorflow_plugin/backends/host/kernels.h"
#include "tensorflow_plugin/backends/runtime/host_backend.h"

namespace xpu::host {

// Never destroyed: worker threads may be at work when the process ends.
const Backend& TheBackend() {
  static const Backend* const backend = new runtime::HostBackend("XPU_HOST", Kernels());
  return *backend;
}

}  // namespace xpu::host

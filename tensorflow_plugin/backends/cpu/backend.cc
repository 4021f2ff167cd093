#include "tensorflow_plugin/backends/cpu/backend.h"

#include "tensorflow_plugin/backends/cpu/kernels.h"
#include "tensorflow_plugin/backends/host_runtime/host_backend.h"

namespace xpu::cpu {

// Never destroyed: worker threads may be at work when the process ends.
const Backend& TheBackend() {
  static const Backend* const backend = new host_runtime::HostBackend("XPU_HOST", Kernels());
  return *backend;
}

}  // namespace xpu::cpu

#include "tensorflow_plugin/backends/backends.h"

#include "tensorflow_plugin/backends/cpu/backend.h"
#include "tensorflow_plugin/backends/cuda/backend.h"
#include "tensorflow_plugin/backends/opencl/backend.h"
#include "tensorflow_plugin/backends/reference/backend.h"

namespace xpu {

const std::vector<const Backend*>& Backends() {
  static const std::vector<const Backend*> backends = {
      &cpu::TheBackend(),
      &reference::TheBackend(),
      &opencl::TheBackend(),
      &cuda::TheBackend(),
  };
  return backends;
}

const Backend* FindBackend(const std::string& subdevice_type) {
  for (const Backend* backend : Backends()) {
    if (subdevice_type == backend->subdevice_type()) return backend;
  }
  return nullptr;
}

}  // namespace xpu

#ifndef TENSORFLOW_PLUGIN_BACKENDS_HOST_BACKEND_H_
#define TENSORFLOW_PLUGIN_BACKENDS_HOST_BACKEND_H_

#include <memory>

#include "tensorflow_plugin/primitives/backend.h"

namespace xpu::host {

// The backend of subdevice type XPU_HOST.
const Backend& HostBackend();

// A device with these kernels for tensors in host memory: see runtime::NewSynchronousDevice.
std::unique_ptr<Device> NewSynchronousDevice(int threads);

}  // namespace xpu::host

#endif  // TENSORFLOW_PLUGIN_BACKENDS_HOST_BACKEND_H_

#ifndef TENSORFLOW_PLUGIN_BACKENDS_REFERENCE_BACKEND_H_
#define TENSORFLOW_PLUGIN_BACKENDS_REFERENCE_BACKEND_H_

#include <memory>

#include "tensorflow_plugin/primitives/backend.h"

namespace xpu::reference {

// The backend of subdevice type XPU_REFERENCE.
const Backend& ReferenceBackend();

// A device with these kernels for tensors in host memory: see runtime::NewSynchronousDevice.
std::unique_ptr<Device> NewSynchronousDevice(int threads);

}  // namespace xpu::reference

#endif  // TENSORFLOW_PLUGIN_BACKENDS_REFERENCE_BACKEND_H_

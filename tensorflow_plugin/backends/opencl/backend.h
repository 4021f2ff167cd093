#ifndef TENSORFLOW_PLUGIN_BACKENDS_OPENCL_BACKEND_H_
#define TENSORFLOW_PLUGIN_BACKENDS_OPENCL_BACKEND_H_

#include "tensorflow_plugin/primitives/backend.h"

namespace xpu::opencl {

// The backend of subdevice type XPU_OPENCL.
const Backend& TheBackend();

}  // namespace xpu::opencl

#endif  // TENSORFLOW_PLUGIN_BACKENDS_OPENCL_BACKEND_H_

#ifndef TENSORFLOW_PLUGIN_BACKENDS_HOST_BACKEND_H_
#define TENSORFLOW_PLUGIN_BACKENDS_HOST_BACKEND_H_

#include "tensorflow_plugin/primitives/backend.h"

namespace xpu::host {

// The backend of subdevice type XPU_HOST.
const Backend& TheBackend();

}  // namespace xpu::host

#endif  // TENSORFLOW_PLUGIN_BACKENDS_HOST_BACKEND_H_

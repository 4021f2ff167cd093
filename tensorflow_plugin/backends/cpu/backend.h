#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_BACKEND_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_BACKEND_H_

#include "tensorflow_plugin/primitives/backend.h"

namespace xpu::cpu {

// The backend of subdevice type XPU_HOST.
const Backend& TheBackend();

}  // namespace xpu::cpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_BACKEND_H_

#ifndef TENSORFLOW_PLUGIN_BACKENDS_REFERENCE_BACKEND_H_
#define TENSORFLOW_PLUGIN_BACKENDS_REFERENCE_BACKEND_H_

#include "tensorflow_plugin/primitives/backend.h"

namespace xpu::reference {

// The backend of subdevice type XPU_REFERENCE.
const Backend& TheBackend();

}  // namespace xpu::reference

#endif  // TENSORFLOW_PLUGIN_BACKENDS_REFERENCE_BACKEND_H_

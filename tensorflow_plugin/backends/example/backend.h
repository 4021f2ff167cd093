#ifndef TENSORFLOW_PLUGIN_BACKENDS_EXAMPLE_BACKEND_H_
#define TENSORFLOW_PLUGIN_BACKENDS_EXAMPLE_BACKEND_H_

#include "tensorflow_plugin/primitives/backend.h"

namespace xpu::example {

// The backend of subdevice type XPU_EXAMPLE.
const Backend& TheBackend();

}  // namespace xpu::example

#endif  // TENSORFLOW_PLUGIN_BACKENDS_EXAMPLE_BACKEND_H_

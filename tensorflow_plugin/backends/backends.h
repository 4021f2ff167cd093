// The table of backends: one row there is all that the rest of the plugin knows of a backend.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_BACKENDS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_BACKENDS_H_

#include <string>
#include <vector>

#include "tensorflow_plugin/primitives/backend.h"

namespace xpu {

// Every backend in the build; the first is the default. They live for ever.
const std::vector<const Backend*>& Backends();

// The backend of this subdevice type, such as "XPU_HOST"; nullptr if there is none.
const Backend* FindBackend(const std::string& subdevice_type);

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_BACKENDS_H_

// What the environment variables ask of the core. A value that makes no sense never stops TensorFlow: it gives one
// warning that names it and what was expected, and the default is used.
#ifndef TENSORFLOW_PLUGIN_DEVICE_OPTIONS_H_
#define TENSORFLOW_PLUGIN_DEVICE_OPTIONS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tensorflow_plugin/faults/rules.h"
#include "tensorflow_plugin/primitives/backend.h"

namespace xpu {

struct Options {
  std::string device_type;        // TF_XPU_DEVICE_TYPE
  std::string subdevice;          // subdevice type of the backend to use: TF_XPU_SUBDEVICE
  std::vector<FaultRule> faults;  // TF_XPU_FAULT
  bool fusion = true;             // TF_XPU_FUSION
  std::string dump_folder;        // TF_XPU_DUMP_FUSION, a folder that is there; empty: none
  BackendOptions backend;         // TF_XPU_DEVICE_COUNT, TF_XPU_MEMORY_LIMIT, TF_XPU_ALLOCATOR, ...
};

// Reads the environment. `subdevices` are the backends there are, the default first; `total_memory` is the bytes of one
// of them, of which a memory limit may name a share. Appends a sentence per value
// that was not understood.
Options ReadOptions(const std::vector<std::string>& subdevices,
                    const std::function<int64_t(const std::string&)>& total_memory, std::vector<std::string>* warnings);

// "1073741824", "512MB", "4GiB", "25%" (of `machine_bytes`) -> bytes; 0 if the text is not such a size or names less
// than 1 MiB.
int64_t ParseMemorySize(const std::string& text, int64_t machine_bytes);

// An environment variable that users may set; the documentation and the doctor are made from this table.
struct OptionInfo {
  const char* name;
  const char* values;
  const char* fallback;
  const char* meaning;
};
const std::vector<OptionInfo>& OptionTable();

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_DEVICE_OPTIONS_H_

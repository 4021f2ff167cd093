// The options of the core, as the environment variables give them. A value that makes no sense never stops TensorFlow:
// it gives one warning that names it and what was expected, and the default is used. Nor is any value without effect in
// silence. People find the variables in the table of tensorflow_xpu/_options.py, of which the documentation and the
// doctor are made.
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
  std::string device_type;                  // TF_XPU_DEVICE_TYPE
  std::string subdevice;                    // subdevice type of the backend to use: TF_XPU_SUBDEVICE
  std::vector<FaultRule> faults;            // TF_XPU_FAULT
  bool fusion = true;                       // TF_XPU_FUSION
  std::vector<std::string> without_passes;  // TF_XPU_FUSION_WITHOUT
  bool direct_calls = true;                 // TF_XPU_DIRECT_CALLS
  std::string dump_folder;                  // TF_XPU_DUMP_FUSION, which is made if need be; empty: none
  // A sentence for each value that is understood and has no effect, or less than it says.
  std::vector<std::string> remarks;
  BackendOptions backend;  // TF_XPU_DEVICE_COUNT, TF_XPU_MEMORY_LIMIT, TF_XPU_ALLOCATOR, ...
};

// Reads the environment. `subdevices` are the backends, the default first; `passes` are those over command lists.
// `total_memory` is the bytes of a backend, of which a memory limit may name a share. Appends a sentence per value that
// was not understood.
Options ReadOptions(const std::vector<std::string>& subdevices, const std::vector<std::string>& passes,
                    const std::function<int64_t(const std::string&)>& total_memory, std::vector<std::string>* warnings);

// Warnings about this variable say that its value is from `origin`, a file that the loader has read.
void SettingCameFrom(const std::string& name, const std::string& origin);

// "1073741824", "512MB", "4GiB", "25%" (of `machine_bytes`) -> bytes; 0 if the text is not such a size or names less
// than 1 MiB.
int64_t ParseMemorySize(const std::string& text, int64_t machine_bytes);

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_DEVICE_OPTIONS_H_

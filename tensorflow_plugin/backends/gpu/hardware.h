// A device of a driver's: how it describes itself, and what kernels, their shapes and their tiles depend on.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_GPU_HARDWARE_H_
#define TENSORFLOW_PLUGIN_BACKENDS_GPU_HARDWARE_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace xpu::gpu {

struct Hardware {
  std::string name, vendor;
  std::string version;     // "OpenCL 3.0 CUDA", "compute capability 9.0"
  std::string pci_bus_id;  // "0000:3b:00.0"; empty: not known
  int64_t memory_bytes = 0;
  int64_t bandwidth_bytes_per_s = -1;  // of its memory; -1: not known

  bool is_processor = false;  // the host's
  bool has_double = false;
  int64_t local_memory_bytes = 0;  // of a group
  size_t largest_group = 1;
  int compute_units = 1;
};

}  // namespace xpu::gpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_GPU_HARDWARE_H_

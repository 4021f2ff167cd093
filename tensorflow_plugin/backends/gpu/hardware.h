// What kernels, their shapes and their tiles depend on.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_GPU_HARDWARE_H_
#define TENSORFLOW_PLUGIN_BACKENDS_GPU_HARDWARE_H_

#include <cstddef>
#include <cstdint>

namespace xpu::gpu {

// A device, as far as its kernels know it.
struct Hardware {
  bool is_processor = false;  // the host's
  bool has_double = false;
  int64_t local_memory_bytes = 0;  // of a group
  size_t largest_group = 1;
  int compute_units = 1;
};

}  // namespace xpu::gpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_GPU_HARDWARE_H_

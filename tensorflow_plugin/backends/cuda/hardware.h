// The NVIDIA GPUs of this machine, and which of them are used.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CUDA_HARDWARE_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CUDA_HARDWARE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tensorflow_plugin/backends/cuda/driver.h"
#include "tensorflow_plugin/backends/gpu/hardware.h"

namespace xpu::cuda {

// A GPU, as its driver describes it.
struct Hardware : public gpu::Hardware {
  DeviceId id = 0;
  int capability = 0;  // 90: compute capability 9.0
  // The part that the backend needs and this GPU lacks; empty: it can be used.
  std::string lacks;
};

// Every GPU that can be used, in the driver's order; looked for once. They live for ever.
const std::vector<Hardware>& UsedHardware();

// Why UsedHardware is empty, and what to do.
std::string WhyNone();

}  // namespace xpu::cuda

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CUDA_HARDWARE_H_

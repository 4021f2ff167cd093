// The OpenCL devices of this machine, and which of them are used.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_OPENCL_HARDWARE_H_
#define TENSORFLOW_PLUGIN_BACKENDS_OPENCL_HARDWARE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tensorflow_plugin/backends/gpu/hardware.h"
#include "tensorflow_plugin/backends/opencl/driver.h"
#include "tensorflow_plugin/primitives/backend.h"

namespace xpu::opencl {

// A device, as its driver describes it.
struct Hardware : public gpu::Hardware {
  cl_device_id id = nullptr;
  cl_platform_id platform = nullptr;
  std::string platform_name;
  std::string driver_version;     // the driver's own
  bool rounds_correctly = false;  // single-precision division and square root, if asked to
  bool shares_host_memory = false;
  int64_t largest_allocation = 0;
  // The part that the backend needs and this device lacks; empty: it can be used.
  std::string lacks;
};

// Says for people if the device can be used, and which number and name TF_XPU_OPENCL_DEVICE may call it by: "0: NVIDIA
// H100 PCIe (NVIDIA CUDA)".
std::string Describe(const Hardware& hardware, size_t number);

// Every device of every platform, in the drivers' order; looked for once.
const std::vector<Hardware>& AllHardware();

// The devices that are used: those that TF_XPU_OPENCL_DEVICE names, of which one line on stderr says if it names none.
// Without it all that can be used. They live for ever.
std::vector<const Hardware*> UsedHardware();

// The devices of `all` that a value of TF_XPU_OPENCL_DEVICE names. A number counts them from 0. Any other text is a
// part of the name of a device or its platform, in whatever case. All if it is empty or names none; the latter makes a
// warning.
std::vector<const Hardware*> Choose(const std::vector<Hardware>& all, const std::string& value, std::string* warning);

// Why UsedHardware is empty, and what to do.
std::string WhyNone();

}  // namespace xpu::opencl

#endif  // TENSORFLOW_PLUGIN_BACKENDS_OPENCL_HARDWARE_H_

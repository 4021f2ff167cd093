// The description of the devices that the Python package shows. TensorFlow's C API drops it:
// tf.config.experimental.get_device_details returns the platform's name only.
#ifndef TENSORFLOW_PLUGIN_DEVICE_DESCRIBE_H_
#define TENSORFLOW_PLUGIN_DEVICE_DESCRIBE_H_

#include <string>
#include <vector>

#include "tensorflow_plugin/device/options.h"
#include "tensorflow_plugin/primitives/backend.h"

namespace xpu {

// The devices of one backend.
struct Described {
  std::string subdevice_type;
  std::vector<DeviceInfo> devices;
  std::string why_none;  // if there are none
};

// JSON: `{"subdevice_type": str, "instruction_set": str, "subdevice_types": [str], "options": {"device_count": int,
// "memory_limit": int, "isolate": bool}, "devices": [D], "why_none": str}`. D is `{"ordinal": int, "device_type": str,
// "subdevice_type": str, "hardware_name": str, "vendor": str, "pci_bus_id": str, "numa_node": int or null,
// "memory_bytes": int, "instruction_set": str, "bandwidth_bytes_per_s": int or null, "gflops": float or null}`. null is
// "not known", and "why_none" is empty if there are devices.
std::string DescribeDevices(const std::vector<std::string>& subdevice_types, const Options& options,
                            const Described& used);

// JSON: [D], the devices of several backends.
std::string DescribeDevices(const Options& options, const std::vector<Described>& all);

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_DEVICE_DESCRIBE_H_

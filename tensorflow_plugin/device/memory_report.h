// The memory of the devices that TensorFlow has made, for the Python package: what TensorFlow's own API leaves out.
#ifndef TENSORFLOW_PLUGIN_DEVICE_MEMORY_REPORT_H_
#define TENSORFLOW_PLUGIN_DEVICE_MEMORY_REPORT_H_

#include <functional>
#include <string>

#include "tensorflow_plugin/primitives/backend.h"

namespace xpu {

// Thread-safe. `device` is reported on until it is removed. `allocator` places tensors in its memory: "bfc", "pool".
void AddReportedDevice(int ordinal, Device* device, const char* allocator);
void RemoveReportedDevice(int ordinal, const Device* device);

// JSON: `{"allocator": str, "bytes_in_use": int, "peak_bytes_in_use": int, "bytes_reserved": int,
// "peak_bytes_reserved": int, "bytes_limit": int, "num_allocs": int, "largest_alloc_size": int}`; "null" for a device
// that TensorFlow has not made.
std::string MemoryReport(int ordinal);
// Device::ResetStats, where there is such a device.
void ResetMemoryReport(int ordinal);

// Device::Synchronize, where there is such a device; false where there is none.
bool SynchronizeReported(int ordinal);
// Those that are reported on. Whatever `visit` does, it must not destroy one.
void ForEachReportedDevice(const std::function<void(int ordinal, Device& device)>& visit);

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_DEVICE_MEMORY_REPORT_H_

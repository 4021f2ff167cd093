#include "tensorflow_plugin/device/describe.h"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <utility>

#include "tensorflow_plugin/loader/json.h"

namespace xpu {
namespace {

std::string KnownOrNull(int64_t value) { return value < 0 ? "null" : std::to_string(value); }

std::string KnownOrNull(double value) {
  if (!std::isfinite(value) || value < 0) return "null";
  char digits[32];
  std::snprintf(digits, sizeof digits, "%.9g", value);
  return digits;
}

// {"a": x, "b": y} of names and values that are JSON already.
std::string Object(const std::vector<std::pair<const char*, std::string>>& fields) {
  std::string json;
  for (const auto& [name, value] : fields) json += (json.empty() ? "" : ", ") + JsonString(name) + ": " + value;
  return "{" + json + "}";
}

template <typename T, typename ToJson>
std::string Array(const std::vector<T>& items, ToJson to_json) {
  std::string json;
  for (const T& item : items) json += (json.empty() ? "" : ", ") + to_json(item);
  return "[" + json + "]";
}

}  // namespace

std::string DescribeDevices(const std::string& device_type, const std::vector<std::string>& subdevice_types,
                            const Options& options, const std::string& instruction_set,
                            const std::vector<DeviceInfo>& devices) {
  int ordinal = 0;
  const auto device = [&](const DeviceInfo& d) {
    return Object({{"ordinal", std::to_string(ordinal++)},
                   {"device_type", JsonString(device_type)},
                   {"subdevice_type", JsonString(options.subdevice)},
                   {"hardware_name", JsonString(d.hardware_name)},
                   {"vendor", JsonString(d.vendor)},
                   {"pci_bus_id", JsonString(d.pci_bus_id)},
                   {"numa_node", KnownOrNull(static_cast<int64_t>(d.numa_node))},
                   {"memory_bytes", std::to_string(d.memory_bytes)},
                   {"bandwidth_bytes_per_s", KnownOrNull(d.bandwidth_bytes_per_s)},
                   {"gflops", KnownOrNull(d.gflops)}});
  };
  const auto variable = [](const OptionInfo& v) {
    return Object({{"name", JsonString(v.name)},
                   {"values", JsonString(v.values)},
                   {"default", JsonString(v.fallback)},
                   {"meaning", JsonString(v.meaning)}});
  };
  return Object({{"subdevice_type", JsonString(options.subdevice)},
                 {"instruction_set", JsonString(instruction_set)},
                 {"subdevice_types", Array(subdevice_types, JsonString)},
                 {"options", Object({{"device_count", std::to_string(options.backend.device_count)},
                                     {"memory_limit", std::to_string(options.backend.memory_limit)},
                                     {"isolate", options.backend.isolate_memory ? "true" : "false"}})},
                 {"variables", Array(OptionTable(), variable)},
                 {"devices", Array(devices, device)}});
}

}  // namespace xpu

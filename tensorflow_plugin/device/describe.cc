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

std::string Devices(const Options& options, const Described& backend) {
  int ordinal = 0;
  std::string json;
  for (const DeviceInfo& d : backend.devices) {
    json += (json.empty() ? "" : ", ") + Object({{"ordinal", std::to_string(ordinal++)},
                                                 {"device_type", JsonString(options.device_type)},
                                                 {"subdevice_type", JsonString(backend.subdevice_type)},
                                                 {"hardware_name", JsonString(d.hardware_name)},
                                                 {"vendor", JsonString(d.vendor)},
                                                 {"pci_bus_id", JsonString(d.pci_bus_id)},
                                                 {"numa_node", KnownOrNull(static_cast<int64_t>(d.numa_node))},
                                                 {"memory_bytes", std::to_string(d.memory_bytes)},
                                                 {"instruction_set", JsonString(d.instruction_set)},
                                                 {"bandwidth_bytes_per_s", KnownOrNull(d.bandwidth_bytes_per_s)},
                                                 {"gflops", KnownOrNull(d.gflops)}});
  }
  return json;
}

}  // namespace

std::string DescribeDevices(const std::vector<std::string>& subdevice_types, const Options& options,
                            const Described& used) {
  const std::string isa = used.devices.empty() ? "" : used.devices[0].instruction_set;
  return Object({{"subdevice_type", JsonString(options.subdevice)},
                 {"instruction_set", JsonString(isa)},
                 {"subdevice_types", JsonStrings(subdevice_types)},
                 {"options", Object({{"device_count", std::to_string(options.backend.device_count)},
                                     {"memory_limit", std::to_string(options.backend.memory_limit)},
                                     {"isolate", options.backend.isolate_memory ? "true" : "false"}})},
                 {"devices", "[" + Devices(options, used) + "]"},
                 {"why_none", JsonString(used.why_none)}});
}

std::string DescribeDevices(const Options& options, const std::vector<Described>& all) {
  std::string json;
  for (const Described& backend : all) {
    const std::string devices = Devices(options, backend);
    json += (json.empty() || devices.empty() ? "" : ", ") + devices;
  }
  return "[" + json + "]";
}

}  // namespace xpu

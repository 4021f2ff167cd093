#include "tensorflow_plugin/backends/gpu/backend.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "tensorflow_plugin/primitives/device_name.h"

namespace xpu::gpu {
namespace {

// The device has no bus, or the driver does not tell. This is an ID in PCI's form, in a domain in which no machine has
// a device.
std::string NoBus(int ordinal) {
  char id[32];
  std::snprintf(id, sizeof(id), "ffff:%02x:00.0", static_cast<unsigned>(ordinal) & 0xff);
  return id;
}

}  // namespace

int GpuBackend::DeviceCount(const BackendOptions& options) const {
  const int used = static_cast<int>(Used().size());
  return used == 0 ? 0 : std::max(used, options.device_count);
}

Status GpuBackend::Describe(int ordinal, const BackendOptions& options, DeviceInfo* info) const {
  const Hardware* hardware = nullptr;
  return Find(ordinal, options, &hardware, info);
}

Status GpuBackend::CreateDevice(int ordinal, const BackendOptions& options, std::unique_ptr<Device>* device) const {
  const Hardware* hardware = nullptr;
  DeviceInfo info;
  XPU_RETURN_IF_ERROR(Find(ordinal, options, &hardware, &info));
  return Create(*hardware, std::move(info), options, DeviceName(ordinal), device);
}

int64_t GpuBackend::TotalMemory() const {
  int64_t total = 0;
  for (const Hardware* hardware : Used()) total += hardware->memory_bytes;
  return total;
}

const Capabilities& GpuBackend::capabilities() const {
  // Asked when kernels are registered, and from then on the same.
  std::call_once(capabilities_found_, [this] {
    Abilities common;
    for (const Hardware* hardware : Used()) {
      const Abilities own = AbilitiesOf(*hardware);
      common.has_double = common.has_double && own.has_double;
      common.only_processors = common.only_processors && own.only_processors;
    }
    capabilities_ = std::make_unique<const KernelCapabilities>(common);
  });
  return *capabilities_;
}

Status GpuBackend::Find(int ordinal, const BackendOptions& options, const Hardware** hardware, DeviceInfo* info) const {
  const std::vector<const Hardware*> used = Used();
  const int count = DeviceCount(options);
  XPU_REQUIRE(count > 0, errors::InvalidArgument(WhyNoneIsUsed()));
  XPU_REQUIRE(ordinal >= 0 && ordinal < count, errors::InvalidArgument(subdevice_type(), " has ", count,
                                                                       " devices, there is none of ordinal ", ordinal));
  XPU_REQUIRE(options.memory_limit >= 0,
              errors::InvalidArgument("a memory limit of ", options.memory_limit, " bytes, expected 0 or more"));
  const int n = static_cast<int>(used.size());
  const Hardware& found = *used[static_cast<size_t>(ordinal % n)];
  const int sharing = count / n + (ordinal % n < count % n);  // devices on that hardware
  info->hardware_name = found.name;
  info->vendor = found.vendor;
  info->pci_bus_id = found.pci_bus_id.empty() ? NoBus(ordinal) : found.pci_bus_id;
  info->memory_bytes = options.memory_limit != 0 ? options.memory_limit : found.memory_bytes / sharing;
  info->bandwidth_bytes_per_s = found.bandwidth_bytes_per_s;
  info->instruction_set = found.version;
  *hardware = &found;
  return OkStatus();
}

}  // namespace xpu::gpu

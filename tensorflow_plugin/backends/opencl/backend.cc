#include "tensorflow_plugin/backends/opencl/backend.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow_plugin/backends/host_runtime/machine.h"
#include "tensorflow_plugin/backends/opencl/device.h"
#include "tensorflow_plugin/backends/opencl/hardware.h"
#include "tensorflow_plugin/primitives/device_name.h"

namespace xpu::opencl {
namespace {

// Nothing of the driver's is touched before devices are counted.
class OpenclBackend final : public Backend {
 public:
  const char* subdevice_type() const override { return "XPU_OPENCL"; }

  // One for each piece of hardware; more, if so many are asked for, share it.
  int DeviceCount(const BackendOptions& options) const override {
    const int used = static_cast<int>(UsedHardware().size());
    return used == 0 ? 0 : std::max(used, options.device_count);
  }

  Status Describe(int ordinal, const BackendOptions& options, DeviceInfo* info) const override {
    const Hardware* hardware = nullptr;
    return Find(ordinal, options, &hardware, info);
  }

  Status CreateDevice(int ordinal, const BackendOptions& options, std::unique_ptr<Device>* device) const override {
    const Hardware* hardware = nullptr;
    DeviceInfo info;
    XPU_RETURN_IF_ERROR(Find(ordinal, options, &hardware, &info));
    Memory::Options memory;
    memory.limit = info.memory_bytes;
    memory.device = DeviceName(ordinal);
    memory.explain = options.isolate_memory;
    memory.pooled = options.pool_memory;
    return OpenclDevice::Create(*hardware, std::move(info), memory, device);
  }

  int64_t TotalMemory() const override {
    int64_t total = 0;
    for (const Hardware* hardware : UsedHardware()) total += MemoryOf(*hardware);
    return total;
  }

  // What all of them can do.
  const Capabilities& capabilities() const override {
    static const auto* const common = [] {
      gpu::Abilities abilities;
      for (const Hardware* hardware : UsedHardware()) {
        const gpu::Abilities own = gpu::AbilitiesOf(*hardware);
        abilities.has_double = abilities.has_double && own.has_double;
        abilities.only_processors = abilities.only_processors && own.only_processors;
      }
      return new gpu::KernelCapabilities(abilities);
    }();
    return *common;
  }

  bool HostCanAddress(const void* address, const BackendOptions&) const override {
    return Memory::Owner(address) == nullptr;
  }

 private:
  // A processor's memory is the host's: of a container's share the driver may know nothing.
  static int64_t MemoryOf(const Hardware& hardware) {
    const int64_t of_machine = hardware.is_processor ? host_runtime::TotalMachineMemory() : 0;
    return of_machine > 0 ? std::min(of_machine, hardware.memory_bytes) : hardware.memory_bytes;
  }

  // Where there is no bus, or the driver does not tell: as the other backends do, in PCI's form, in a domain in which
  // no machine has a device.
  static std::string NoBus(int ordinal) {
    char id[32];
    std::snprintf(id, sizeof(id), "ffff:%02x:00.0", static_cast<unsigned>(ordinal) & 0xff);
    return id;
  }

  Status Find(int ordinal, const BackendOptions& options, const Hardware** hardware, DeviceInfo* info) const {
    const std::vector<const Hardware*> used = UsedHardware();
    const int count = DeviceCount(options);
    XPU_REQUIRE(count > 0, errors::InvalidArgument(WhyNone()));
    XPU_REQUIRE(
        ordinal >= 0 && ordinal < count,
        errors::InvalidArgument(subdevice_type(), " has ", count, " devices, there is none of ordinal ", ordinal));
    XPU_REQUIRE(options.memory_limit >= 0,
                errors::InvalidArgument("a memory limit of ", options.memory_limit, " bytes, expected 0 or more"));
    const int n = static_cast<int>(used.size());
    const Hardware& found = *used[static_cast<size_t>(ordinal % n)];
    const int sharing = count / n + (ordinal % n < count % n);  // devices on that hardware
    info->hardware_name = found.name;
    info->vendor = found.vendor;
    info->pci_bus_id = found.pci_bus_id.empty() ? NoBus(ordinal) : found.pci_bus_id;
    info->memory_bytes = options.memory_limit != 0 ? options.memory_limit : MemoryOf(found) / sharing;
    info->instruction_set = found.version;
    *hardware = &found;
    return OkStatus();
  }
};

}  // namespace

// Never destroyed: threads of the driver may be at work when the process ends.
const Backend& TheBackend() {
  static const Backend* const backend = new OpenclBackend;
  return *backend;
}

}  // namespace xpu::opencl

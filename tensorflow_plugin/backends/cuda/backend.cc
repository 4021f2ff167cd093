#include "tensorflow_plugin/backends/cuda/backend.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "tensorflow_plugin/backends/cuda/device.h"
#include "tensorflow_plugin/backends/cuda/hardware.h"
#include "tensorflow_plugin/primitives/device_name.h"

namespace xpu::cuda {
namespace {

// Nothing of the driver's is touched before devices are counted.
class CudaBackend final : public Backend {
 public:
  const char* subdevice_type() const override { return "XPU_CUDA"; }

  // One for each GPU; more, if so many are asked for, share them.
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
    return CudaDevice::Create(*hardware, std::move(info), DeviceName(ordinal), device);
  }

  int64_t TotalMemory() const override {
    int64_t total = 0;
    for (const Hardware& hardware : UsedHardware()) total += hardware.memory_bytes;
    return total;
  }

  const Capabilities& capabilities() const override {
    static const auto* const all = new gpu::KernelCapabilities({/*has_double=*/true, /*only_processors=*/false});
    return *all;
  }

  bool HostCanAddress(const void* address, const BackendOptions&) const override {
    return !Memory::IsDeviceMemory(address);
  }

 private:
  Status Find(int ordinal, const BackendOptions& options, const Hardware** hardware, DeviceInfo* info) const {
    const std::vector<Hardware>& used = UsedHardware();
    const int count = DeviceCount(options);
    XPU_REQUIRE(count > 0, errors::InvalidArgument(WhyNone()));
    XPU_REQUIRE(
        ordinal >= 0 && ordinal < count,
        errors::InvalidArgument(subdevice_type(), " has ", count, " devices, there is none of ordinal ", ordinal));
    XPU_REQUIRE(options.memory_limit >= 0,
                errors::InvalidArgument("a memory limit of ", options.memory_limit, " bytes, expected 0 or more"));
    const int n = static_cast<int>(used.size());
    const Hardware& found = used[static_cast<size_t>(ordinal % n)];
    const int sharing = count / n + (ordinal % n < count % n);  // devices on that GPU
    info->hardware_name = found.name;
    info->vendor = "NVIDIA";
    info->pci_bus_id = found.pci_bus_id;
    info->memory_bytes = options.memory_limit != 0 ? options.memory_limit : found.memory_bytes / sharing;
    info->bandwidth_bytes_per_s = found.bandwidth_bytes_per_s;
    info->instruction_set = errors::Concat("compute capability ", found.capability / 10, ".", found.capability % 10);
    *hardware = &found;
    return OkStatus();
  }
};

}  // namespace

// Never destroyed: threads of the driver may be at work when the process ends.
const Backend& TheBackend() {
  static const Backend* const backend = new CudaBackend;
  return *backend;
}

}  // namespace xpu::cuda

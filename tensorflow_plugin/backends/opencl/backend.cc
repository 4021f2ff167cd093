#include "tensorflow_plugin/backends/opencl/backend.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow_plugin/backends/gpu/backend.h"
#include "tensorflow_plugin/backends/opencl/device.h"
#include "tensorflow_plugin/backends/opencl/hardware.h"

namespace xpu::opencl {
namespace {

// Nothing of the driver's is touched before devices are counted.
class OpenclBackend final : public gpu::GpuBackend {
 public:
  const char* subdevice_type() const override { return "XPU_OPENCL"; }

  bool HostCanAddress(const void* address, const BackendOptions&) const override {
    return Memory::Owner(address) == nullptr;
  }

 protected:
  std::vector<const gpu::Hardware*> Used() const override {
    const std::vector<const Hardware*> used = UsedHardware();
    return {used.begin(), used.end()};
  }

  std::string WhyNoneIsUsed() const override { return WhyNone(); }

  Status Create(const gpu::Hardware& hardware, DeviceInfo info, const BackendOptions& options, const std::string& name,
                std::unique_ptr<Device>* device) const override {
    Memory::Options memory;
    memory.limit = info.memory_bytes;
    memory.device = name;
    memory.explain = options.isolate_memory;
    memory.pooled = options.pool_memory;
    return OpenclDevice::Create(static_cast<const Hardware&>(hardware), std::move(info), memory, device);
  }
};

}  // namespace

// Never destroyed: threads of the driver may be at work when the process ends.
const Backend& TheBackend() {
  static const Backend* const backend = new OpenclBackend;
  return *backend;
}

}  // namespace xpu::opencl

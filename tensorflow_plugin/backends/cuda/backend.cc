#include "tensorflow_plugin/backends/cuda/backend.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow_plugin/backends/cuda/device.h"
#include "tensorflow_plugin/backends/cuda/hardware.h"
#include "tensorflow_plugin/backends/gpu/backend.h"

namespace xpu::cuda {
namespace {

// Nothing of the driver's is touched before devices are counted.
class CudaBackend final : public gpu::GpuBackend {
 public:
  const char* subdevice_type() const override { return "XPU_CUDA"; }

  bool HostCanAddress(const void* address, const BackendOptions&) const override {
    return !Memory::IsDeviceMemory(address);
  }

 protected:
  std::vector<const gpu::Hardware*> Used() const override {
    std::vector<const gpu::Hardware*> used;
    for (const Hardware& hardware : UsedHardware()) used.push_back(&hardware);
    return used;
  }

  std::string WhyNoneIsUsed() const override { return WhyNone(); }

  Status Create(const gpu::Hardware& hardware, DeviceInfo info, const BackendOptions&, const std::string& name,
                std::unique_ptr<Device>* device) const override {
    return CudaDevice::Create(static_cast<const Hardware&>(hardware), std::move(info), name, device);
  }
};

}  // namespace

// Never destroyed: threads of the driver may be at work when the process ends.
const Backend& TheBackend() {
  static const Backend* const backend = new CudaBackend;
  return *backend;
}

}  // namespace xpu::cuda

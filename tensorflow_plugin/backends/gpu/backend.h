// The common part of the backends of all runtimes: which device is on which piece of hardware, and with how much of its
// memory.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_GPU_BACKEND_H_
#define TENSORFLOW_PLUGIN_BACKENDS_GPU_BACKEND_H_

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tensorflow_plugin/backends/gpu/hardware.h"
#include "tensorflow_plugin/backends/gpu/primitives/capabilities.h"
#include "tensorflow_plugin/primitives/backend.h"

namespace xpu::gpu {

class GpuBackend : public Backend {
 public:
  // One for each piece of hardware; more, if so many are asked for, share it.
  int DeviceCount(const BackendOptions& options) const final;
  Status Describe(int ordinal, const BackendOptions& options, DeviceInfo* info) const final;
  Status CreateDevice(int ordinal, const BackendOptions& options, std::unique_ptr<Device>* device) const final;
  int64_t TotalMemory() const final;
  // The capabilities that the devices on all hardware have.
  const Capabilities& capabilities() const final;

 protected:
  // The hardware that is used. It lives for ever.
  virtual std::vector<const Hardware*> Used() const = 0;
  // Why none is, and what to do.
  virtual std::string WhyNoneIsUsed() const = 0;
  // `hardware` is one of Used(), `name` the device's, for messages.
  virtual Status Create(const Hardware& hardware, DeviceInfo info, const BackendOptions& options,
                        const std::string& name, std::unique_ptr<Device>* device) const = 0;

 private:
  Status Find(int ordinal, const BackendOptions& options, const Hardware** hardware, DeviceInfo* info) const;

  mutable std::once_flag capabilities_found_;
  mutable std::unique_ptr<const KernelCapabilities> capabilities_;
};

}  // namespace xpu::gpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_GPU_BACKEND_H_

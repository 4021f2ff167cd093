// A backend on host memory: a name and a set of kernels.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_HOST_BACKEND_H_
#define TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_HOST_BACKEND_H_

#include <map>
#include <memory>

#include "tensorflow_plugin/backends/host_runtime/kernels.h"
#include "tensorflow_plugin/primitives/backend.h"
#include "tensorflow_plugin/primitives/fork.h"

namespace xpu::host_runtime {

// Threads of the device `ordinal` when `processors` are dealt out evenly to `devices`; none goes without, so that more
// devices than processors share them.
int TeamSize(int ordinal, int devices, int processors);

class HostBackend final : public Backend {
 public:
  // Both live for ever.
  HostBackend(const char* subdevice_type, const KernelSet& kernels) : name_(subdevice_type), kernels_(kernels) {}

  const char* subdevice_type() const override { return name_; }
  // As many as asked for: devices on host memory can be had in any number.
  int DeviceCount(const BackendOptions& options) const override;
  // The devices share evenly the processors that this process may use, and the machine's memory unless there is a
  // limit.
  Status CreateDevice(int ordinal, const BackendOptions& options, std::unique_ptr<Device>* device) const override;
  Status Describe(int ordinal, const BackendOptions& options, DeviceInfo* info) const override;
  int64_t TotalMemory() const override;
  const Capabilities& capabilities() const override { return kernels_; }
  // Device memory is the host's; with isolation only what devices gave out is out of reach.
  bool HostCanAddress(const void* address, const BackendOptions& options) const override;
  bool SharesHostMemory(const BackendOptions& options) const override { return !options.isolate_memory; }
  std::unique_ptr<Device> NewHostExecutor(int threads) const override;

 private:
  struct Speed {
    int64_t bandwidth_bytes_per_s = -1;
    double gflops = -1;
  };
  // The figures that only an experiment gives, for a device of so many threads that has the machine to itself. Made
  // once for each number of threads, when the first such device is created: some 30 ms.
  Speed MeasuredSpeed(int threads) const;
  // That share a command of this device.
  int Threads(int ordinal, const BackendOptions& options) const;
  DeviceInfo DescribeProcessor() const;

  const char* const name_;
  const KernelSet& kernels_;
  mutable Mutex mutex_;
  mutable std::map<int, Speed> speeds_;  // by threads
};

}  // namespace xpu::host_runtime

#endif  // TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_HOST_BACKEND_H_

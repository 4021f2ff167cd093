// A device on host memory: turns a set of synchronous kernels into streams of asynchronous commands.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_HOST_DEVICE_H_
#define TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_HOST_DEVICE_H_

#include <memory>
#include <string>
#include <vector>

#include "tensorflow_plugin/backends/host_runtime/command_queue.h"
#include "tensorflow_plugin/backends/host_runtime/device_memory.h"
#include "tensorflow_plugin/backends/host_runtime/host_access.h"
#include "tensorflow_plugin/backends/host_runtime/kernels.h"
#include "tensorflow_plugin/backends/host_runtime/pool_allocator.h"
#include "tensorflow_plugin/primitives/backend.h"
#include "tensorflow_plugin/primitives/fork.h"

namespace xpu::host_runtime {

struct HostDeviceOptions {
  CommandQueue::Options queue;
  std::string name = "XPU";  // of the device, for messages
  // See BackendOptions.
  bool isolate_memory = false;
  bool pool_memory = false;
  bool large_pages = true;
};

class HostDevice final : public Device {
 public:
  // `kernels` lives for ever. Memory is limited to info.memory_bytes; with 0 the device has none of its own and
  // works on host addresses only.
  static Status Create(const KernelSet& kernels, DeviceInfo info, const HostDeviceOptions& options,
                       std::unique_ptr<Device>* device);
  // Streams, events and timers must be gone. Waits for nothing: no command is left.
  ~HostDevice() override = default;

  const DeviceInfo& info() const override { return info_; }

  void* Allocate(size_t size) override;
  // Commands that use the memory may still be queued. The pool reuses it in the order of the streams; without a pool,
  // this waits for the device.
  void Deallocate(void* address) override;
  void* AllocateHost(size_t size) override;
  void DeallocateHost(void* address) override;
  AllocatorStats Stats() const override;
  void ResetStats() override;
  void MemoryUsage(int64_t* free_bytes, int64_t* total_bytes) const override;

  std::unique_ptr<Stream> CreateStream(int priority) override;
  std::unique_ptr<Event> CreateEvent() override;
  std::unique_ptr<Timer> CreateTimer() override;
  void Synchronize() override;
  bool SurvivesFork() const override { return true; }

  const Capabilities& capabilities() const override { return capabilities_; }

#define XPU_ENQUEUE(name) \
  Status Enqueue(Stream& stream, const name##Desc& desc, const Args& args, const Footprint& footprint) override;
  XPU_PRIMITIVES(XPU_ENQUEUE)
#undef XPU_ENQUEUE

  // One entry of the stream, if the kernels estimate what commands cost.
  std::unique_ptr<Executable> Prepare(std::shared_ptr<const CommandList> list, const MemoryPlan& memory) override;

 private:
  HostDevice(const KernelSet& kernels, DeviceInfo info, const HostDeviceOptions& options,
             std::unique_ptr<DeviceMemory> memory);

  template <typename Desc>
  Status EnqueueAny(Stream& stream, const Desc& desc, const Args& args, const Footprint& footprint);

  // The kernels', and a strand for each thread.
  class DeviceCapabilities final : public ForwardedCapabilities {
   public:
    DeviceCapabilities(const KernelSet& kernels, int threads) : ForwardedCapabilities(kernels), threads_(threads) {}
    int Strands() const override { return threads_; }

   private:
    const int threads_;
  };

  const KernelSet& kernels_;
  const DeviceCapabilities capabilities_;
  const DeviceInfo info_;
  const HostDeviceOptions options_;
  const std::unique_ptr<DeviceMemory> memory_;     // null if the device has none
  const std::unique_ptr<PoolAllocator> pool_;      // over memory_; null if every allocation is memory_'s own
  const std::unique_ptr<IsolatedRange> isolated_;  // null without isolation

  Mutex queues_mutex_;
  std::vector<std::weak_ptr<CommandQueue>> queues_;
};

}  // namespace xpu::host_runtime

#endif  // TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_HOST_DEVICE_H_

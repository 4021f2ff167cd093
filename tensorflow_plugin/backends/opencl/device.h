// A device: a context of its own on some hardware, so that several may share that.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_OPENCL_DEVICE_H_
#define TENSORFLOW_PLUGIN_BACKENDS_OPENCL_DEVICE_H_

#include <map>
#include <memory>
#include <mutex>

#include "tensorflow_plugin/backends/gpu/device.h"
#include "tensorflow_plugin/backends/opencl/machine.h"
#include "tensorflow_plugin/backends/opencl/queue.h"
#include "tensorflow_plugin/primitives/backend.h"

namespace xpu::opencl {

class OpenclDevice final : public gpu::GpuDevice {
 public:
  // The hardware lives for ever.
  static Status Create(const Hardware& hardware, DeviceInfo info, const Memory::Options& memory,
                       std::unique_ptr<Device>* device);
  // Streams, events and timers must be gone.
  ~OpenclDevice() override;

  // Pinned, where the device has memory of its own: copies to and from it need no detour.
  void* AllocateHost(size_t size) override;
  void DeallocateHost(void* address) override;

  std::unique_ptr<Event> CreateEvent() override { return std::make_unique<QueueEvent>(); }
  std::unique_ptr<Timer> CreateTimer() override { return std::make_unique<QueueTimer>(); }
  void Synchronize() override;

  std::unique_ptr<Executable> Prepare(std::shared_ptr<const CommandList> list, const MemoryPlan& memory) override;

 protected:
  Status MakeQueue(int priority, std::unique_ptr<gpu::Queue>* queue) override;

 private:
  struct Pinned {
    Handle<cl_mem> buffer;
    void* mapped;
  };
  OpenclDevice(const Hardware& hardware, DeviceInfo info, std::unique_ptr<Machine> machine);

  const Hardware& hardware_;
  const std::unique_ptr<Machine> machine_;

  std::mutex pinned_mutex_;
  Handle<cl_command_queue> pinning_;
  std::map<void*, Pinned> pinned_;  // by the address that was given out
};

}  // namespace xpu::opencl

#endif  // TENSORFLOW_PLUGIN_BACKENDS_OPENCL_DEVICE_H_

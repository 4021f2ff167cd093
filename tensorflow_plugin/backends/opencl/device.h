// A device: a context of its own on some hardware, so that several may share that.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_OPENCL_DEVICE_H_
#define TENSORFLOW_PLUGIN_BACKENDS_OPENCL_DEVICE_H_

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tensorflow_plugin/backends/gpu/primitives/capabilities.h"
#include "tensorflow_plugin/backends/gpu/primitives/primitives.h"
#include "tensorflow_plugin/backends/opencl/machine.h"
#include "tensorflow_plugin/backends/opencl/queue.h"
#include "tensorflow_plugin/primitives/backend.h"

namespace xpu::opencl {

class OpenclDevice final : public Device {
 public:
  // The hardware lives for ever.
  static Status Create(const Hardware& hardware, DeviceInfo info, const Memory::Options& memory,
                       std::unique_ptr<Device>* device);
  // Streams, events and timers must be gone.
  ~OpenclDevice() override;

  const DeviceInfo& info() const override { return info_; }

  void* Allocate(size_t size) override { return machine_->memory().Allocate(size); }
  void Deallocate(void* address) override { machine_->memory().Deallocate(address); }
  // Pinned, where the device has memory of its own: copies to and from it need no detour.
  void* AllocateHost(size_t size) override;
  void DeallocateHost(void* address) override;
  AllocatorStats Stats() const override { return machine_->memory().Stats(); }
  void ResetStats() override { machine_->memory().ResetStats(); }
  void MemoryUsage(int64_t* free_bytes, int64_t* total_bytes) const override {
    machine_->memory().Usage(free_bytes, total_bytes);
  }

  // Throws std::runtime_error if the driver will not make a queue.
  std::unique_ptr<Stream> CreateStream(int priority) override;
  std::unique_ptr<Event> CreateEvent() override { return std::make_unique<QueueEvent>(); }
  std::unique_ptr<Timer> CreateTimer() override { return std::make_unique<QueueTimer>(); }
  void Synchronize() override;

  const Capabilities& capabilities() const override { return capabilities_; }

#define XPU_GPU_PRIMITIVE(name)                                                                                   \
  Status Enqueue(Stream& stream, const name##Desc& desc, const Args& args, const Footprint& footprint) override { \
    Queue& queue = QueueOf(stream);                                                                               \
    const RecordedCommand recorded(queue, [&] { return trace::LabelOf(desc, footprint); });                       \
    if (args.workspace == nullptr && capabilities_.WorkspaceBytes(desc) > 0) {                                    \
      return errors::Internal("a command without the scratch memory that it needs: " #name);                      \
    }                                                                                                             \
    return gpu::Enqueue(*machine_, queue, desc, args, footprint);                                                 \
  }
  using Device::Enqueue;
  XPU_GPU_PRIMITIVES(XPU_GPU_PRIMITIVE)
#undef XPU_GPU_PRIMITIVE

  std::unique_ptr<Executable> Prepare(std::shared_ptr<const commands::List> list,
                                      const commands::MemoryPlan& memory) override;

 private:
  struct Pinned {
    Handle<cl_mem> buffer;
    void* mapped;
  };
  OpenclDevice(const Hardware& hardware, DeviceInfo info, std::unique_ptr<Machine> machine);
  static Queue& QueueOf(Stream& stream) { return static_cast<Queue&>(stream); }

  const Hardware& hardware_;
  const DeviceInfo info_;
  const gpu::KernelCapabilities capabilities_;
  const std::unique_ptr<Machine> machine_;

  std::mutex queues_mutex_;
  std::vector<Queue*> queues_;  // of the streams there are

  std::mutex pinned_mutex_;
  Handle<cl_command_queue> pinning_;
  std::map<void*, Pinned> pinned_;  // by the address that was given out
};

}  // namespace xpu::opencl

#endif  // TENSORFLOW_PLUGIN_BACKENDS_OPENCL_DEVICE_H_

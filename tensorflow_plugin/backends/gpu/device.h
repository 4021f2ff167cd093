// The common part of the devices of all runtimes: their queues, and how commands become kernels.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_GPU_DEVICE_H_
#define TENSORFLOW_PLUGIN_BACKENDS_GPU_DEVICE_H_

#include <memory>
#include <mutex>
#include <vector>

#include "tensorflow_plugin/backends/gpu/machine.h"
#include "tensorflow_plugin/backends/gpu/primitives/capabilities.h"
#include "tensorflow_plugin/backends/gpu/primitives/primitives.h"
#include "tensorflow_plugin/primitives/backend.h"

namespace xpu::gpu {

class GpuDevice : public Device {
 public:
  const DeviceInfo& info() const final { return info_; }
  const Capabilities& capabilities() const final { return capabilities_; }

  void* Allocate(size_t size) final { return machine_.memory().Allocate(size); }
  void Deallocate(void* address) final { machine_.memory().Deallocate(address); }
  AllocatorStats Stats() const final { return machine_.memory().Stats(); }
  void ResetStats() final { machine_.memory().ResetStats(); }
  void MemoryUsage(int64_t* free_bytes, int64_t* total_bytes) const final {
    machine_.memory().Usage(free_bytes, total_bytes);
  }

  // Throws std::runtime_error if the driver will not make a queue.
  std::unique_ptr<Stream> CreateStream(int priority) final;

  using Device::Enqueue;
#define XPU_GPU_PRIMITIVE(name) \
  Status Enqueue(Stream& stream, const name##Desc& desc, const Args& args, const Footprint& footprint) final;
  XPU_PRIMITIVES(XPU_GPU_PRIMITIVE)
#undef XPU_GPU_PRIMITIVE

 protected:
  // The machine outlives its use: streams, events and timers must be gone before the device.
  GpuDevice(DeviceInfo info, Machine& machine);

  virtual Status MakeQueue(int priority, std::unique_ptr<Queue>* queue) = 0;
  // By a library of the vendor's. `enqueued` stays false where a kernel of ours has to do it.
  virtual Status EnqueueByLibrary(Queue& queue, const MatMulDesc& desc, const Args& args, bool* enqueued);
  virtual Status EnqueueByLibrary(Queue& queue, const ConvolutionDesc& desc, const Args& args, bool* enqueued);

  // Calls `visit` with each queue there is; none goes meanwhile.
  template <typename F>
  void ForEachQueue(const F& visit) {
    std::lock_guard<std::mutex> lock(queues_mutex_);
    for (Queue* queue : queues_) visit(*queue);
  }

 private:
  template <typename Desc>
  Status EnqueueTraced(Stream& stream, const Desc& desc, const Args& args, const Footprint& footprint);
  template <typename Desc>
  Status EnqueueByLibrary(Queue&, const Desc&, const Args&, bool*) {
    return OkStatus();
  }

  const DeviceInfo info_;
  Machine& machine_;
  const KernelCapabilities capabilities_;

  std::mutex queues_mutex_;
  std::vector<Queue*> queues_;  // of the streams there are
};

}  // namespace xpu::gpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_GPU_DEVICE_H_

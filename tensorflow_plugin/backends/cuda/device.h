// A device: streams, memory and kernels on a GPU. Several may share one.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CUDA_DEVICE_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CUDA_DEVICE_H_

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tensorflow_plugin/backends/cuda/graph_executable.h"
#include "tensorflow_plugin/backends/cuda/machine.h"
#include "tensorflow_plugin/backends/cuda/queue.h"
#include "tensorflow_plugin/backends/gpu/primitives/capabilities.h"
#include "tensorflow_plugin/backends/gpu/primitives/primitives.h"
#include "tensorflow_plugin/primitives/backend.h"

namespace xpu::cuda {

class CudaDevice final : public Device {
 public:
  // The hardware lives for ever. `name` is for messages.
  static Status Create(const Hardware& hardware, DeviceInfo info, const std::string& name,
                       std::unique_ptr<Device>* device);

  const DeviceInfo& info() const override { return info_; }

  void* Allocate(size_t size) override { return machine_->memory().Allocate(size); }
  void Deallocate(void* address) override { machine_->memory().Deallocate(address); }
  // Pinned: copies to and from it need no detour.
  void* AllocateHost(size_t size) override;
  void DeallocateHost(void* address) override;
  AllocatorStats Stats() const override { return machine_->memory().Stats(); }
  void ResetStats() override { machine_->memory().ResetStats(); }
  void MemoryUsage(int64_t* free_bytes, int64_t* total_bytes) const override {
    machine_->memory().Usage(free_bytes, total_bytes);
  }

  // Throws std::runtime_error if the driver will not make a stream.
  std::unique_ptr<Stream> CreateStream(int priority) override;
  std::unique_ptr<Event> CreateEvent() override { return std::make_unique<QueueEvent>(machine_->context()); }
  std::unique_ptr<Timer> CreateTimer() override { return std::make_unique<QueueTimer>(machine_->context()); }
  void Synchronize() override;

  const Capabilities& capabilities() const override { return capabilities_; }

  std::unique_ptr<Executable> Prepare(std::shared_ptr<const commands::List> list,
                                      const commands::MemoryPlan& memory) override;

#define XPU_GPU_PRIMITIVE(name)                                                                                   \
  Status Enqueue(Stream& stream, const name##Desc& desc, const Args& args, const Footprint& footprint) override { \
    if (args.workspace == nullptr && capabilities_.WorkspaceBytes(desc) > 0) {                                    \
      return errors::Internal("a command without the scratch memory that it needs: " #name);                      \
    }                                                                                                             \
    return Enqueue(static_cast<Queue&>(stream), desc, args, footprint);                                           \
  }
  using Device::Enqueue;
  XPU_GPU_PRIMITIVES(XPU_GPU_PRIMITIVE)
#undef XPU_GPU_PRIMITIVE

 private:
  CudaDevice(DeviceInfo info, std::unique_ptr<Machine> machine);

  // Kernels, unless a library of NVIDIA's does it.
  template <typename Desc>
  Status Enqueue(Queue& queue, const Desc& desc, const Args& args, const Footprint& footprint) {
    return gpu::Enqueue(*machine_, queue, desc, args, footprint);
  }
  Status Enqueue(Queue& queue, const MatMulDesc& desc, const Args& args, const Footprint& footprint) {
    bool enqueued = false;
    XPU_RETURN_IF_ERROR(machine_->blas().Enqueue(*machine_, queue, desc, args, &enqueued));
    return enqueued ? OkStatus() : gpu::Enqueue(*machine_, queue, desc, args, footprint);
  }

  const DeviceInfo info_;
  const gpu::KernelCapabilities capabilities_;
  const std::unique_ptr<Machine> machine_;

  CaptureStream capture_;

  std::mutex queues_mutex_;
  std::vector<Queue*> queues_;  // of the streams there are
};

}  // namespace xpu::cuda

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CUDA_DEVICE_H_

// A device: streams, memory and kernels on a GPU. Several may share one.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CUDA_DEVICE_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CUDA_DEVICE_H_

#include <memory>
#include <string>

#include "tensorflow_plugin/backends/cuda/graph_executable.h"
#include "tensorflow_plugin/backends/cuda/machine.h"
#include "tensorflow_plugin/backends/cuda/queue.h"
#include "tensorflow_plugin/backends/gpu/device.h"
#include "tensorflow_plugin/primitives/backend.h"

namespace xpu::cuda {

class CudaDevice final : public gpu::GpuDevice {
 public:
  // The hardware lives for ever. `name` is for messages.
  static Status Create(const Hardware& hardware, DeviceInfo info, const std::string& name,
                       std::unique_ptr<Device>* device);

  // Pinned: copies to and from it need no detour.
  void* AllocateHost(size_t size) override;
  void DeallocateHost(void* address) override;

  std::unique_ptr<Event> CreateEvent() override { return std::make_unique<QueueEvent>(machine_->context()); }
  std::unique_ptr<Timer> CreateTimer() override { return std::make_unique<QueueTimer>(machine_->context()); }
  void Synchronize() override;

  std::unique_ptr<Executable> Prepare(std::shared_ptr<const CommandList> list, const MemoryPlan& memory) override;

 protected:
  Status MakeQueue(int priority, std::unique_ptr<gpu::Queue>* queue) override;
  // By cuBLASLt and cuDNN.
  Status EnqueueByLibrary(gpu::Queue& queue, const MatMulDesc& desc, const Args& args, bool* enqueued) override;
  Status EnqueueByLibrary(gpu::Queue& queue, const ConvolutionDesc& desc, const Args& args, bool* enqueued) override;

 private:
  CudaDevice(DeviceInfo info, std::unique_ptr<Machine> machine);

  const std::unique_ptr<Machine> machine_;
  CaptureStream capture_;
};

}  // namespace xpu::cuda

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CUDA_DEVICE_H_

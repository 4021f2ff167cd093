#include "tensorflow_plugin/backends/cuda/device.h"

#include <utility>
#include <vector>

namespace xpu::cuda {

Status CudaDevice::Create(const Hardware& hardware, DeviceInfo info, const std::string& name,
                          std::unique_ptr<Device>* device) {
  std::unique_ptr<Machine> machine;
  XPU_RETURN_IF_ERROR(Machine::Create(hardware, info.memory_bytes, name, &machine));
  std::unique_ptr<CudaDevice> made(new CudaDevice(std::move(info), std::move(machine)));
  XPU_RETURN_IF_ERROR(Queue::Create(*made->machine_, /*priority=*/0, &made->capture_.queue, /*is_capturing=*/true));
  *device = std::move(made);
  return OkStatus();
}

CudaDevice::CudaDevice(DeviceInfo info, std::unique_ptr<Machine> machine)
    : GpuDevice(std::move(info), *machine), machine_(std::move(machine)) {
  machine_->memory().AskBeforeTrim([this](bool may_wait) {
    if (may_wait) {
      Synchronize();
      return true;
    }
    bool released = true;
    ForEachQueue([&](gpu::Queue& queue) { released = released && !static_cast<Queue&>(queue).HasDeferred(); });
    return released;
  });
}

std::unique_ptr<Executable> CudaDevice::Prepare(std::shared_ptr<const CommandList> list, const MemoryPlan&) {
  return std::make_unique<GraphExecutable>(*this, capture_, std::move(list));
}

void* CudaDevice::AllocateHost(size_t size) {
  void* address = nullptr;
  if (size == 0 || Cu().CtxSetCurrent(machine_->context()) != kSuccess) return nullptr;
  return Cu().MemHostAlloc(&address, size, kHostPortable) == kSuccess ? address : nullptr;
}

void CudaDevice::DeallocateHost(void* address) {
  if (address == nullptr || Cu().CtxSetCurrent(machine_->context()) != kSuccess) return;
  (void)Cu().MemFreeHost(address);
}

Status CudaDevice::MakeQueue(int priority, std::unique_ptr<gpu::Queue>* queue) {
  std::unique_ptr<Queue> made;
  XPU_RETURN_IF_ERROR(Queue::Create(*machine_, priority, &made));
  *queue = std::move(made);
  return OkStatus();
}

Status CudaDevice::EnqueueByLibrary(gpu::Queue& queue, const MatMulDesc& desc, const Args& args, bool* enqueued) {
  return machine_->blas().Enqueue(*machine_, static_cast<Queue&>(queue), desc, args, enqueued);
}

Status CudaDevice::EnqueueByLibrary(gpu::Queue& queue, const ConvolutionDesc& desc, const Args& args, bool* enqueued) {
  return machine_->convolutions().Enqueue(*machine_, static_cast<Queue&>(queue), desc, args, enqueued);
}

void CudaDevice::Synchronize() {
  // An event for each: a queue may be destroyed meanwhile.
  std::vector<std::unique_ptr<QueueEvent>> last;
  ForEachQueue([&](gpu::Queue& queue) {
    last.push_back(std::make_unique<QueueEvent>(machine_->context()));
    queue.Record(*last.back());
  });
  for (const auto& event : last) event->Wait();
}

}  // namespace xpu::cuda

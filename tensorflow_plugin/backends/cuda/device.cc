#include "tensorflow_plugin/backends/cuda/device.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace xpu::cuda {

Status CudaDevice::Create(const Hardware& hardware, DeviceInfo info, const std::string& name,
                          std::unique_ptr<Device>* device) {
  std::unique_ptr<Machine> machine;
  XPU_RETURN_IF_ERROR(Machine::Create(hardware, info.memory_bytes, name, &machine));
  std::unique_ptr<CudaDevice> made(new CudaDevice(std::move(info), std::move(machine)));
  XPU_RETURN_IF_ERROR(Queue::Create(made->machine_->context(), made->machine_->memory(), /*priority=*/0,
                                    &made->capture_.queue,
                                    /*is_capturing=*/true));
  *device = std::move(made);
  return OkStatus();
}

CudaDevice::CudaDevice(DeviceInfo info, std::unique_ptr<Machine> machine)
    : info_(std::move(info)), capabilities_(gpu::AbilitiesOf(machine->hardware())), machine_(std::move(machine)) {}

std::unique_ptr<Executable> CudaDevice::Prepare(std::shared_ptr<const commands::List> list,
                                                const commands::MemoryPlan&) {
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

std::unique_ptr<Stream> CudaDevice::CreateStream(int priority) {
  std::unique_ptr<Queue> queue;
  const Status status = Queue::Create(machine_->context(), machine_->memory(), priority, &queue);
  if (!status.ok()) throw std::runtime_error(status.message());
  std::lock_guard<std::mutex> lock(queues_mutex_);
  queues_.push_back(queue.get());
  queue->OnDestruction([this, gone = queue.get()] {
    std::lock_guard<std::mutex> destroying(queues_mutex_);
    queues_.erase(std::remove(queues_.begin(), queues_.end(), gone), queues_.end());
  });
  return queue;
}

void CudaDevice::Synchronize() {
  // An event for each: a queue may be destroyed meanwhile.
  std::vector<std::unique_ptr<QueueEvent>> last;
  {
    std::lock_guard<std::mutex> lock(queues_mutex_);
    for (Queue* queue : queues_) {
      last.push_back(std::make_unique<QueueEvent>(machine_->context()));
      queue->Record(*last.back());
    }
  }
  for (const auto& event : last) event->Wait();
}

}  // namespace xpu::cuda

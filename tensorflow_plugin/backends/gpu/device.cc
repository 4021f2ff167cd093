#include "tensorflow_plugin/backends/gpu/device.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace xpu::gpu {

GpuDevice::GpuDevice(DeviceInfo info, Machine& machine)
    : info_(std::move(info)), machine_(machine), capabilities_(AbilitiesOf(machine.hardware())) {}

std::unique_ptr<Stream> GpuDevice::CreateStream(int priority) {
  std::unique_ptr<Queue> queue;
  const Status status = MakeQueue(priority, &queue);
  if (!status.ok()) throw std::runtime_error(status.message());
  std::lock_guard<std::mutex> lock(queues_mutex_);
  queues_.push_back(queue.get());
  queue->OnDestruction([this, gone = queue.get()] {
    std::lock_guard<std::mutex> destroying(queues_mutex_);
    queues_.erase(std::remove(queues_.begin(), queues_.end(), gone), queues_.end());
  });
  return queue;
}

Status GpuDevice::EnqueueByLibrary(Queue&, const MatMulDesc&, const Args&, bool*) { return OkStatus(); }

Status GpuDevice::EnqueueByLibrary(Queue&, const ConvolutionDesc&, const Args&, bool*) { return OkStatus(); }

template <typename Desc>
Status GpuDevice::EnqueueTraced(Stream& stream, const Desc& desc, const Args& args, const Footprint& footprint) {
  Queue& queue = static_cast<Queue&>(stream);
  const TracedCommand traced(queue.trace(), [&] { return trace::LabelOf(desc, footprint); });
  if (args.workspace == nullptr && capabilities_.WorkspaceBytes(desc) > 0) {
    return errors::Internal("a command without the scratch memory that it needs: ", Name(desc));
  }
  bool enqueued = false;
  XPU_RETURN_IF_ERROR(EnqueueByLibrary(queue, desc, args, &enqueued));
  return enqueued ? OkStatus() : gpu::Enqueue(machine_, queue, desc, args, footprint);
}

#define XPU_GPU_PRIMITIVE(name)                                                                                     \
  Status GpuDevice::Enqueue(Stream& stream, const name##Desc& desc, const Args& args, const Footprint& footprint) { \
    return EnqueueTraced(stream, desc, args, footprint);                                                            \
  }
XPU_PRIMITIVES(XPU_GPU_PRIMITIVE)
#undef XPU_GPU_PRIMITIVE

}  // namespace xpu::gpu

#include "tensorflow_plugin/backends/opencl/device.h"

#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#include "tensorflow_plugin/backends/gpu/traced_executable.h"

namespace xpu::opencl {
namespace {

constexpr size_t kHostAlignment = 256;

}  // namespace

Status OpenclDevice::Create(const Hardware& hardware, DeviceInfo info, const Memory::Options& memory,
                            std::unique_ptr<Device>* device) {
  std::unique_ptr<Machine> machine;
  XPU_RETURN_IF_ERROR(Machine::Create(hardware, memory, &machine));
  device->reset(new OpenclDevice(hardware, std::move(info), std::move(machine)));
  return OkStatus();
}

OpenclDevice::OpenclDevice(const Hardware& hardware, DeviceInfo info, std::unique_ptr<Machine> machine)
    : GpuDevice(std::move(info), *machine), hardware_(hardware), machine_(std::move(machine)) {}

OpenclDevice::~OpenclDevice() = default;

void* OpenclDevice::AllocateHost(size_t size) {
  if (size == 0 || size > SIZE_MAX - kHostAlignment) return nullptr;
  if (hardware_.shares_host_memory) {
    return std::aligned_alloc(kHostAlignment, (size + kHostAlignment - 1) / kHostAlignment * kHostAlignment);
  }
  std::lock_guard<std::mutex> lock(pinned_mutex_);
  cl_int error = CL_SUCCESS;
  if (!pinning_) {
    pinning_ = Handle<cl_command_queue>(Cl().CreateCommandQueue(machine_->context(), hardware_.id, 0, &error));
    if (error != CL_SUCCESS) return nullptr;
  }
  Handle<cl_mem> buffer(Cl().CreateBuffer(machine_->context(), CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR,
                                          size + kHostAlignment, nullptr, &error));
  if (error != CL_SUCCESS) return nullptr;
  void* const mapped = Cl().EnqueueMapBuffer(pinning_.get(), buffer.get(), CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
                                             size + kHostAlignment, 0, nullptr, nullptr, &error);
  if (error != CL_SUCCESS) return nullptr;
  const uintptr_t begin = reinterpret_cast<uintptr_t>(mapped);
  void* const address = reinterpret_cast<void*>((begin + kHostAlignment - 1) / kHostAlignment * kHostAlignment);
  pinned_.emplace(address, Pinned{std::move(buffer), mapped});
  return address;
}

void OpenclDevice::DeallocateHost(void* address) {
  if (hardware_.shares_host_memory) return std::free(address);
  std::lock_guard<std::mutex> lock(pinned_mutex_);
  const auto found = pinned_.find(address);
  if (found == pinned_.end()) return;
  (void)Cl().EnqueueUnmapMemObject(pinning_.get(), found->second.buffer.get(), found->second.mapped, 0, nullptr,
                                   nullptr);
  (void)Cl().Finish(pinning_.get());
  pinned_.erase(found);
}

Status OpenclDevice::MakeQueue(int, std::unique_ptr<gpu::Queue>* queue) {
  std::unique_ptr<Queue> made;
  XPU_RETURN_IF_ERROR(
      Queue::Create(hardware_, machine_->context(), machine_->memory(), &machine_->event_times(), &made));
  *queue = std::move(made);
  return OkStatus();
}

void OpenclDevice::Synchronize() {
  std::vector<Handle<cl_event>> last;
  ForEachQueue([&last](gpu::Queue& queue) { last.push_back(static_cast<Queue&>(queue).Last()); });
  for (const Handle<cl_event>& event : last) WaitForOne(event);
}

std::unique_ptr<Executable> OpenclDevice::Prepare(std::shared_ptr<const CommandList> list, const MemoryPlan&) {
  // A driver's own lists (cl_khr_command_buffer) keep the addresses of their operands, which another run has elsewhere.
  return std::make_unique<gpu::TracedExecutable>(*this, std::move(list));
}

}  // namespace xpu::opencl

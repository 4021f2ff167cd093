#include "tensorflow_plugin/backends/host_runtime/host_device.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "tensorflow_plugin/backends/host_runtime/host_executable.h"
#include "tensorflow_plugin/backends/host_runtime/host_stream.h"
#include "tensorflow_plugin/backends/host_runtime/kernel_span.h"
#include "tensorflow_plugin/backends/host_runtime/large_pages.h"
#include "tensorflow_plugin/backends/host_runtime/machine.h"
#include "tensorflow_plugin/trace/labels.h"

namespace xpu::host_runtime {
namespace {

constexpr size_t kHostAlignment = 256;

}  // namespace

Status HostDevice::Create(const KernelSet& kernels, DeviceInfo info, const HostDeviceOptions& options,
                          std::unique_ptr<Device>* device) {
  std::unique_ptr<DeviceMemory> memory;
  if (info.memory_bytes != 0) {
    XPU_RETURN_IF_ERROR(
        DeviceMemory::Create({info.memory_bytes, options.isolate_memory, options.large_pages}, &memory));
  }
  device->reset(new HostDevice(kernels, std::move(info), options, std::move(memory)));
  return OkStatus();
}

HostDevice::HostDevice(const KernelSet& kernels, DeviceInfo info, const HostDeviceOptions& options,
                       std::unique_ptr<DeviceMemory> memory)
    : kernels_(kernels),
      capabilities_(kernels, options.queue.team.size()),
      info_(std::move(info)),
      options_(options),
      memory_(std::move(memory)),
      pool_(memory_ != nullptr && options.pool_memory
                ? std::make_unique<PoolAllocator>(*memory_, [this] { Synchronize(); })
                : nullptr),
      isolated_(
          memory_ != nullptr && options.isolate_memory
              ? std::make_unique<IsolatedRange>(options.name, memory_->begin(), memory_->span(), options.pool_memory)
              : nullptr) {}

void* HostDevice::Allocate(size_t size) {
  if (memory_ == nullptr) return nullptr;
  void* const address = pool_ != nullptr ? pool_->Allocate(size) : memory_->Allocate(size);
  if (isolated_ != nullptr && address != nullptr) isolated_->Add(address, size);
  return address;
}

void HostDevice::Deallocate(void* address) {
  if (address == nullptr || memory_ == nullptr) return;
  if (isolated_ != nullptr) isolated_->Remove(address);
  if (pool_ != nullptr) {
    pool_->Deallocate(address);
  } else {
    Synchronize();
    memory_->Deallocate(address);
  }
}

AllocatorStats HostDevice::Stats() const {
  if (memory_ == nullptr) return AllocatorStats();
  return pool_ != nullptr ? pool_->Stats() : memory_->Stats();
}

void HostDevice::ResetStats() {
  if (pool_ != nullptr) {
    pool_->ResetStats();
  } else if (memory_ != nullptr) {
    memory_->ResetStats();
  }
}

void* HostDevice::AllocateHost(size_t size) {
  if (size == 0 || size > SIZE_MAX - kLargePage) return nullptr;
  const bool large = options_.large_pages && size >= kLargePage;
  const size_t alignment = large ? kLargePage : kHostAlignment;
  void* const address = std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (large && address != nullptr) AdviseLargePages(address, size, true);
  return address;
}

void HostDevice::DeallocateHost(void* address) { std::free(address); }

void HostDevice::MemoryUsage(int64_t* free_bytes, int64_t* total_bytes) const {
  *free_bytes = *total_bytes = 0;
  if (pool_ != nullptr) {
    pool_->Usage(free_bytes, total_bytes);
  } else if (memory_ != nullptr) {
    memory_->Usage(free_bytes, total_bytes);
  }
}

std::unique_ptr<Stream> HostDevice::CreateStream(int priority) {
  CommandQueue::Options options = options_.queue;
  options.niceness = priority;
  auto queue = std::make_shared<CommandQueue>(options);
  {
    std::lock_guard<std::mutex> lock(queues_mutex_);
    queues_.erase(std::remove_if(queues_.begin(), queues_.end(), [](const auto& q) { return q.expired(); }),
                  queues_.end());
    queues_.push_back(queue);
  }
  return std::make_unique<HostStream>(std::move(queue), memory_.get());
}

std::unique_ptr<Event> HostDevice::CreateEvent() { return std::make_unique<HostEvent>(); }
std::unique_ptr<Timer> HostDevice::CreateTimer() { return std::make_unique<HostTimer>(); }

void HostDevice::Synchronize() {
  std::vector<std::shared_ptr<CommandQueue>> queues;
  {
    std::lock_guard<std::mutex> lock(queues_mutex_);
    for (const auto& weak : queues_) {
      if (auto queue = weak.lock()) queues.push_back(std::move(queue));
    }
  }
  for (const auto& queue : queues) queue->Wait(queue->submitted());
}

template <typename Desc>
Status HostDevice::EnqueueAny(Stream& stream, const Desc& desc, const Args& args, const Footprint& footprint) {
  Args translated;
  for (int i = 0; i < footprint.num_in; ++i) {
    translated.in[i] = memory_ == nullptr ? args.in[i] : memory_->Translate(args.in[i]);
  }
  for (int i = 0; i < footprint.num_out; ++i) {
    translated.out[i] = memory_ == nullptr ? args.out[i] : memory_->Translate(args.out[i]);
  }
  translated.workspace = memory_ == nullptr ? args.workspace : memory_->Translate(args.workspace);
  CommandQueue& queue = static_cast<HostStream&>(stream).queue();
  const KernelSet* const kernels = &kernels_;
  const int64_t cost_ns = kernels_.EstimateNs(desc);
  auto run = [kernels, &desc, &translated](const ThreadTeam& team) { return kernels->Run(desc, translated, team); };
  if (trace::On()) {
    const trace::Label label = trace::LabelOf(desc, footprint);
    auto recorded = [&run, &label, &queue](const ThreadTeam& team) {
      const KernelSpan span(queue.line(), label);
      return run(team);
    };
    if (args.status != nullptr) {
      *args.status = queue.RunAwaited(cost_ns, recorded);
    } else if (!queue.TryRun(cost_ns, recorded)) {
      queue.Enqueue([kernels, desc, translated, label, &queue](const ThreadTeam& team) {
        const KernelSpan span(queue.line(), label);
        return kernels->Run(desc, translated, team);
      });
    }
    return OkStatus();
  }
  if (args.status != nullptr) {
    *args.status = queue.RunAwaited(cost_ns, run);
  } else if (!queue.TryRun(cost_ns, run)) {
    queue.Enqueue([kernels, desc, translated](const ThreadTeam& team) { return kernels->Run(desc, translated, team); });
  }
  return OkStatus();
}

#define XPU_ENQUEUE(name)                                                                                            \
  Status HostDevice::Enqueue(Stream& stream, const name##Desc& desc, const Args& args, const Footprint& footprint) { \
    return EnqueueAny(stream, desc, args, footprint);                                                                \
  }
XPU_PRIMITIVES(XPU_ENQUEUE)
#undef XPU_ENQUEUE

std::unique_ptr<Executable> HostDevice::Prepare(std::shared_ptr<const CommandList> list, const MemoryPlan& memory) {
  auto executable = HostExecutable::Make(kernels_, memory_.get(), options_.queue.team.size(), list, memory);
  return executable != nullptr ? std::move(executable) : Device::Prepare(std::move(list), memory);
}

}  // namespace xpu::host_runtime

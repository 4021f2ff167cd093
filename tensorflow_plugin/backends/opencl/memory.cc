#include "tensorflow_plugin/backends/opencl/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <utility>

#include "tensorflow_plugin/backends/host_runtime/log.h"
#include "tensorflow_plugin/backends/host_runtime/machine.h"

namespace xpu::opencl {
namespace {

// Arenas begin at pages and have one between them, so that no allocator takes two for one.
constexpr size_t kPage = 4096;

// Addresses cost nothing: so many that a gap is found without looking long.
constexpr size_t kSpanPerByte = 4;
constexpr size_t kLeastSpan = size_t{1} << 30;

// The ranges of all devices of the process.
struct Ranges {
  std::shared_mutex mutex;
  std::map<uintptr_t, Memory*> all;  // by the address where they begin
};
Ranges& AllRanges() {
  static auto& ranges = *new Ranges;
  return ranges;
}

size_t RoundUp(size_t n) { return (n + kPage - 1) / kPage * kPage; }

}  // namespace

Status Memory::Create(const Hardware& hardware, cl_context context, const Options& options,
                      std::unique_ptr<Memory>* memory) {
  const size_t span = std::max(RoundUp(static_cast<size_t>(options.limit)) * kSpanPerByte, kLeastSpan);
  void* const begin = mmap(nullptr, span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  XPU_REQUIRE(begin != MAP_FAILED, errors::ResourceExhausted("cannot reserve ", span, " bytes of addresses for ",
                                                             options.device, ": ", std::strerror(errno)));
  memory->reset(new Memory(hardware, context, options, reinterpret_cast<uintptr_t>(begin), span));
  return OkStatus();
}

Memory::Memory(const Hardware& hardware, cl_context context, const Options& options, uintptr_t begin, size_t span)
    : hardware_(hardware),
      context_(context),
      options_(options),
      begin_(begin),
      span_(span),
      explained_(options.explain
                     ? std::make_unique<host_runtime::IsolatedRange>(options.device, begin, span, options.pooled)
                     : nullptr),
      next_(begin) {
  stats_.bytes_limit = options.limit;
  Ranges& ranges = AllRanges();
  std::lock_guard<std::shared_mutex> lock(ranges.mutex);
  ranges.all.emplace(begin, this);
}

Memory::~Memory() {
  Ranges& ranges = AllRanges();
  {
    std::lock_guard<std::shared_mutex> lock(ranges.mutex);
    ranges.all.erase(begin_);
  }
  munmap(reinterpret_cast<void*>(begin_), span_);
}

Memory* Memory::Owner(const void* address) {
  const uintptr_t at = reinterpret_cast<uintptr_t>(address);
  Ranges& ranges = AllRanges();
  std::shared_lock<std::shared_mutex> lock(ranges.mutex);
  auto after = ranges.all.upper_bound(at);
  if (after == ranges.all.begin()) return nullptr;
  Memory* const memory = std::prev(after)->second;
  return at - memory->begin_ < memory->span_ ? memory : nullptr;
}

uintptr_t Memory::FindGap(size_t size) const {
  const size_t needed = RoundUp(size) + kPage;
  // From where the last one was found to the end, then from the beginning.
  for (uintptr_t from : {next_, begin_}) {
    uintptr_t at = from;
    auto arena = arenas_.upper_bound(at);
    if (arena != arenas_.begin()) {
      const auto& [begin, before] = *std::prev(arena);
      at = std::max(at, begin + RoundUp(before.size) + kPage);
    }
    for (; arena != arenas_.end() && arena->first - at < needed; ++arena) {
      at = arena->first + RoundUp(arena->second.size) + kPage;
    }
    if (begin_ + span_ - at >= needed) return at;
  }
  return 0;
}

void* Memory::Allocate(size_t size) {
  if (size == 0 || size > static_cast<size_t>(options_.limit)) return nullptr;
  if (hardware_.largest_allocation > 0 && size > static_cast<size_t>(hardware_.largest_allocation)) return nullptr;
  const int64_t bytes = static_cast<int64_t>(size);
  // The host's memory is given on first touch, where a shortage would kill the process: ask before, not then.
  const int64_t available = hardware_.is_processor ? host_runtime::AvailableMachineMemory() : 0;
  if (available > 0 && bytes > available) return nullptr;
  std::lock_guard<std::shared_mutex> lock(mutex_);
  if (bytes > options_.limit - stats_.bytes_in_use) return nullptr;
  const uintptr_t address = FindGap(size);
  if (address == 0) return nullptr;
  cl_int error = CL_SUCCESS;
  Handle<cl_mem> buffer(Cl().CreateBuffer(context_, CL_MEM_READ_WRITE, size, nullptr, &error));
  if (error != CL_SUCCESS) return nullptr;
  arenas_.emplace(address, AddressRange{size, std::move(buffer)});
  next_ = address + RoundUp(size) + kPage;
  ++stats_.num_allocs;
  stats_.bytes_in_use += bytes;
  stats_.peak_bytes_in_use = std::max(stats_.peak_bytes_in_use, stats_.bytes_in_use);
  stats_.largest_alloc_size = std::max(stats_.largest_alloc_size, bytes);
  stats_.bytes_reserved = stats_.bytes_in_use;
  stats_.peak_bytes_reserved = stats_.peak_bytes_in_use;
  if (explained_ != nullptr) explained_->Add(reinterpret_cast<void*>(address), size);
  return reinterpret_cast<void*>(address);
}

void Memory::Deallocate(void* address) {
  if (address == nullptr) return;
  AddressRange freed{};  // released without the lock
  std::lock_guard<std::shared_mutex> lock(mutex_);
  const auto arena = arenas_.find(reinterpret_cast<uintptr_t>(address));
  if (arena == arenas_.end()) {
    host_runtime::LogError("deallocation of ", address,
                           ", which is not allocated device memory (or no longer): ignored");
    return;
  }
  if (explained_ != nullptr) explained_->Remove(address);
  stats_.bytes_in_use -= static_cast<int64_t>(arena->second.size);
  stats_.bytes_reserved = stats_.bytes_in_use;
  freed = std::move(arena->second);
  arenas_.erase(arena);
}

AllocatorStats Memory::Stats() const {
  std::shared_lock<std::shared_mutex> lock(mutex_);
  return stats_;
}

void Memory::ResetStats() {
  std::lock_guard<std::shared_mutex> lock(mutex_);
  stats_.num_allocs = stats_.largest_alloc_size = 0;
  stats_.peak_bytes_in_use = stats_.peak_bytes_reserved = stats_.bytes_in_use;
}

void Memory::Usage(int64_t* free_bytes, int64_t* total_bytes) const {
  const int64_t available = hardware_.is_processor ? host_runtime::AvailableMachineMemory() : 0;
  std::shared_lock<std::shared_mutex> lock(mutex_);
  *total_bytes = options_.limit;
  *free_bytes = options_.limit - stats_.bytes_in_use;
  if (available > 0) *free_bytes = std::min(*free_bytes, available);
}

bool Memory::Find(const void* address, size_t size, MemorySlice* place) const {
  const uintptr_t at = reinterpret_cast<uintptr_t>(address);
  if (at - begin_ >= span_) return false;
  std::shared_lock<std::shared_mutex> lock(mutex_);
  auto arena = arenas_.upper_bound(at);
  if (arena == arenas_.begin()) return false;
  --arena;
  const size_t offset = at - arena->first;
  if (offset > arena->second.size || size > arena->second.size - offset) return false;
  *place = {arena->second.buffer.get(), offset};
  return true;
}

Status Memory::Locate(const void* address, size_t size, MemorySlice* place) const {
  if (Find(address, size, place)) return OkStatus();
  return errors::InvalidArgument(size, " bytes at ", address, " are not within one allocation of the device ",
                                 options_.device);
}

Status Memory::Transfer(void* host, const void* device, size_t size, bool to_device) {
  if (size == 0) return OkStatus();
  MemorySlice place;
  XPU_RETURN_IF_ERROR(Locate(device, size, &place));
  std::lock_guard<std::mutex> lock(transfers_mutex_);
  if (!transfers_) {
    cl_int error = CL_SUCCESS;
    transfers_ = Handle<cl_command_queue>(Cl().CreateCommandQueue(context_, hardware_.id, 0, &error));
    XPU_RETURN_IF_CL_ERROR(error, "a queue for copies on " + options_.device);
  }
  const cl_command_queue queue = transfers_.get();
  const cl_int error =
      to_device ? Cl().EnqueueWriteBuffer(queue, place.buffer, CL_TRUE, place.offset, size, host, 0, nullptr, nullptr)
                : Cl().EnqueueReadBuffer(queue, place.buffer, CL_TRUE, place.offset, size, host, 0, nullptr, nullptr);
  return ToStatus(error, errors::Concat("a copy of ", size, " bytes ", to_device ? "to " : "from ", options_.device));
}

Status Memory::Read(void* host_dst, const void* device_src, size_t size) {
  return Transfer(host_dst, device_src, size, /*to_device=*/false);
}
Status Memory::Write(void* device_dst, const void* host_src, size_t size) {
  return Transfer(const_cast<void*>(host_src), device_dst, size, /*to_device=*/true);
}

}  // namespace xpu::opencl

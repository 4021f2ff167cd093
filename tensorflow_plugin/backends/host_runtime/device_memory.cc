#include "tensorflow_plugin/backends/host_runtime/device_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "tensorflow_plugin/backends/host_runtime/large_pages.h"
#include "tensorflow_plugin/backends/host_runtime/log.h"
#include "tensorflow_plugin/backends/host_runtime/machine.h"
#include "tensorflow_plugin/primitives/fork.h"

namespace xpu::host_runtime {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kMinSpan = size_t{1} << 30;

size_t RoundUp(size_t n, size_t multiple) { return (n + multiple - 1) / multiple * multiple; }

// Addresses without rights and without memory.
void* Reserve(size_t size) {
  void* p = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? nullptr : p;
}

// Pages of the extent, and one more behind it that is never made accessible: writing past the end faults.
size_t ExtentOf(size_t size) { return RoundUp(size, kPage) + kPage; }

// The memories of all devices there are.
struct MemoryRegistry {
  Mutex mutex;
  std::vector<const DeviceMemory*> memories;
};
MemoryRegistry& AllMemories() {
  static auto* const registry = new MemoryRegistry;
  return *registry;
}

}  // namespace

Status DeviceMemory::Create(const DeviceMemoryOptions& options, std::unique_ptr<DeviceMemory>* memory) {
  const int64_t limit = options.limit;
  XPU_REQUIRE(limit > 0, errors::InvalidArgument("the memory of a device must be more than 0 bytes, not ", limit));
  // Room to spare, so that holes between allocations never cost memory; less where addresses are rationed.
  size_t span = RoundUp(std::max<size_t>(size_t(limit) + size_t(limit) / 2, 1), kLargePage) + kMinSpan;
  const size_t least = RoundUp(size_t(limit), kLargePage) + kLargePage;
  for (;; span = std::max(span / 2, least)) {
    const size_t ranges = options.isolate ? 2 : 1;
    void* p = Reserve(span * ranges);
    if (p != nullptr) {
      memory->reset(new DeviceMemory(options, reinterpret_cast<uintptr_t>(p), span));
      return OkStatus();
    }
    if (span <= least) break;
  }
  return errors::ResourceExhausted("cannot reserve ", least, " bytes of address space for the memory of a device");
}

DeviceMemory::DeviceMemory(const DeviceMemoryOptions& options, uintptr_t base, size_t span)
    : base_(base), span_(span), delta_(options.isolate ? span : 0), large_pages_(options.large_pages) {
  free_[base] = span;
  stats_.bytes_limit = options.limit;
  std::lock_guard<std::mutex> lock(AllMemories().mutex);
  AllMemories().memories.push_back(this);
}

DeviceMemory::~DeviceMemory() {
  {
    std::lock_guard<std::mutex> lock(AllMemories().mutex);
    std::vector<const DeviceMemory*>& all = AllMemories().memories;
    all.erase(std::remove(all.begin(), all.end(), this), all.end());
  }
  munmap(reinterpret_cast<void*>(base_), span_ + delta_);
}

void* DeviceMemory::TranslateAny(void* address) {
  std::lock_guard<std::mutex> lock(AllMemories().mutex);
  for (const DeviceMemory* memory : AllMemories().memories) {
    // The result lies in no range of addresses given out: translating it once more changes nothing.
    void* const translated = memory->Translate(address);
    if (translated != address) return translated;
  }
  return address;
}

uintptr_t DeviceMemory::TakeExtent(size_t size, size_t alignment) {
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    const uintptr_t begin = RoundUp(it->first, alignment);
    const uintptr_t end = it->first + it->second;
    if (begin >= end || end - begin < size) continue;
    const uintptr_t extent_begin = it->first;
    free_.erase(it);
    if (begin > extent_begin) free_[extent_begin] = begin - extent_begin;
    if (begin + size < end) free_[begin + size] = end - begin - size;
    return begin;
  }
  return 0;
}

void DeviceMemory::ReturnExtent(uintptr_t begin, size_t size) {
  auto next = free_.lower_bound(begin);
  if (next != free_.end() && next->first == begin + size) {
    size += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    auto previous = std::prev(next);
    if (previous->first + previous->second == begin) {
      previous->second += size;
      return;
    }
  }
  free_[begin] = size;
}

void* DeviceMemory::Allocate(size_t size) {
  if (size == 0) return nullptr;
  // Pages are given on first touch, where a shortage would kill the process: ask before, not then.
  const int64_t available = AvailableMachineMemory();
  std::lock_guard<std::mutex> lock(mutex_);
  if (size > static_cast<size_t>(stats_.bytes_limit - stats_.bytes_in_use)) return nullptr;
  if (available > 0 && size > static_cast<size_t>(available)) return nullptr;
  const size_t extent = ExtentOf(size);
  const bool large = size >= kLargePage;
  const uintptr_t begin = TakeExtent(extent, large ? kLargePage : kPage);
  if (begin == 0) return nullptr;
  void* const backing = reinterpret_cast<void*>(begin + delta_);
  if (mprotect(backing, extent - kPage, PROT_READ | PROT_WRITE) != 0) {
    ReturnExtent(begin, extent);
    return nullptr;
  }
  if (large) AdviseLargePages(backing, extent - kPage, large_pages_);
  const int64_t bytes = static_cast<int64_t>(size);
  allocated_[begin] = size;
  ++stats_.num_allocs;
  stats_.bytes_in_use += bytes;
  stats_.peak_bytes_in_use = std::max(stats_.peak_bytes_in_use, stats_.bytes_in_use);
  stats_.largest_alloc_size = std::max(stats_.largest_alloc_size, bytes);
  stats_.bytes_reserved = stats_.bytes_in_use;
  stats_.peak_bytes_reserved = stats_.peak_bytes_in_use;
  return reinterpret_cast<void*>(begin);
}

void DeviceMemory::Deallocate(void* address) {
  if (address == nullptr) return;
  std::lock_guard<std::mutex> lock(mutex_);
  auto it = allocated_.find(reinterpret_cast<uintptr_t>(address));
  if (it == allocated_.end()) {
    LogError("deallocation of ", address, ", which is not allocated device memory (or no longer): ignored");
    return;
  }
  const size_t extent = ExtentOf(it->second);
  void* const backing = reinterpret_cast<void*>(it->first + delta_);
  // A fresh mapping over the old one returns the pages and takes the rights away in one step.
  if (mmap(backing, extent, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED) {
    LogError("the system would not take back ", extent, " bytes of device memory at ", address);
  }
  stats_.bytes_in_use -= static_cast<int64_t>(it->second);
  stats_.bytes_reserved = stats_.bytes_in_use;
  ReturnExtent(it->first, extent);
  allocated_.erase(it);
}

AllocatorStats DeviceMemory::Stats() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return stats_;
}

void DeviceMemory::ResetStats() {
  std::lock_guard<std::mutex> lock(mutex_);
  stats_.num_allocs = 0;
  stats_.largest_alloc_size = 0;
  stats_.peak_bytes_in_use = stats_.peak_bytes_reserved = stats_.bytes_in_use;
}

void DeviceMemory::Usage(int64_t* free_bytes, int64_t* total_bytes) const {
  const int64_t available = AvailableMachineMemory();
  std::lock_guard<std::mutex> lock(mutex_);
  *total_bytes = stats_.bytes_limit;
  *free_bytes = stats_.bytes_limit - stats_.bytes_in_use;
  if (available > 0) *free_bytes = std::min(*free_bytes, available);
}

}  // namespace xpu::host_runtime

#include "tensorflow_plugin/backends/cuda/memory.h"

#include <algorithm>
#include <shared_mutex>
#include <utility>

#include "tensorflow_plugin/backends/host_runtime/log.h"

namespace xpu::cuda {
namespace {

// Blocks of a few sizes are found again more often.
constexpr size_t kSmallUnit = 512, kLargeUnit = size_t{2} << 20;

size_t RoundUp(size_t size) {
  const size_t unit = size < kLargeUnit ? kSmallUnit : kLargeUnit;
  return (size + unit - 1) / unit * unit;
}

// The driver's allocations of all devices of the process: where they begin, and their sizes.
struct Allocations {
  std::shared_mutex mutex;
  std::map<uintptr_t, size_t> all;
};
Allocations& All() {
  static auto& allocations = *new Allocations;
  return allocations;
}

}  // namespace

Memory::Memory(ContextHandle context, int64_t limit, std::string device)
    : context_(context), device_(std::move(device)) {
  stats_.bytes_limit = limit;
}

Memory::~Memory() {
  std::lock_guard<std::mutex> lock(mutex_);
  for (auto& [address, block] : blocks_) {
    if (block.asked != 0) kept_.emplace(block.size, address);
  }
  Free(kept_);
}

DeviceAddress Memory::AllocateByDriver(size_t rounded) {
  DeviceAddress made = 0;
  if (Cu().CtxSetCurrent(context_) != kSuccess) return 0;
  return Cu().MemAlloc(&made, rounded) == kSuccess ? made : 0;
}

void* Memory::Allocate(size_t size, bool is_for_caller) {
  if (size == 0 || size > static_cast<size_t>(stats_.bytes_limit)) return nullptr;
  const int64_t bytes = static_cast<int64_t>(size);
  const size_t rounded = RoundUp(size);
  std::unique_lock<std::mutex> lock(mutex_);
  const auto exceeds_limit = [&] { return bytes > stats_.bytes_limit - stats_.bytes_in_use; };
  if (exceeds_limit()) return nullptr;
  uintptr_t address = 0;
  // A kept block must not waste more than it serves.
  const auto found = kept_.lower_bound(rounded);
  if (is_for_caller && found != kept_.end() && found->first / 2 <= rounded) {
    address = found->second;
    kept_.erase(found);
  } else {
    address = AllocateByDriver(rounded);
    if (address == 0) {
      Trim(/*may_wait=*/is_for_caller, &lock);
      if (exceeds_limit()) return nullptr;
      address = AllocateByDriver(rounded);
      if (address == 0) return nullptr;
    }
    blocks_[address].size = rounded;
    stats_.bytes_reserved += static_cast<int64_t>(rounded);
    Allocations& all = All();
    std::lock_guard<std::shared_mutex> lock_all(all.mutex);
    all.all[address] = rounded;
  }
  blocks_[address].asked = size;
  ++stats_.num_allocs;
  stats_.bytes_in_use += bytes;
  stats_.peak_bytes_in_use = std::max(stats_.peak_bytes_in_use, stats_.bytes_in_use);
  stats_.largest_alloc_size = std::max(stats_.largest_alloc_size, bytes);
  stats_.peak_bytes_reserved = std::max(stats_.peak_bytes_reserved, stats_.bytes_reserved);
  return reinterpret_cast<void*>(address);
}

void Memory::Deallocate(void* address) {
  if (address == nullptr) return;
  std::lock_guard<std::mutex> lock(mutex_);
  const auto block = blocks_.find(reinterpret_cast<uintptr_t>(address));
  if (block == blocks_.end() || block->second.asked == 0) {
    host_runtime::LogError("deallocation of ", address,
                           ", which is not allocated device memory (or no longer): ignored");
    return;
  }
  stats_.bytes_in_use -= static_cast<int64_t>(std::exchange(block->second.asked, 0));
  // Before others of its size: a program's step then finds the blocks of the step before, for which there are graphs.
  kept_.emplace_hint(kept_.lower_bound(block->second.size), block->second.size, block->first);
}

void Memory::Trim(bool may_wait, std::unique_lock<std::mutex>* lock) {
  // Objects that commands keep may free memory when these have run. A second thread finds what this one gives back.
  lock->unlock();
  std::unique_lock<std::mutex> trimming(trimming_, std::defer_lock);
  const bool has_turn = may_wait ? (trimming.lock(), true) : trimming.try_lock();
  lock->lock();
  if (!has_turn) return;
  if (kept_.empty()) return;
  // Nobody enqueues commands that use these. Blocks that are freed from now on stay.
  const std::multimap<size_t, uintptr_t> blocks = std::exchange(kept_, {});
  lock->unlock();
  const bool released = release_ == nullptr || release_(may_wait);
  lock->lock();
  if (released) {
    Free(blocks);
  } else {
    kept_.insert(blocks.begin(), blocks.end());
  }
}

void Memory::Free(const std::multimap<size_t, uintptr_t>& blocks) {
  if (blocks.empty() || Cu().CtxSetCurrent(context_) != kSuccess) return;
  Allocations& all = All();
  for (const auto& [size, address] : blocks) {
    {
      std::lock_guard<std::shared_mutex> lock(all.mutex);
      all.all.erase(address);
    }
    const Result error = Cu().MemFree(address);
    if (error != kSuccess) host_runtime::LogError("cuMemFree on ", device_, " failed with ", ErrorName(error));
    stats_.bytes_reserved -= static_cast<int64_t>(size);
    blocks_.erase(address);
  }
}

AllocatorStats Memory::Stats() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return stats_;
}

void Memory::ResetStats() {
  std::lock_guard<std::mutex> lock(mutex_);
  stats_.num_allocs = stats_.largest_alloc_size = 0;
  stats_.peak_bytes_in_use = stats_.bytes_in_use;
  stats_.peak_bytes_reserved = stats_.bytes_reserved;
}

void Memory::Usage(int64_t* free_bytes, int64_t* total_bytes) const {
  std::lock_guard<std::mutex> lock(mutex_);
  *total_bytes = stats_.bytes_limit;
  *free_bytes = stats_.bytes_limit - stats_.bytes_in_use;
  size_t free = 0, total = 0;
  if (Cu().CtxSetCurrent(context_) != kSuccess || Cu().MemGetInfo(&free, &total) != kSuccess) return;
  const int64_t kept = stats_.bytes_reserved - stats_.bytes_in_use;
  *free_bytes = std::min(*free_bytes, static_cast<int64_t>(free) + std::max<int64_t>(0, kept));
}

bool Memory::IsDeviceMemory(const void* address) {
  const uintptr_t at = reinterpret_cast<uintptr_t>(address);
  Allocations& all = All();
  std::shared_lock<std::shared_mutex> lock(all.mutex);
  const auto after = all.all.upper_bound(at);
  if (after == all.all.begin()) return false;
  const auto& [begin, size] = *std::prev(after);
  return at - begin < size;
}

}  // namespace xpu::cuda

#include "tensorflow_plugin/backends/host_runtime/pool_allocator.h"

#include <algorithm>
#include <iterator>

#include "tensorflow_plugin/backends/host_runtime/log.h"

namespace xpu::host_runtime {
namespace {

constexpr size_t kAlignment = 256;
// Blocks up to this size are cut from common segments, at least eight from each.
constexpr size_t kMaxSmallBlock = size_t{256} << 10;
constexpr size_t kMinSegment = size_t{64} << 10;

size_t RoundUp(size_t n, size_t multiple) { return (n + multiple - 1) / multiple * multiple; }

// The size of the blocks that serve `size`: a multiple of an eighth of the power of two below it.
size_t BlockSize(size_t size) {
  size_t step = kAlignment;
  while (step * 16 < size) step *= 2;
  return RoundUp(size, step);
}

}  // namespace

PoolAllocator::PoolAllocator(DeviceMemory& memory, std::function<void()> wait)
    : memory_(memory), wait_(std::move(wait)) {
  stats_.bytes_limit = memory.Stats().bytes_limit;
}

void* PoolAllocator::Allocate(size_t size) {
  if (size == 0 || size > static_cast<size_t>(stats_.bytes_limit)) return nullptr;
  const size_t exact = RoundUp(size, kAlignment);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (void* p = TakeLocked(exact)) return p;
  }
  std::lock_guard<std::mutex> grow(grow_mutex_);
  {
    // The previous holder of the lock may have brought what is needed.
    std::lock_guard<std::mutex> lock(mutex_);
    if (void* p = TakeLocked(exact)) return p;
  }
  return Grow(exact);
}

void* PoolAllocator::TakeLocked(size_t exact) {
  const size_t largest = BlockSize(exact);
  for (auto it = free_.lower_bound(exact); it != free_.end() && it->first <= largest; ++it) {
    if (it->second.empty()) continue;
    char* const p = it->second.back();
    it->second.pop_back();
    PoolBlock& block = blocks_.at(p);
    block.used = true;
    ++block.segment->second.used_blocks;
    const int64_t bytes = static_cast<int64_t>(block.segment->second.block_size);
    ++stats_.num_allocs;
    stats_.bytes_in_use += bytes;
    stats_.peak_bytes_in_use = std::max(stats_.peak_bytes_in_use, stats_.bytes_in_use);
    stats_.largest_alloc_size = std::max(stats_.largest_alloc_size, bytes);
    return p;
  }
  return nullptr;
}

void* PoolAllocator::Grow(size_t exact) {
  Segment segment;
  segment.block_size = BlockSize(exact);
  segment.size = segment.block_size;
  if (segment.block_size <= kMaxSmallBlock) segment.size *= std::max<size_t>(kMinSegment / segment.block_size, 8);
  char* base = static_cast<char*>(memory_.Allocate(segment.size));
  if (base == nullptr) {
    segment.size = segment.block_size = exact;
    while ((base = static_cast<char*>(memory_.Allocate(exact))) == nullptr) {
      if (!ReleaseOne()) return nullptr;
    }
  }
  std::lock_guard<std::mutex> lock(mutex_);
  const auto added = segments_.emplace(base, segment).first;
  std::vector<char*>& free = free_[segment.block_size];
  // The first block ends up last, to be the next.
  for (size_t offset = segment.size; offset >= segment.block_size; offset -= segment.block_size) {
    char* const p = base + offset - segment.block_size;
    blocks_[p] = {added, false};
    free.push_back(p);
  }
  stats_.bytes_reserved += static_cast<int64_t>(segment.size);
  stats_.peak_bytes_reserved = std::max(stats_.peak_bytes_reserved, stats_.bytes_reserved);
  return TakeLocked(exact);
}

bool PoolAllocator::ReleaseOne() {
  char* base;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    auto largest = segments_.end();
    for (auto it = segments_.begin(); it != segments_.end(); ++it) {
      if (it->second.used_blocks > 0) continue;
      if (largest == segments_.end() || it->second.size > largest->second.size) largest = it;
    }
    if (largest == segments_.end()) return false;
    base = largest->first;
    const Segment segment = largest->second;
    const auto within = [&](char* p) { return p >= base && p < base + segment.size; };
    std::vector<char*>& free = free_[segment.block_size];
    free.erase(std::remove_if(free.begin(), free.end(), within), free.end());
    if (free.empty()) free_.erase(segment.block_size);
    for (size_t offset = 0; offset < segment.size; offset += segment.block_size) blocks_.erase(base + offset);
    segments_.erase(largest);
    stats_.bytes_reserved -= static_cast<int64_t>(segment.size);
  }
  // Only now: nobody can be given the memory any more, so all commands that use it are enqueued.
  wait_();
  memory_.Deallocate(base);
  return true;
}

void PoolAllocator::Deallocate(void* address) {
  if (address == nullptr) return;
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = blocks_.find(address);
  if (found == blocks_.end() || !found->second.used) {
    LogError("deallocation of ", address, ", which is not allocated device memory (or no longer): ignored");
    return;
  }
  Segment& segment = found->second.segment->second;
  found->second.used = false;
  --segment.used_blocks;
  free_[segment.block_size].push_back(static_cast<char*>(address));
  stats_.bytes_in_use -= static_cast<int64_t>(segment.block_size);
}

AllocatorStats PoolAllocator::Stats() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return stats_;
}

void PoolAllocator::ResetStats() {
  std::lock_guard<std::mutex> lock(mutex_);
  stats_.num_allocs = 0;
  stats_.largest_alloc_size = 0;
  stats_.peak_bytes_in_use = stats_.bytes_in_use;
  stats_.peak_bytes_reserved = stats_.bytes_reserved;
}

void PoolAllocator::Usage(int64_t* free_bytes, int64_t* total_bytes) const {
  memory_.Usage(free_bytes, total_bytes);
  std::lock_guard<std::mutex> lock(mutex_);
  *free_bytes += stats_.bytes_reserved - stats_.bytes_in_use;
}

}  // namespace xpu::host_runtime

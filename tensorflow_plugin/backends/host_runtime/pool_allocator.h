// A caching allocator in stream order over DeviceMemory, for callers that allocate each tensor by itself.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_POOL_ALLOCATOR_H_
#define TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_POOL_ALLOCATOR_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tensorflow_plugin/backends/host_runtime/device_memory.h"
#include "tensorflow_plugin/primitives/backend.h"
#include "tensorflow_plugin/primitives/fork.h"

namespace xpu::host_runtime {

// Thread-safe.
//
// Freed memory is handed out again at once, though commands that use it may still be queued. That is sound for the same
// reason for which TensorFlow's own allocator may do it. The next owner of the memory uses it in commands later in the
// order of the streams (rules 1, 2 and 4 of device/stream_executor.cc). In particular
//  - kernels run on one compute stream per device, in order;
//  - a copy to the device, on a stream of its own, waits for all work enqueued before it. So it cannot overwrite what a
//    queued kernel still reads;
//  - a copy from the device or to another one is awaited by the caller before it frees the copy's memory. Work on the
//    compute stream that uses a copied tensor waits for the copy.
// Only memory that goes back to the system leaves this order, as nothing holds back the commands that still use it.
// Then, and only then, the allocator waits for the device.
//
// Sizes are rounded up to a multiple of an eighth of the power of two below (and of 256 bytes). So at most a ninth of a
// large block is wasted, and tensors of nearly the same size share blocks. Small blocks are cut from a common segment;
// a large one is a segment by itself.
class PoolAllocator {
 public:
  // `wait` returns when all commands enqueued on the device so far have run. `memory` outlives the pool.
  PoolAllocator(DeviceMemory& memory, std::function<void()> wait);
  PoolAllocator(const PoolAllocator&) = delete;
  PoolAllocator& operator=(const PoolAllocator&) = delete;

  // Aligned to 256 bytes, with undefined contents. The result is nullptr for size 0. It is nullptr also when memory is
  // short even after all that was kept for reuse has gone back to the system.
  void* Allocate(size_t size);
  // nullptr is permitted; an address that is not allocated is logged and left alone.
  void Deallocate(void* address);

  // bytes_in_use are those of the blocks; bytes_reserved include what is kept for reuse.
  AllocatorStats Stats() const;
  void ResetStats();
  // The bytes that could still be allocated, and the limit.
  void Usage(int64_t* free_bytes, int64_t* total_bytes) const;

 private:
  // A piece of memory that came from `memory_`.
  struct Segment {
    size_t size = 0;
    size_t block_size = 0;
    int used_blocks = 0;
  };
  struct PoolBlock {
    std::map<char*, Segment>::iterator segment;
    bool used = false;
  };

  // A free block for `exact` bytes, a multiple of the alignment; nullptr if there is none.
  void* TakeLocked(size_t exact);
  // The same after taking memory from the system; nullptr if that has no more.
  void* Grow(size_t exact);
  // Gives the largest segment without used blocks back to the system; false if there is none.
  bool ReleaseOne();

  DeviceMemory& memory_;
  const std::function<void()> wait_;

  Mutex grow_mutex_;  // held while the system gives or takes, which may take long; before mutex_
  mutable Mutex mutex_;
  std::map<char*, Segment> segments_;
  std::unordered_map<void*, PoolBlock> blocks_;
  std::map<size_t, std::vector<char*>> free_;  // by the blocks' size; the last freed is the next to be used
  AllocatorStats stats_;
};

}  // namespace xpu::host_runtime

#endif  // TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_POOL_ALLOCATOR_H_

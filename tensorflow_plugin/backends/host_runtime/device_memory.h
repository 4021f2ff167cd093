// Device memory on the host: one reserved range of addresses per device, backed by pages only where allocated and
// touched.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_DEVICE_MEMORY_H_
#define TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_DEVICE_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "tensorflow_plugin/primitives/backend.h"
#include "tensorflow_plugin/primitives/fork.h"
#include "tensorflow_plugin/primitives/status.h"

namespace xpu::host_runtime {

struct DeviceMemoryOptions {
  int64_t limit = 0;  // bytes that may be allocated at a time, greater than 0
  bool isolate = false;
  bool large_pages = true;
};

// Thread-safe. Made for few and large allocations: TensorFlow's best-fit allocator or a
// PoolAllocator sits above.
//
// With `isolate`, the addresses given out lie in a second range of the same layout that has no access rights. Only
// Translate leads to the memory: a use of a device address on the host faults at once. The two ranges lie a constant
// distance apart, so that a translation is one comparison and one addition.
class DeviceMemory {
 public:
  static Status Create(const DeviceMemoryOptions& options, std::unique_ptr<DeviceMemory>* memory);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // Zeroed memory, aligned to a page (2 MiB from that size on, so that huge pages serve it). The result is nullptr for
  // size 0, and when the limit, the machine's memory or the reserved range are too small.
  void* Allocate(size_t size);
  // The memory is gone at once. nullptr is permitted; an address that is not allocated is logged and left alone.
  void Deallocate(void* address);

  // Where the backend finds what lies at `address`. Addresses outside the device's range stay what they are.
  template <typename T>
  T* Translate(T* address) const {
    const uintptr_t a = reinterpret_cast<uintptr_t>(address);
    return reinterpret_cast<T*>(a - base_ < span_ ? a + delta_ : a);
  }

  // The same for an address of whichever device of this process: copies between devices need it.
  static void* TranslateAny(void* address);

  AllocatorStats Stats() const;
  void ResetStats();
  // The bytes that could still be allocated, and the limit.
  void Usage(int64_t* free_bytes, int64_t* total_bytes) const;
  bool large_pages() const { return large_pages_; }
  // The range of the addresses given out.
  uintptr_t begin() const { return base_; }
  size_t span() const { return span_; }

 private:
  DeviceMemory(const DeviceMemoryOptions& options, uintptr_t base, size_t span);
  uintptr_t TakeExtent(size_t size, size_t alignment);
  void ReturnExtent(uintptr_t begin, size_t size);

  const uintptr_t base_;  // of the addresses given out
  const size_t span_;
  const uintptr_t delta_;  // from there to the memory; 0 without isolation
  const bool large_pages_;

  mutable Mutex mutex_;
  std::map<uintptr_t, size_t> free_;       // begin -> bytes; never two that touch
  std::map<uintptr_t, size_t> allocated_;  // begin -> bytes asked for
  AllocatorStats stats_;
};

}  // namespace xpu::host_runtime

#endif  // TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_DEVICE_MEMORY_H_

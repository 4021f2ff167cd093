// Says what happened when the host touches device memory that is isolated from it, before the process dies of it.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_HOST_ACCESS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_HOST_ACCESS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "tensorflow_plugin/primitives/fork.h"

namespace xpu::host_runtime {

// A range of addresses without access rights, and the allocations in it. While it lives, an access is reported on
// stderr: the device, the allocation, its size, and what to do instead. The report is made in a handler of SIGSEGV.
// That leaves the signal to the previous handler, so that the process ends as it would have. Thread-safe.
class IsolatedRange {
 public:
  // `device` names the owner. `pooled`: allocations are single tensors; otherwise the caller of the allocator divides
  // them.
  IsolatedRange(std::string device, uintptr_t begin, size_t size, bool pooled);
  ~IsolatedRange();
  IsolatedRange(const IsolatedRange&) = delete;
  IsolatedRange& operator=(const IsolatedRange&) = delete;

  void Add(const void* address, size_t size);
  void Remove(const void* address);

  // For the signal handler, so without locks or the heap: the report if `address` lies in this range.
  bool Report(uintptr_t address, const char* verb) const;

 private:
  // An address of 0 marks a free slot.
  struct HandlerSlot {
    std::atomic<uintptr_t> begin{0};
    std::atomic<size_t> size{0};
  };
  // More allocations than this at a time are not told apart.
  static constexpr size_t kSlots = 16384;

  const std::string device_;
  const uintptr_t begin_;
  const size_t size_;
  const bool pooled_;
  const std::unique_ptr<HandlerSlot[]> slots_;
  std::atomic<size_t> used_slots_{0};  // the slots from here on were never used

  Mutex mutex_;
  std::vector<size_t> free_slots_;
  std::unordered_map<uintptr_t, size_t> slot_of_;
};

}  // namespace xpu::host_runtime

#endif  // TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_HOST_ACCESS_H_

// Device memory of the driver's. Freed blocks are kept and given out again: the driver waits for the whole GPU when it
// frees memory.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CUDA_MEMORY_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CUDA_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "tensorflow_plugin/backends/cuda/driver.h"
#include "tensorflow_plugin/backends/gpu/machine.h"
#include "tensorflow_plugin/primitives/backend.h"

namespace xpu::cuda {

class Memory final : public gpu::Memory {
 public:
  // Memory of a context; `device` is the name for messages.
  Memory(ContextHandle context, int64_t limit, std::string device);
  ~Memory() override;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // The driver knows nothing of commands that queues still have (queue.h). So freed blocks go back to it only when
  // `release(may_wait)` is true: all that was enqueued so far is the driver's or has run. It waits for that if it may.
  // Before this is called there are no queues.
  void AskBeforeTrim(std::function<bool(bool may_wait)> release) { release_ = std::move(release); }

  // May wait for all commands.
  void* Allocate(size_t size) override { return Allocate(size, /*is_for_caller=*/true); }
  // For code that enqueues. It gives no freed block, which queued commands of another stream may still use. It waits
  // for no callback, so that memory may be short while there is one.
  void* AllocateUnused(size_t size) { return Allocate(size, /*is_for_caller=*/false); }
  // A later block at this address is used behind the commands of the same stream.
  void Deallocate(void* address) override;
  AllocatorStats Stats() const override;
  void ResetStats() override;
  void Usage(int64_t* free_bytes, int64_t* total_bytes) const override;

  // True if the address lies in an allocation of some device of this process.
  static bool IsDeviceMemory(const void* address);

 private:
  struct Block {
    size_t size;       // of the driver's allocation
    size_t asked = 0;  // by the caller; 0: it is kept for reuse
  };
  void* Allocate(size_t size, bool is_for_caller);
  DeviceAddress AllocateByDriver(size_t rounded);  // 0: there is not enough
  // Gives what is kept back to the driver. Lets go of the lock meanwhile.
  void Trim(bool may_wait, std::unique_lock<std::mutex>* lock);
  void Free(const std::multimap<size_t, uintptr_t>& blocks);

  const ContextHandle context_;
  const std::string device_;
  std::function<bool(bool may_wait)> release_;
  std::mutex trimming_;  // taken before mutex_
  mutable std::mutex mutex_;
  std::map<uintptr_t, Block> blocks_;
  std::multimap<size_t, uintptr_t> kept_;  // by size
  AllocatorStats stats_;
};

}  // namespace xpu::cuda

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CUDA_MEMORY_H_

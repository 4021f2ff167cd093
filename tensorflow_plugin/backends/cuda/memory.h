// Device memory of the driver's. Freed blocks are kept and given out again: the driver waits for the whole GPU when it
// frees memory.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CUDA_MEMORY_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CUDA_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

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

  void* Allocate(size_t size) override { return Allocate(size, /*takes_kept=*/true); }
  // The same, but never a freed block: queued commands of another stream may still use that.
  void* AllocateUnused(size_t size) { return Allocate(size, /*takes_kept=*/false); }
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
  void* Allocate(size_t size, bool takes_kept);
  void Trim();  // gives what is kept back to the driver

  const ContextHandle context_;
  const std::string device_;
  mutable std::mutex mutex_;
  std::map<uintptr_t, Block> blocks_;
  std::multimap<size_t, uintptr_t> kept_;  // by size
  AllocatorStats stats_;
};

}  // namespace xpu::cuda

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CUDA_MEMORY_H_

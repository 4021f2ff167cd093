// Copies between the device and ordinary memory of the host, through pinned memory of our own. The driver's own copies
// of ordinary memory block the caller inside the driver, where other threads of the process must wait for them.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CUDA_STAGING_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CUDA_STAGING_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "tensorflow_plugin/backends/cuda/driver.h"

namespace xpu::cuda {

class EventObject;
// True if the driver copies to and from this host memory without a detour.
bool IsPinned(const void* address);

// Blocks of pinned memory, taken in turns. Not thread-safe.
class Staging {
 public:
  explicit Staging(ContextHandle context);
  // All copies must have run.
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // How much can be on its way at a time.
  static constexpr size_t kBlockBytes = size_t{4} << 20;
  static constexpr size_t kBlocks = 8;
  static constexpr size_t kBytes = kBlocks * kBlockBytes;

  // Reads `from` before it returns, and enqueues the copy. Waits for blocks beyond kBytes.
  Status ToDevice(void* to, const void* from, size_t size, StreamHandle stream);
  // Has copied when it returns: behind what the stream runs.
  Status ToHost(void* to, const void* from, size_t size, StreamHandle stream);

 private:
  struct Block {
    void* memory = nullptr;
    std::unique_ptr<EventObject> used;  // recorded behind the copy that used it last
  };
  Status Next(Block** block);

  const ContextHandle context_;
  std::vector<Block> blocks_;
  size_t next_ = 0;
};

}  // namespace xpu::cuda

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CUDA_STAGING_H_

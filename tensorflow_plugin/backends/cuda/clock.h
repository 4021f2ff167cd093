// A GPU's clock, as far as the driver tells it: how much later one event was than another.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CUDA_CLOCK_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CUDA_CLOCK_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>

#include "tensorflow_plugin/backends/cuda/event.h"

namespace xpu::cuda {

// Times count from the first event that the clock has recorded. Thread-safe.
class Clock {
 public:
  // Records its events on `stream`. Context and stream outlive it.
  Clock(ContextHandle context, StreamHandle stream) : context_(context), stream_(stream) {}

  // An event that is over, with its time. Later events can be compared with it.
  std::shared_ptr<const ReferenceEvent> Reference();
  // The time now; false: the driver does not tell.
  bool Read(uint64_t* ns);

 private:
  // Records an event and waits for it; null: the driver fails to.
  std::shared_ptr<ReferenceEvent> NewEvent() const;

  const ContextHandle context_;
  const StreamHandle stream_;
  std::mutex mutex_;
  std::shared_ptr<const ReferenceEvent> reference_;
  std::chrono::steady_clock::time_point made_;
};

}  // namespace xpu::cuda

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CUDA_CLOCK_H_

// The clock that durations on this machine are measured by.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_CLOCK_H_
#define TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_CLOCK_H_

#include <chrono>
#include <cstdint>

namespace xpu::host_runtime {

// Nanoseconds since some point in time; it never goes back.
inline int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace xpu::host_runtime

#endif  // TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_CLOCK_H_

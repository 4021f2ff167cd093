// One line on stderr, in the form of TensorFlow's own log lines. Backends know no TensorFlow, so they bring this.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_LOG_H_
#define TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_LOG_H_

#include <cstdio>
#include <string>

#include "tensorflow_plugin/primitives/status.h"

namespace xpu::host_runtime {

template <typename... Args>
void LogError(const Args&... args) {
  const std::string line = errors::Concat("E XPU: ", args..., "\n");
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace xpu::host_runtime

#endif  // TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_LOG_H_

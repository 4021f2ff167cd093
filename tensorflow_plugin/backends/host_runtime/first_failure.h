// The failure that a stream keeps until somebody asks for it.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_FIRST_FAILURE_H_
#define TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_FIRST_FAILURE_H_

#include <mutex>
#include <utility>

#include "tensorflow_plugin/primitives/status.h"

namespace xpu::host_runtime {

// The first failure since somebody took it.
class FirstFailure {
 public:
  void Add(Status status) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (status_.ok()) status_ = std::move(status);
  }
  Status Take() {
    std::lock_guard<std::mutex> lock(mutex_);
    return std::exchange(status_, OkStatus());
  }
  Status Peek() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return status_;
  }

 private:
  mutable std::mutex mutex_;
  Status status_;
};

}  // namespace xpu::host_runtime

#endif  // TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_FIRST_FAILURE_H_

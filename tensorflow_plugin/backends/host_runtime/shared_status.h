// The first failure of the parts of a ParallelFor.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_SHARED_STATUS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_SHARED_STATUS_H_

#include <mutex>
#include <utility>

#include "tensorflow_plugin/primitives/status.h"

namespace xpu::host_runtime {

// The first failure of several threads.
class SharedStatus {
 public:
  // `number`: what the caller knows the part by.
  void Update(Status status, int number = 0) {
    if (__builtin_expect(status.ok(), 1)) return;
    std::lock_guard<std::mutex> lock(mutex_);
    if (!status_.ok()) return;
    status_ = std::move(status);
    number_ = number;
  }
  // Once the threads are done.
  const Status& get() const { return status_; }
  int number() const { return number_; }

 private:
  std::mutex mutex_;
  Status status_;
  int number_ = 0;
};

}  // namespace xpu::host_runtime

#endif  // TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_SHARED_STATUS_H_

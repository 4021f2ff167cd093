// What the parts of a ParallelFor failed with.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_RUNTIME_SHARED_STATUS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_RUNTIME_SHARED_STATUS_H_

#include <mutex>
#include <utility>

#include "tensorflow_plugin/primitives/status.h"

namespace xpu::runtime {

// The first failure of several threads.
class SharedStatus {
 public:
  void Update(Status status) {
    if (__builtin_expect(status.ok(), 1)) return;
    std::lock_guard<std::mutex> lock(mutex_);
    if (status_.ok()) status_ = std::move(status);
  }
  // Once the threads are done.
  const Status& get() const { return status_; }

 private:
  std::mutex mutex_;
  Status status_;
};

}  // namespace xpu::runtime

#endif  // TENSORFLOW_PLUGIN_BACKENDS_RUNTIME_SHARED_STATUS_H_

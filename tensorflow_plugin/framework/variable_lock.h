// Two rules that single kernels and clusters share. Variables are locked in one order. A value that somebody else
// refers to is not written in place.
#ifndef TENSORFLOW_PLUGIN_FRAMEWORK_VARIABLE_LOCK_H_
#define TENSORFLOW_PLUGIN_FRAMEWORK_VARIABLE_LOCK_H_

#include "absl/types/span.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow_plugin/framework/variables.h"

namespace xpu {

// The mutex of a variable. LockInOrder locks it, the destructor unlocks it.
class VariableLock {
 public:
  VariableLock(tensorflow::mutex* mutex, LockMode mode) : mutex_(mutex), mode_(mode) {}
  ~VariableLock();
  VariableLock(VariableLock&& o) noexcept : mutex_(o.mutex_), mode_(o.mode_), is_locked_(o.is_locked_) {
    o.is_locked_ = false;
  }
  VariableLock& operator=(VariableLock&&) = delete;

  tensorflow::mutex* mutex() const { return mutex_; }
  // Before it is locked: of two uses of a variable, one that writes decides.
  void MakeExclusive() { mode_ = LockMode::kExclusive; }
  bool is_locked() const { return is_locked_; }

 private:
  friend void LockInOrder(absl::Span<VariableLock*> locks);
  void Lock();

  tensorflow::mutex* const mutex_;
  LockMode mode_;
  bool is_locked_ = false;
};

// Locks by address, the one order that all kernels agree on, so that two of them cannot deadlock. If several locks have
// one mutex, only the first of them is locked. `locks` is sorted.
void LockInOrder(absl::Span<VariableLock*> locks);

// To be called before a variable's value, which the caller has locked, is written. Holders of values that were computed
// from it give it up (InvariantValue). True if nobody else refers to its buffer then; otherwise the caller writes into
// a copy.
bool ClaimForWriting(const tensorflow::Tensor& value);

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_FRAMEWORK_VARIABLE_LOCK_H_

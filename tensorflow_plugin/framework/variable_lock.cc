#include "tensorflow_plugin/framework/variable_lock.h"

#include <algorithm>
#include <functional>

#include "tensorflow_plugin/framework/invariant_values.h"

namespace xpu {

VariableLock::~VariableLock() {
  if (!is_locked_) return;
  if (mode_ == LockMode::kShared) {
    mutex_->unlock_shared();
  } else {
    mutex_->unlock();
  }
}

void VariableLock::Lock() {
  if (mode_ == LockMode::kShared) {
    mutex_->lock_shared();
  } else {
    mutex_->lock();
  }
  is_locked_ = true;
}

void LockInOrder(std::vector<VariableLock*> locks) {
  std::stable_sort(locks.begin(), locks.end(), [](const VariableLock* a, const VariableLock* b) {
    return std::less<tensorflow::mutex*>()(a->mutex_, b->mutex_);
  });
  for (size_t i = 0; i < locks.size(); ++i) {
    if (i == 0 || locks[i]->mutex_ != locks[i - 1]->mutex_) locks[i]->Lock();
  }
}

bool ClaimForWriting(const tensorflow::Tensor& value) {
  if (value.RefCountIsOne()) return true;
  InvariantValue::StopHolding(value.data());
  // The holder that gave it up may have been the only other one.
  return value.RefCountIsOne();
}

}  // namespace xpu

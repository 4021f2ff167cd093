#include "tensorflow_plugin/framework/variable_lock.h"

#include <algorithm>
#include <functional>
#include <utility>

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

void LockInOrder(absl::Span<VariableLock*> locks) {
  constexpr size_t kFew = 16;
  const auto is_before = [](const VariableLock* a, const VariableLock* b) {
    return std::less<tensorflow::mutex*>()(a->mutex(), b->mutex());
  };
  if (locks.size() <= kFew) {
    // The library's sort allocates memory.
    for (size_t i = 1; i < locks.size(); ++i) {
      for (size_t j = i; j > 0 && is_before(locks[j], locks[j - 1]); --j) std::swap(locks[j], locks[j - 1]);
    }
  } else {
    std::stable_sort(locks.begin(), locks.end(), is_before);
  }
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

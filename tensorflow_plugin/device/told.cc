#include "tensorflow_plugin/device/told.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>

namespace xpu {
namespace {

struct Failure {
  const void* memory;
  Status status;
};
struct Kept {
  // Several threads may be told of one each before the first of them reads again.
  static constexpr size_t kMost = 16;

  std::mutex mutex;
  std::deque<Failure> failures;
  std::atomic<bool> any{false};

  // Needs the lock.
  Status Take(const void* memory) {
    const auto found = std::find_if(failures.begin(), failures.end(), [=](auto& one) { return one.memory == memory; });
    if (found == failures.end()) return OkStatus();
    Status status = found->status;
    failures.erase(found);
    any = !failures.empty();
    return status;
  }
};
Kept& TheKept() {
  static auto* const kept = new Kept;
  return *kept;
}

}  // namespace

void NoteCopy(const void* device_memory, const Status& status) {
  Kept& kept = TheKept();
  if (status.ok() && !kept.any.load(std::memory_order_relaxed)) return;  // as nearly always
  const std::lock_guard<std::mutex> lock(kept.mutex);
  (void)kept.Take(device_memory);
  if (status.ok() || device_memory == nullptr) return;
  if (kept.failures.size() == Kept::kMost) kept.failures.pop_front();
  kept.failures.push_back({device_memory, status});
  kept.any = true;
}

Status TellAgain(const void* device_memory) {
  Kept& kept = TheKept();
  if (!ReadingAgain::Now() || !kept.any.load(std::memory_order_relaxed)) return OkStatus();
  const std::lock_guard<std::mutex> lock(kept.mutex);
  return kept.Take(device_memory);
}

}  // namespace xpu

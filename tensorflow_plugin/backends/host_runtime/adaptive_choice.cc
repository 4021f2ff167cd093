#include "tensorflow_plugin/backends/host_runtime/adaptive_choice.h"

#include <algorithm>
#include <utility>

namespace xpu::host_runtime {

bool AdaptiveChoice::Next(int64_t now_ns) {
  std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return way_.load(std::memory_order_relaxed);
  const int64_t time_ns = now_ns - std::exchange(last_ns_, now_ns);
  if (left_ > 0) {
    --left_;
  } else {
    // The time is that of the run before this one, of which the first two are nobody's and the other way's.
    if (run_ >= 2) times_[run_ - 2] = time_ns;
    if (++run_ == kRuns + 2) EndTrial();
  }
  return way_.load(std::memory_order_relaxed);
}

void AdaptiveChoice::EndTrial() {
  run_ = 1;  // the one that begins
  const auto middle = times_.begin() + kRuns / 2;
  std::nth_element(times_.begin(), middle, times_.end());
  const bool way = way_.load(std::memory_order_relaxed);
  if (!is_second_trial_) {
    first_median_ns_ = *middle;
    is_second_trial_ = true;
    way_.store(!way, std::memory_order_relaxed);
    return;
  }
  // By less than 3% it may be chance.
  if (*middle > first_median_ns_ - first_median_ns_ / 32) way_.store(!way, std::memory_order_relaxed);
  is_second_trial_ = false;
  run_ = 0;
  left_ = settled_;
  settled_ = std::min(2 * settled_, kMostSettled);
}

}  // namespace xpu::host_runtime

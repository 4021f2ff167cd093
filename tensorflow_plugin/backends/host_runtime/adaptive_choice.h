// Which of two ways to do something is quicker, found by trying.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_ADAPTIVE_CHOICE_H_
#define TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_ADAPTIVE_CHOICE_H_

#include <array>
#include <atomic>
#include <cstdint>

#include "tensorflow_plugin/primitives/fork.h"

namespace xpu::host_runtime {

// For what a program does again and again. Its own time says little where it can go on beside the program. The time
// from one beginning to the next counts. Thread-safe: the runs of all threads are one row.
class AdaptiveChoice {
 public:
  // `guess`: the first way to be tried, and the one that stays unless the other is clearly quicker.
  explicit AdaptiveChoice(bool guess) : way_(guess) {}

  // The way of the run that begins now, `now_ns` by a steady clock: the first or the second, false or true.
  bool Next(int64_t now_ns);

  // Runs that are timed of each way; the median counts. One more comes before, whose time is partly the other way's.
  static constexpr int kRuns = 7;
  // Runs until both are tried again, at first; twice as many each time, up to a limit: programs change.
  static constexpr int64_t kSettled = 128, kMostSettled = 1 << 13;

 private:
  // With the times of a way complete: on to the other one, or to a decision.
  void EndTrial();

  std::atomic<bool> way_;
  Mutex mutex_;  // guards what follows
  int64_t last_ns_ = 0;
  int run_ = 0;  // of this way's trial
  bool is_second_trial_ = false;
  std::array<int64_t, kRuns> times_{};
  int64_t first_median_ns_ = 0;
  int64_t settled_ = kSettled, left_ = 0;  // left: runs without trial
};

}  // namespace xpu::host_runtime

#endif  // TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_ADAPTIVE_CHOICE_H_

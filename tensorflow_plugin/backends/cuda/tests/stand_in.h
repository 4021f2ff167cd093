// The switches of the stand-in for NVIDIA's driver: see stand_in_driver.cc.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CUDA_TESTS_STAND_IN_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CUDA_TESTS_STAND_IN_H_

#include <cstdint>

// A run of a kernel: its grid, and what its first parameters held.
struct StandInLaunch {
  static constexpr int kArguments = 4;
  unsigned grid[3], block[3];
  uint64_t arguments[kArguments];
};

extern "C" {
// The call of `symbol` after `skipped` others returns `error`; calls after that work again, unless `for_ever`.
void StandInFail(const char* symbol, int skipped, int error, bool for_ever);
// Forgets failures and launches.
void StandInReset();
// Kernels that have run, in order of their running; returns how many there are.
int StandInLaunches(StandInLaunch* launches, int most);
}

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CUDA_TESTS_STAND_IN_H_

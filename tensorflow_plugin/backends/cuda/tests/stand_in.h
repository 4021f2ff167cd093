// The switches of the stand-ins for NVIDIA's driver and for cuBLASLt: see stand_in_driver.cc, stand_in_cublaslt.cc.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CUDA_TESTS_STAND_IN_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CUDA_TESTS_STAND_IN_H_

#include <cstdint>

// A run of a kernel: its grid, and what its first parameters held.
struct StandInLaunch {
  static constexpr int kArguments = 4;
  unsigned grid[3], block[3];
  uint64_t arguments[kArguments];
};

// Products of cuBLASLt: how many there were, and what the last was asked to do behind its sums. `apart` are those of
// 8-bit integers that did not run behind as many kernels as such products.
struct StandInProducts {
  int count, epilogue;
  float beta;
  int apart;
};

extern "C" {
// The call of `symbol` after `skipped` others returns `error`; calls after that work again, unless `for_ever`.
void StandInFail(const char* symbol, int skipped, int error, bool for_ever);
// Forgets failures, launches and calls.
void StandInReset();
// How often a function was called. Those are counted that can fail, those that free memory, and waits for a stream.
int StandInCalls(const char* symbol);
// Kernels that have run, in order of their running; returns how many there are.
int StandInLaunches(StandInLaunch* launches, int most);
// The launch behind so many others writes a number to where its last argument points, as a kernel reports a failure.
void StandInReport(int skipped, uint32_t number);
// Products since the last call.
StandInProducts StandInTakeProducts();
// From now on Relu of NaN is 0.
void StandInReluDropsNan(bool drops);
}

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CUDA_TESTS_STAND_IN_H_

// The loops of Resample, once per instruction set (isa.h).
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_NN_RESAMPLE_LOOPS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_NN_RESAMPLE_LOOPS_H_

#include <cstdint>

#define XPU_ISA_FILE "tensorflow_plugin/backends/cpu/nn/resample_loops.h"
#define XPU_ISA baseline
#define XPU_VECTOR_BYTES 16
#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_NN_RESAMPLE_LOOPS_H_

#if defined(XPU_ISA)
namespace xpu::cpu::XPU_ISA {

// acc[k] += w * row[k]
template <typename T, typename C>
static void AddWeighted(const T* row, C w, int64_t n, C* acc) {
  for (int64_t k = 0; k < n; ++k) acc[k] += w * static_cast<C>(row[k]);
}

// A pixel of the output from a row of sums: of each channel, the weighted sum over `count` pixels from `from`. The
// number of channels is a constant where it is small (else 0).
template <typename C, typename R, int kChannels>
static void AcrossColumns(const C* row, const int32_t* spans, const float* weights, int64_t taps, int64_t n,
                          int64_t channels, R* out) {
  constexpr int64_t kBlock = kChannels > 0 ? kChannels : 16;
  for (int64_t j = 0; j < n; ++j) {
    const int64_t first = spans[2 * j], count = spans[2 * j + 1];
    const float* const w = weights + j * taps;
    for (int64_t begin = 0; begin < channels; begin += kBlock) {
      const int64_t size = kChannels > 0 ? kChannels : (channels - begin < kBlock ? channels - begin : kBlock);
      C sums[kBlock] = {};
      const C* from = row + first * channels + begin;
      for (int64_t t = 0; t < count; ++t, from += channels) {
        for (int64_t c = 0; c < size; ++c) sums[c] += static_cast<C>(w[t]) * from[c];
      }
      for (int64_t c = 0; c < size; ++c) out[j * channels + begin + c] = R(sums[c]);
    }
  }
}

}  // namespace xpu::cpu::XPU_ISA
#include "tensorflow_plugin/backends/cpu/simd/each_isa.h"
#endif  // XPU_ISA

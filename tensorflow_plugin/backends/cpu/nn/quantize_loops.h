// The loops of QuantizeRows (quantize.cc), once per instruction set. The compiler makes vectors of them.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_NN_QUANTIZE_LOOPS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_NN_QUANTIZE_LOOPS_H_

#include <cstdint>
#include <cstring>

#define XPU_ISA_FILE "tensorflow_plugin/backends/cpu/nn/quantize_loops.h"
#define XPU_ISA baseline
#define XPU_VECTOR_BYTES 16
#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_NN_QUANTIZE_LOOPS_H_

#if defined(XPU_ISA)
namespace xpu::cpu::XPU_ISA {

// The largest magnitude. Bits of magnitudes are in the order of the numbers, and NaNs come last.
static float LargestMagnitude(const float* x, int64_t n) {
  int32_t largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    int32_t bits;
    std::memcpy(&bits, x + i, sizeof(bits));
    bits &= 0x7fffffff;
    largest = largest < bits ? bits : largest;
  }
  float found;
  std::memcpy(&found, &largest, sizeof(found));
  return found;
}

static void QuantizeRow(const float* x, int64_t n, float scale, float most, float least, int8_t* q) {
  for (int64_t i = 0; i < n; ++i) {
    float v = __builtin_rintf(x[i] * scale);
    const float below = v < most ? v : most;
    v = v != v ? v : below;
    const float above = v > least ? v : least;
    v = v != v ? v : above;
    const bool fits = v >= -0x1p31f && v < 0x1p31f;
    q[i] = static_cast<int8_t>(fits ? static_cast<int32_t>(v) : INT32_MIN);
  }
}

}  // namespace xpu::cpu::XPU_ISA
#include "tensorflow_plugin/backends/cpu/simd/each_isa.h"
#endif  // XPU_ISA

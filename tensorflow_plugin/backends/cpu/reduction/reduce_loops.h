// Sums and extrema of rows, for the types that are worth an instruction set of their own (see isa.h).
//
// Four vectors of partial results hide the latency of the additions. A row of a tile is at most 1024 long, so each lane
// sums few terms. The rounding error stays below that of a pairwise sum's last levels.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_REDUCTION_REDUCE_LOOPS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_REDUCTION_REDUCE_LOOPS_H_

#include <cstdint>

#include "tensorflow_plugin/primitives/program.h"
#include "tensorflow_plugin/primitives/types.h"

namespace xpu::cpu {

// Folds each of `rows` dense rows of n >= 1 registers into one.
using FoldFn = void (*)(const void* source, void* result, int64_t rows, int64_t n);

}  // namespace xpu::cpu

#define XPU_ISA_FILE "tensorflow_plugin/backends/cpu/reduction/reduce_loops.h"
#define XPU_ISA baseline
#define XPU_VECTOR_BYTES 16
#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_REDUCTION_REDUCE_LOOPS_H_

#if defined(XPU_ISA)
namespace xpu::cpu::XPU_ISA {

#define XPU_FOLD(name, T, start, step)                                                   \
  static void name(const void* source, void* result, int64_t rows, int64_t n) {          \
    typedef T Vector __attribute__((vector_size(XPU_VECTOR_BYTES), aligned(sizeof(T)))); \
    constexpr int64_t kLanes = XPU_VECTOR_BYTES / sizeof(T);                             \
    const T* a = (const T*)source;                                                       \
    T* dst = (T*)result;                                                                 \
    for (int64_t row = 0; row < rows; ++row, a += n) {                                   \
      int64_t i = 0;                                                                     \
      T r = start;                                                                       \
      if (n >= kLanes) {                                                                 \
        Vector v[4];                                                                     \
        v[0] = *(const Vector*)a;                                                        \
        i = kLanes;                                                                      \
        if (n >= 4 * kLanes) {                                                           \
          for (int k = 1; k < 4; ++k) v[k] = *(const Vector*)(a + k * kLanes);           \
          for (i = 4 * kLanes; i + 4 * kLanes <= n; i += 4 * kLanes) {                   \
            for (int k = 0; k < 4; ++k) {                                                \
              const Vector x = *(const Vector*)(a + i + k * kLanes), y = v[k];           \
              v[k] = step;                                                               \
            }                                                                            \
          }                                                                              \
          for (int k = 1; k < 4; ++k) {                                                  \
            const Vector x = v[k], y = v[0];                                             \
            v[0] = step;                                                                 \
          }                                                                              \
        }                                                                                \
        for (; i + kLanes <= n; i += kLanes) {                                           \
          const Vector x = *(const Vector*)(a + i), y = v[0];                            \
          v[0] = step;                                                                   \
        }                                                                                \
        T lanes[kLanes];                                                                 \
        __builtin_memcpy(lanes, &v[0], sizeof(lanes));                                   \
        for (int64_t half = kLanes / 2; half > 0; half /= 2) {                           \
          for (int64_t k = 0; k < half; ++k) {                                           \
            const T x = lanes[k + half], y = lanes[k];                                   \
            lanes[k] = step;                                                             \
          }                                                                              \
        }                                                                                \
        r = lanes[0];                                                                    \
      }                                                                                  \
      for (; i < n; ++i) {                                                               \
        const T x = a[i], y = r;                                                         \
        r = step;                                                                        \
      }                                                                                  \
      dst[row] = r;                                                                      \
    }                                                                                    \
  }

XPU_FOLD(SumF, float, 0, x + y)
XPU_FOLD(SumD, double, 0, x + y)
XPU_FOLD(MaxF, float, -__builtin_inff(), ((x > y) | (x != x) ? x : y))
XPU_FOLD(MaxD, double, -__builtin_inf(), ((x > y) | (x != x) ? x : y))
XPU_FOLD(MinF, float, __builtin_inff(), ((x < y) | (x != x) ? x : y))
XPU_FOLD(MinD, double, __builtin_inf(), ((x < y) | (x != x) ? x : y))
#undef XPU_FOLD

static FoldFn FindFold(Opcode combine, DType type) {
  if (type == DType::kFloat) {
    if (combine == Opcode::kAdd) return &SumF;
    if (combine == Opcode::kMaximum) return &MaxF;
    if (combine == Opcode::kMinimum) return &MinF;
  }
  if (type == DType::kDouble) {
    if (combine == Opcode::kAdd) return &SumD;
    if (combine == Opcode::kMaximum) return &MaxD;
    if (combine == Opcode::kMinimum) return &MinD;
  }
  return nullptr;
}

}  // namespace xpu::cpu::XPU_ISA
#include "tensorflow_plugin/backends/cpu/simd/each_isa.h"
#endif  // XPU_ISA

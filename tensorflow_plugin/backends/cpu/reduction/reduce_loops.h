// Sums, extrema, "any" and "all" of rows, for the types that are worth an instruction set of their own (see isa.h).
//
// Four vectors of partial results hide the latency of the additions. A row of a tile is at most 1024 long, so each lane
// sums few terms. The rounding error stays below that of a pairwise sum's last levels.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_REDUCTION_REDUCE_LOOPS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_REDUCTION_REDUCE_LOOPS_H_

#include <cstdint>

#include "tensorflow_plugin/backends/cpu/elementwise/instruction_loops.h"
#include "tensorflow_plugin/backends/plain/scalar_ops.h"
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
namespace {

// How two values combine, and the first value of all. x is the newer one: a NaN among either stays.
#define XPU_STEP(name, start, ...) \
  struct name {                    \
    template <typename T>          \
    static constexpr T Start() {   \
      return start;                \
    }                              \
    template <typename V>          \
    XPU_INLINE V Do(V x, V y) {    \
      return __VA_ARGS__;          \
    }                              \
  }
XPU_STEP(FoldSum, T(0), x + y);
XPU_STEP(FoldMax, plain::scalar::StartOfExtremum<T>(true), (x > y) | (x != x) ? x : y);
XPU_STEP(FoldMin, plain::scalar::StartOfExtremum<T>(false), (x < y) | (x != x) ? x : y);
XPU_STEP(FoldOr, T(0), x | y);
XPU_STEP(FoldAnd, T(1), x& y);
#undef XPU_STEP

// kRows rows next to each other, by vectors of so many bytes.
template <typename Step, typename T, int vector_bytes, int kRows>
XPU_INLINE void FoldRows(const T* a, int64_t n, T* results) {
  typedef T Vector __attribute__((vector_size(vector_bytes), aligned(alignof(T)), may_alias));
  constexpr int64_t kLanes = vector_bytes / sizeof(T);
  constexpr int kVectors = 4;
  const auto at = [&](int row, int64_t i) { return *reinterpret_cast<const Vector*>(a + row * n + i); };
  int64_t i = 0;
  T r[kRows];
  for (int row = 0; row < kRows; ++row) r[row] = Step::template Start<T>();
  if (n >= kLanes) {
    Vector v[kRows][kVectors];
    for (int row = 0; row < kRows; ++row) v[row][0] = at(row, 0);
    i = kLanes;
    if (n >= kVectors * kLanes) {
      for (int row = 0; row < kRows; ++row) {
        for (int k = 1; k < kVectors; ++k) v[row][k] = at(row, k * kLanes);
      }
      for (i = kVectors * kLanes; i + kVectors * kLanes <= n; i += kVectors * kLanes) {
        for (int row = 0; row < kRows; ++row) {
          for (int k = 0; k < kVectors; ++k) v[row][k] = Step::Do(at(row, i + k * kLanes), v[row][k]);
        }
      }
      for (int row = 0; row < kRows; ++row) {
        for (int k = 1; k < kVectors; ++k) v[row][0] = Step::Do(v[row][k], v[row][0]);
      }
    }
    for (; i + kLanes <= n; i += kLanes) {
      for (int row = 0; row < kRows; ++row) v[row][0] = Step::Do(at(row, i), v[row][0]);
    }
    for (int row = 0; row < kRows; ++row) {
      T lanes[kLanes];
      __builtin_memcpy(lanes, &v[row][0], sizeof(lanes));
      for (int64_t half = kLanes / 2; half > 0; half /= 2) {
        for (int64_t k = 0; k < half; ++k) lanes[k] = Step::Do(lanes[k + half], lanes[k]);
      }
      r[row] = lanes[0];
    }
  }
  for (; i < n; ++i) {
    for (int row = 0; row < kRows; ++row) r[row] = Step::Do(a[row * n + i], r[row]);
  }
  for (int row = 0; row < kRows; ++row) results[row] = r[row];
}

template <typename Step, typename T>
void Fold(const void* source, void* result, int64_t rows, int64_t n) {
  // A processor fetches several rows from memory at a time. One alone ends at each page.
  constexpr int kRows = XPU_VECTOR_BYTES == 64 ? 4 : 2;
  const T* a = static_cast<const T*>(source);
  T* results = static_cast<T*>(result);
  const int64_t bytes = n * sizeof(T);
  int64_t row = 0;
  if (bytes >= 4 * XPU_VECTOR_BYTES) {
    for (; row + kRows <= rows; row += kRows) FoldRows<Step, T, XPU_VECTOR_BYTES, kRows>(a + row * n, n, results + row);
  }
  if (bytes >= XPU_VECTOR_BYTES) {
    for (; row < rows; ++row) FoldRows<Step, T, XPU_VECTOR_BYTES, 1>(a + row * n, n, results + row);
  }
  for (; row < rows; ++row) FoldRows<Step, T, 16, 1>(a + row * n, n, results + row);
}

template <typename T, typename Sum = T>
FoldFn FindFoldOf(Opcode combine) {
  switch (combine) {
    case Opcode::kAdd:
      return &Fold<FoldSum, Sum>;
    case Opcode::kMaximum:
      return &Fold<FoldMax, T>;
    case Opcode::kMinimum:
      return &Fold<FoldMin, T>;
    default:
      return nullptr;
  }
}

// Sums of signed integers wrap.
FoldFn FindFold(Opcode combine, DType type) {
  switch (type) {
    case DType::kFloat:
      return FindFoldOf<float>(combine);
    case DType::kDouble:
      return FindFoldOf<double>(combine);
    case DType::kInt8:
      return FindFoldOf<int8_t, uint8_t>(combine);
    case DType::kInt16:
      return FindFoldOf<int16_t, uint16_t>(combine);
    case DType::kInt32:
      return FindFoldOf<int32_t, uint32_t>(combine);
    case DType::kInt64:
      return FindFoldOf<int64_t, uint64_t>(combine);
    case DType::kUint8:
      return FindFoldOf<uint8_t>(combine);
    case DType::kUint16:
      return FindFoldOf<uint16_t>(combine);
    case DType::kUint32:
      return FindFoldOf<uint32_t>(combine);
    case DType::kUint64:
      return FindFoldOf<uint64_t>(combine);
    case DType::kBool:
      if (combine == Opcode::kLogicalOr) return &Fold<FoldOr, uint8_t>;
      return combine == Opcode::kLogicalAnd ? &Fold<FoldAnd, uint8_t> : nullptr;
    default:
      return nullptr;
  }
}

}  // namespace
}  // namespace xpu::cpu::XPU_ISA
#include "tensorflow_plugin/backends/cpu/simd/each_isa.h"
#endif  // XPU_ISA

// Columns of a [rows, cols] block, kWide vectors at a time and a part of a vector at the end. `rows` is small enough
// for float sums and for a second pass to find the block in the cache.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_NN_NORMALIZE_LOOPS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_NN_NORMALIZE_LOOPS_H_

#include <cstdint>

#include "tensorflow_plugin/backends/cpu/simd/vector_math.h"

#define XPU_ISA_FILE "tensorflow_plugin/backends/cpu/nn/normalize_loops.h"
#define XPU_ISA baseline
#define XPU_VECTOR_BYTES 16
#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_NN_NORMALIZE_LOOPS_H_

#if defined(XPU_ISA)
namespace xpu::cpu::XPU_ISA {

constexpr int kWide = 4;

// The mean of every column, and the sum of its squared distances from it.
template <typename T>
static void ColumnMoments(const T* x, int64_t rows, int64_t cols, float* mean, float* squares) {
  int64_t c = 0;
  for (; c + kWide * kLanes <= cols; c += kWide * kLanes) {
    VF sum[kWide] = {}, square[kWide] = {};
    for (int64_t r = 0; r < rows; ++r) {
      for (int w = 0; w < kWide; ++w) sum[w] += Load(x + r * cols + c + w * kLanes);
    }
    for (int w = 0; w < kWide; ++w) sum[w] = sum[w] / static_cast<float>(rows);
    for (int64_t r = 0; r < rows; ++r) {
      for (int w = 0; w < kWide; ++w) {
        const VF centered = Load(x + r * cols + c + w * kLanes) - sum[w];
        square[w] += centered * centered;
      }
    }
    for (int w = 0; w < kWide; ++w) {
      Store(mean + c + w * kLanes, sum[w]);
      Store(squares + c + w * kLanes, square[w]);
    }
  }
  for (; c < cols; c += kLanes) {
    VF sum = {}, square = {};
    for (int64_t r = 0; r < rows; ++r) sum += LoadUpTo(x + r * cols + c, cols - c);
    sum = sum / static_cast<float>(rows);
    for (int64_t r = 0; r < rows; ++r) {
      const VF centered = LoadUpTo(x + r * cols + c, cols - c) - sum;
      square += centered * centered;
    }
    StoreUpTo(mean + c, cols - c, sum);
    StoreUpTo(squares + c, cols - c, square);
  }
}

// The sums of every column of dy, and of dy * (x - mean).
template <typename T>
static void ColumnGradientSums(const T* dy, const T* x, const float* mean, int64_t rows, int64_t cols, float* sums,
                               float* dots) {
  int64_t c = 0;
  for (; c + kWide * kLanes <= cols; c += kWide * kLanes) {
    VF sum[kWide] = {}, dot[kWide] = {}, center[kWide];
    for (int w = 0; w < kWide; ++w) center[w] = Load(mean + c + w * kLanes);
    for (int64_t r = 0; r < rows; ++r) {
      for (int w = 0; w < kWide; ++w) {
        const VF g = Load(dy + r * cols + c + w * kLanes);
        sum[w] += g;
        dot[w] += g * (Load(x + r * cols + c + w * kLanes) - center[w]);
      }
    }
    for (int w = 0; w < kWide; ++w) {
      Store(sums + c + w * kLanes, sum[w]);
      Store(dots + c + w * kLanes, dot[w]);
    }
  }
  for (; c < cols; c += kLanes) {
    VF sum = {}, dot = {};
    const VF center = LoadUpTo(mean + c, cols - c);
    for (int64_t r = 0; r < rows; ++r) {
      const VF g = LoadUpTo(dy + r * cols + c, cols - c);
      sum += g;
      dot += g * (LoadUpTo(x + r * cols + c, cols - c) - center);
    }
    StoreUpTo(sums + c, cols - c, sum);
    StoreUpTo(dots + c, cols - c, dot);
  }
}

// y = (x - mean) * scale + offset by column.
template <typename T>
static void ColumnApply(const T* x, T* y, int64_t rows, int64_t cols, const float* mean, const float* scale,
                        const float* offset) {
  for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
    for (int64_t c = 0; c < cols; c += kLanes) {
      const int64_t n = cols - c;
      StoreUpTo(y + c, n,
                (LoadUpTo(x + c, n) - LoadUpTo(mean + c, n)) * LoadUpTo(scale + c, n) + LoadUpTo(offset + c, n));
    }
  }
}

// dx = (dy - shift - (x - mean) * slope) * scale by column.
template <typename T>
static void ColumnApplyGradient(const T* dy, const T* x, T* dx, int64_t rows, int64_t cols, const float* mean,
                                const float* scale, const float* shift, const float* slope) {
  for (int64_t r = 0; r < rows; ++r, dy += cols, x += cols, dx += cols) {
    for (int64_t c = 0; c < cols; c += kLanes) {
      const int64_t n = cols - c;
      const VF centered = LoadUpTo(x + c, n) - LoadUpTo(mean + c, n);
      StoreUpTo(
          dx + c, n,
          (LoadUpTo(dy + c, n) - LoadUpTo(shift + c, n) - centered * LoadUpTo(slope + c, n)) * LoadUpTo(scale + c, n));
    }
  }
}

}  // namespace xpu::cpu::XPU_ISA
#include "tensorflow_plugin/backends/cpu/simd/each_isa.h"
#endif  // XPU_ISA

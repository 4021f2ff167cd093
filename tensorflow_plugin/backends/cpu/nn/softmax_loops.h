// The loops of softmax.cc, once per instruction set.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_NN_SOFTMAX_LOOPS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_NN_SOFTMAX_LOOPS_H_

#include <cmath>
#include <cstdint>

#include "tensorflow_plugin/backends/cpu/simd/vector_math.h"

#define XPU_ISA_FILE "tensorflow_plugin/backends/cpu/nn/softmax_loops.h"
#define XPU_ISA baseline
#define XPU_VECTOR_BYTES 16
#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_NN_SOFTMAX_LOOPS_H_

#if defined(XPU_ISA)
namespace xpu::cpu::XPU_ISA {

// The first n lanes of a vector of logits; the others do not change a maximum, nor a sum of exponentials.
template <typename T>
static inline VF LoadLogits(const T* x, int64_t n) {
  return n >= kLanes ? Load(x) : LoadFirst(x, static_cast<int>(n), -__builtin_inff());
}
template <typename T>
static float RowMaximum(const T* x, int64_t n) {
  VF max = Splat<VF>(-__builtin_inff());
  for (int64_t i = 0; i < n; i += kLanes) max = Max(max, LoadLogits(x + i, n - i));
  return Maximum(max);
}

// exps = exp(x - max), and their sum. `exps` may be null.
template <typename T>
static float RowExps(const T* x, int64_t n, float max, float* exps) {
  VF sum = {};
  for (int64_t i = 0; i < n; i += kLanes) {
    const VF e = Exp(LoadLogits(x + i, n - i) - max);
    if (exps != nullptr) StoreUpTo(exps + i, n - i, e);
    sum += e;
  }
  return Sum(sum);
}

// `exps` is a row of scratch.
template <typename T>
static void SoftmaxRows(const T* x, T* y, int64_t rows, int64_t cols, float* exps) {
  for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
    const float scale = 1.0f / RowExps(x, cols, RowMaximum(x, cols), exps);
    for (int64_t i = 0; i < cols; i += kLanes) StoreUpTo(y + i, cols - i, LoadLogits(exps + i, cols - i) * scale);
  }
}

template <typename T>
static void LogSoftmaxRows(const T* x, T* y, int64_t rows, int64_t cols, float*) {
  for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
    const float max = RowMaximum(x, cols);
    const float log_sum = std::log(RowExps(x, cols, max, nullptr));
    for (int64_t i = 0; i < cols; i += kLanes) StoreUpTo(y + i, cols - i, LoadLogits(x + i, cols - i) - max - log_sum);
  }
}

// One row of logits and labels.
template <typename T>
static void CrossEntropyRow(const T* x, const T* labels, T* loss, T* backprop, int64_t cols, float* exps) {
  const float max = RowMaximum(x, cols);
  const float sum = RowExps(x, cols, max, exps);
  const float log_sum = std::log(sum), scale = 1.0f / sum;
  VF total = {};
  for (int64_t i = 0; i < cols; i += kLanes) {
    const int64_t n = cols - i;
    VF label, shifted;
    if (n >= kLanes) {
      label = Load(labels + i);
      shifted = Load(x + i) - max;
    } else {
      label = LoadFirst(labels + i, static_cast<int>(n), 0);
      shifted = LoadFirst(x + i, static_cast<int>(n), max) - max;
    }
    total += label * (log_sum - shifted);
    StoreUpTo(backprop + i, n, LoadLogits(exps + i, n) * scale - label);
  }
  *loss = static_cast<T>(Sum(total));
}

template <typename T>
static void SparseCrossEntropyRow(const T* x, int64_t label, T* loss, T* backprop, int64_t cols, float* exps) {
  if (label < 0 || label >= cols) {
    *loss = static_cast<T>(__builtin_nanf(""));
    for (int64_t i = 0; i < cols; ++i) backprop[i] = *loss;
    return;
  }
  const float max = RowMaximum(x, cols);
  const float sum = RowExps(x, cols, max, exps), scale = 1.0f / sum;
  for (int64_t i = 0; i < cols; i += kLanes) StoreUpTo(backprop + i, cols - i, LoadLogits(exps + i, cols - i) * scale);
  backprop[label] = static_cast<T>(exps[label] * scale - 1.0f);
  *loss = static_cast<T>(std::log(sum) - (static_cast<float>(x[label]) - max));
}

}  // namespace xpu::cpu::XPU_ISA
#include "tensorflow_plugin/backends/cpu/simd/each_isa.h"
#endif  // XPU_ISA

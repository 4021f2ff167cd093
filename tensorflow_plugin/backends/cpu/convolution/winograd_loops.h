// The tiles of winograd.cc, once per instruction set. A tile is six by six numbers of a channel, and so is what they
// are transformed to: its 36 points. Vectors hold neighbouring channels, whose number is a multiple of kLanes.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_WINOGRAD_LOOPS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_WINOGRAD_LOOPS_H_

#include <cstdint>

#include "tensorflow_plugin/backends/cpu/simd/vector_math.h"

namespace xpu::cpu {

// Rows of a matrix that are multiplied at once, by the width of a register.
constexpr int TallRows(int vector_bytes) { return vector_bytes == 64 ? 12 : vector_bytes == 32 ? 6 : 4; }

}  // namespace xpu::cpu

#define XPU_ISA_FILE "tensorflow_plugin/backends/cpu/convolution/winograd_loops.h"
#define XPU_ISA baseline
#define XPU_VECTOR_BYTES 16
#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_WINOGRAD_LOOPS_H_

#if defined(XPU_ISA)
namespace xpu::cpu::XPU_ISA {

// How many rows and columns of a product are in registers at a time. Fewer rows are left at the end: any multiple of
// kShort.
inline constexpr int kTall = TallRows(XPU_VECTOR_BYTES);
inline constexpr int kMiddle = XPU_VECTOR_BYTES == 16 ? 2 : kTall * 2 / 3, kShort = kMiddle / 2;
inline constexpr int64_t kPanel = 2 * kLanes;

static int64_t ShortRows() { return kShort; }
static int64_t PanelColumns() { return kPanel; }

// Polynomials are known by their values at 0, s, -s, 2s, -2s and infinity, where s is the square root of a half. It is
// the set that loses least, among those tried that share work between s and -s. See winograd.h.
inline constexpr float kS = 0.70710678118654752f;

// B^T of six numbers.
static inline void InputAxis(const VF* d, int from, VF* to, int by) {
  const VF even = d[4 * from] - 2.0f * d[2 * from], odd = kS * (d[3 * from] - 2.0f * d[from]);
  const VF wide_even = d[4 * from] - 0.5f * d[2 * from], wide_odd = 2 * kS * (d[3 * from] - 0.5f * d[from]);
  to[0] = d[0] + (d[4 * from] - 2.5f * d[2 * from]);
  to[by] = even + odd;
  to[2 * by] = even - odd;
  to[3 * by] = wide_even + wide_odd;
  to[4 * by] = wide_even - wide_odd;
  to[5 * by] = d[5 * from] + (d[from] - 2.5f * d[3 * from]);
}

// G of a filter's three numbers, and its transpose.
static inline void FilterAxis(const VF* g, int from, VF* to, int by) {
  const VF even = (g[0] + 0.5f * g[2 * from]) * (-1 / 1.5f), odd = (-kS / 1.5f) * g[from];
  const VF wide_even = (g[0] + 2.0f * g[2 * from]) * (1 / 6.0f), wide_odd = (2 * kS / 6) * g[from];
  to[0] = g[0];
  to[by] = even + odd;
  to[2 * by] = even - odd;
  to[3 * by] = wide_even + wide_odd;
  to[4 * by] = wide_even - wide_odd;
  to[5 * by] = g[2 * from];
}
static inline void FilterGradientAxis(const VF* m, int from, VF* to, int by) {
  const VF even = (m[from] + m[2 * from]) * (-1 / 1.5f), odd = (m[from] - m[2 * from]) * (-kS / 1.5f);
  const VF wide_even = (m[3 * from] + m[4 * from]) * (1 / 6.0f), wide_odd = (m[3 * from] - m[4 * from]) * (2 * kS / 6);
  to[0] = m[0] + (even + wide_even);
  to[by] = odd + wide_odd;
  to[2 * by] = m[5 * from] + (0.5f * even + 2.0f * wide_even);
}

// A^T of the six points' numbers, the four outputs, and its transpose.
static inline void OutputAxis(const VF* m, int from, VF* to, int by) {
  const VF even = m[from] + m[2 * from], odd = kS * (m[from] - m[2 * from]);
  const VF wide_even = m[3 * from] + m[4 * from], wide_odd = 2 * kS * (m[3 * from] - m[4 * from]);
  to[0] = m[0] + (even + wide_even);
  to[by] = odd + wide_odd;
  to[2 * by] = 0.5f * even + 2.0f * wide_even;
  to[3 * by] = m[5 * from] + (0.5f * odd + 2.0f * wide_odd);
}
static inline void OutputGradientAxis(const VF* y, int from, VF* to, int by) {
  const VF even = y[0] + 0.5f * y[2 * from], odd = kS * (y[from] + 0.5f * y[3 * from]);
  const VF wide_even = y[0] + 2.0f * y[2 * from], wide_odd = 2 * kS * (y[from] + 2.0f * y[3 * from]);
  to[0] = y[0];
  to[by] = even + odd;
  to[2 * by] = even - odd;
  to[3 * by] = wide_even + wide_odd;
  to[4 * by] = wide_even - wide_odd;
  to[5 * by] = y[3 * from];
}

// Along both axes of a square: its columns, then what has become of its rows.
template <int kFrom, int kTo, void (*kAxis)(const VF*, int, VF*, int)>
static inline void BothAxes(const VF* in, VF* out) {
  VF half[kTo * kFrom];
#pragma GCC unroll 6
  for (int j = 0; j < kFrom; ++j) kAxis(in + j, kFrom, half + j, kFrom);
#pragma GCC unroll 6
  for (int i = 0; i < kTo; ++i) kAxis(half + i * kFrom, 1, out + i * kTo, 1);
}

// Where an element of a matrix is that lies in panels of kPanel columns, the last one as narrow as what is left.
static inline int64_t InPanels(int64_t row, int64_t rows, int64_t column, int64_t columns) {
  const int64_t first = column / kPanel * kPanel;
  return first * rows + row * (columns - first < kPanel ? columns - first : kPanel) + (column - first);
}

// Transforms a square of pixels, each the address of a pixel's channels, to row `row` of a matrix [rows, channels] for
// each point. The matrices are `point` elements apart; in panels or not.
template <int kFrom, void (*kAxis)(const VF*, int, VF*, int), bool kInPanels>
static void ToPoints(const float* const* pixels, int64_t channels, float* to, int64_t point, int64_t row,
                     int64_t rows) {
  for (int64_t c = 0; c < channels; c += kLanes) {
    VF in[kFrom * kFrom], out[36];
#pragma GCC unroll 36
    for (int i = 0; i < kFrom * kFrom; ++i) in[i] = Load(pixels[i] + c);
    BothAxes<kFrom, 6, kAxis>(in, out);
    float* const at = to + (kInPanels ? InPanels(row, rows, c, channels) : row * channels + c);
#pragma GCC unroll 36
    for (int i = 0; i < 36; ++i) Store(at + i * point, out[i]);
  }
}

// Back from the points, `point` elements apart, to the channels of pixels. False if there is an infinity or a NaN.
template <int kTo, void (*kAxis)(const VF*, int, VF*, int)>
static bool FromPoints(const float* from, int64_t point, int64_t channels, float* const* pixels) {
  VF finite = {};
  for (int64_t c = 0; c < channels; c += kLanes) {
    VF in[36], out[kTo * kTo];
#pragma GCC unroll 36
    for (int i = 0; i < 36; ++i) in[i] = Load(from + i * point + c);
    BothAxes<6, kTo, kAxis>(in, out);
#pragma GCC unroll 16
    for (int i = 0; i < kTo * kTo; ++i) {
      finite += out[i] - out[i];
      Store(pixels[i] + c, out[i]);
    }
  }
  return Sum(finite) == 0;
}

static void InputToPoints(const float* const* pixels, int64_t channels, float* to, int64_t point, int64_t row) {
  ToPoints<6, InputAxis, false>(pixels, channels, to, point, row, 0);
}
static void FilterToPoints(const float* const* pixels, int64_t channels, float* to, int64_t point, int64_t row,
                           int64_t rows) {
  ToPoints<3, FilterAxis, true>(pixels, channels, to, point, row, rows);
}
static void OutputGradientToPoints(const float* const* pixels, int64_t channels, float* to, int64_t point, int64_t row,
                                   int64_t rows) {
  ToPoints<4, OutputGradientAxis, true>(pixels, channels, to, point, row, rows);
}
static bool OutputFromPoints(const float* from, int64_t point, int64_t channels, float* const* pixels) {
  return FromPoints<4, OutputAxis>(from, point, channels, pixels);
}
static bool FilterGradientFromPoints(const float* from, int64_t point, int64_t channels, float* const* pixels) {
  return FromPoints<3, FilterGradientAxis>(from, point, channels, pixels);
}

// kRows rows of c, a panel of columns wide: c (+)= a * b, for a(i, l) = a[i * a_stride + l] or, kAcross,
// a[l * a_stride + i]. Rows of b lie next to each other. Meanwhile it brings a panel `next` to the cache, kAhead.
template <int kRows, int kVectors, bool kAcross, bool kAhead = false>
static void MultiplyRows(int64_t depth, const float* a, int64_t a_stride, const float* b, float* c, int64_t c_stride,
                         bool accumulate, const float* next = nullptr) {
  VF sum[kRows][kVectors] = {};
  for (int64_t l = 0; l < depth; ++l) {
    VF right[kVectors];
#pragma GCC unroll 2
    for (int j = 0; j < kVectors; ++j) {
      right[j] = Load(b + l * kVectors * kLanes + j * kLanes);
      if constexpr (kAhead) __builtin_prefetch(next + l * kVectors * kLanes + j * kLanes);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const float left = kAcross ? a[l * a_stride + i] : a[i * a_stride + l];
#pragma GCC unroll 2
      for (int j = 0; j < kVectors; ++j) sum[i][j] += left * right[j];
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < kVectors; ++j) {
      float* const to = c + i * c_stride + j * kLanes;
      Store(to, accumulate ? Load(to) + sum[i][j] : sum[i][j]);
    }
  }
}

template <int kVectors, bool kAcross>
static void MultiplyColumns(int64_t rows, int64_t depth, const float* a, int64_t a_stride, const float* b, float* c,
                            int64_t c_stride, bool accumulate) {
  const int64_t a_row = kAcross ? 1 : a_stride;
  for (; rows >= kTall; rows -= kTall, a += kTall * a_row, c += kTall * c_stride) {
    MultiplyRows<kTall, kVectors, kAcross>(depth, a, a_stride, b, c, c_stride, accumulate);
  }
  if (rows >= kMiddle) {
    MultiplyRows<kMiddle, kVectors, kAcross>(depth, a, a_stride, b, c, c_stride, accumulate);
    rows -= kMiddle, a += kMiddle * a_row, c += kMiddle * c_stride;
  }
  if (rows > 0) MultiplyRows<kShort, kVectors, kAcross>(depth, a, a_stride, b, c, c_stride, accumulate);
}

// c[rows, columns] = a * b for one panel of b. rows: a multiple of kShort. columns: kLanes or kPanel. `next`: the panel
// that comes after it, of as many columns.
template <int kVectors>
static void MultiplyPanelBy(int64_t rows, int64_t depth, const float* a, int64_t a_stride, const float* b,
                            const float* next, float* c, int64_t c_stride) {
  if (rows >= kTall) {
    MultiplyRows<kTall, kVectors, false, true>(depth, a, a_stride, b, c, c_stride, false, next);
    rows -= kTall, a += kTall * a_stride, c += kTall * c_stride;
  }
  MultiplyColumns<kVectors, false>(rows, depth, a, a_stride, b, c, c_stride, false);
}
static void MultiplyPanel(int64_t rows, int64_t depth, const float* a, int64_t a_stride, const float* b,
                          const float* next, int64_t columns, float* c, int64_t c_stride) {
  const auto multiply = columns == kPanel ? &MultiplyPanelBy<2> : &MultiplyPanelBy<1>;
  multiply(rows, depth, a, a_stride, b, next, c, c_stride);
}

// c[rows, columns] (+)= the transpose of a[depth, rows], times b[depth, columns] in panels.
static void MultiplyTransposed(int64_t rows, int64_t depth, const float* a, const float* b, int64_t columns, float* c,
                               bool accumulate) {
  for (int64_t j = 0; j < columns; j += kPanel) {
    const auto multiply = columns - j >= kPanel ? &MultiplyColumns<2, true> : &MultiplyColumns<1, true>;
    multiply(rows, depth, a, rows, b + j * depth, c + j, columns, accumulate);
  }
}

}  // namespace xpu::cpu::XPU_ISA
#include "tensorflow_plugin/backends/cpu/simd/each_isa.h"
#endif  // XPU_ISA

// The loops of matmul.cc, once per instruction set.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_MATMUL_MATMUL_LOOPS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_MATMUL_MATMUL_LOOPS_H_

#include <cstdint>

#include "tensorflow_plugin/backends/cpu/matmul/gemm.h"
#include "tensorflow_plugin/backends/cpu/simd/vector_math.h"

namespace xpu::cpu {

// A matrix of complex elements, which are pairs of numbers. The imaginary parts are multiplied by a sign.
template <typename Real>
struct ComplexFactor {
  StridedMatrix<const Real> pairs;
  Real sign;
};

}  // namespace xpu::cpu

#define XPU_ISA_FILE "tensorflow_plugin/backends/cpu/matmul/matmul_loops.h"
#define XPU_ISA baseline
#define XPU_VECTOR_BYTES 16
#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_MATMUL_MATMUL_LOOPS_H_

#if defined(XPU_ISA)
namespace xpu::cpu::XPU_ISA {

// c = op(a) * op(b) for matrices too small to be worth a call of oneDNN.
static inline void SmallMatMul(int64_t m, int64_t n, int64_t k, const float* a, bool transpose_a, int64_t lda,
                               const float* b, bool transpose_b, int64_t ldb, float* c, int64_t ldc) {
  const int64_t a_row = transpose_a ? 1 : lda, a_col = transpose_a ? lda : 1;
  if (transpose_b) {
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        float sum = 0;
        for (int64_t l = 0; l < k; ++l) sum += a[i * a_row + l * a_col] * b[j * ldb + l];
        c[i * ldc + j] = sum;
      }
    }
    return;
  }
  for (int64_t i = 0; i < m; ++i) {
    int64_t j = 0;
    for (; j + kLanes <= n; j += kLanes) {
      VF sum = {};
      for (int64_t l = 0; l < k; ++l) sum += a[i * a_row + l * a_col] * Load(b + l * ldb + j);
      Store(c + i * ldc + j, sum);
    }
    if (j < n) {
      const int rest = static_cast<int>(n - j);
      VF sum = {};
      for (int64_t l = 0; l < k; ++l) sum += a[i * a_row + l * a_col] * LoadFirst(b + l * ldb + j, rest, 0);
      StoreFirst(c + i * ldc + j, rest, sum);
    }
  }
}

// Complex numbers, without the care for infinite ones that the compiler's take.
template <typename Real>
struct Pair {
  Real real, imaginary;
};
template <typename Real>
static inline Pair<Real> operator*(const Pair<Real>& x, const Pair<Real>& y) {
  return {x.real * y.real - x.imaginary * y.imaginary, x.real * y.imaginary + x.imaginary * y.real};
}
template <typename Real>
static inline Pair<Real>& operator+=(Pair<Real>& sum, const Pair<Real>& x) {
  sum.real += x.real;
  sum.imaginary += x.imaginary;
  return sum;
}

// Elements of a factor.
template <typename T>
static inline T At(const StridedMatrix<const T>& m, int64_t i, int64_t j) {
  return m.data[i * m.row_stride + j * m.col_stride];
}
template <typename Real>
static inline Pair<Real> At(const ComplexFactor<Real>& m, int64_t i, int64_t j) {
  const Real* const pair = m.pairs.data + 2 * (i * m.pairs.row_stride + j * m.pairs.col_stride);
  return {pair[0], m.sign * pair[1]};
}

// Rows [first, first + kRows) of c = a * b, for elements of any type. They are summed side by side: a sum waits for its
// last addition.
template <int kRows, typename T, typename Factor>
static inline void SmallRows(int64_t first, int64_t n, int64_t k, const Factor& a, const Factor& b, T* c, int64_t ldc) {
  for (int64_t j = 0; j < n; ++j) {
    T sum[kRows] = {};
    for (int64_t l = 0; l < k; ++l) {
      const T y = At(b, l, j);
#pragma GCC unroll 4
      for (int i = 0; i < kRows; ++i) sum[i] += At(a, first + i, l) * y;
    }
    for (int i = 0; i < kRows; ++i) c[(first + i) * ldc + j] = sum[i];
  }
}

// All rows of products that are too small for blocks.
template <typename T, typename Factor>
static inline void SmallRowsOf(int64_t m, int64_t n, int64_t k, const Factor& a, const Factor& b, T* c, int64_t ldc) {
  int64_t i = 0;
  for (; i + 4 <= m; i += 4) SmallRows<4>(i, n, k, a, b, c, ldc);
  for (; i < m; ++i) SmallRows<1>(i, n, k, a, b, c, ldc);
}
template <typename T>
static void SmallProduct(int64_t m, int64_t n, int64_t k, const StridedMatrix<const T>& a,
                         const StridedMatrix<const T>& b, T* c, int64_t ldc) {
  SmallRowsOf(m, n, k, a, b, c, ldc);
}
// c is of pairs, too.
template <typename Real>
static void SmallComplexProduct(int64_t m, int64_t n, int64_t k, const ComplexFactor<Real>& a,
                                const ComplexFactor<Real>& b, Real* c, int64_t ldc) {
  SmallRowsOf(m, n, k, a, b, reinterpret_cast<Pair<Real>*>(c), ldc);
}

// A row of c fits into one vector or two, which stay in registers.
static inline int64_t NarrowWidth(int64_t n) { return n <= kLanes ? kLanes : 2 * kLanes; }

// Copies b (k by n, n <= NarrowColumns()) to rows of one or two whole vectors, with zeros beyond the end.
static inline void PackNarrow(int64_t n, int64_t k, const float* b, int64_t b_row, int64_t b_col, float* packed) {
  const int64_t width = NarrowWidth(n);
  for (int64_t l = 0; l < k; ++l, packed += width) {
    const float* row = b + l * b_row;
    if (b_col == 1) {
      for (int64_t j = 0; j < width; j += kLanes) {
        const int64_t rest = n - j;
        Store(packed + j, rest >= kLanes ? Load(row + j) : LoadFirst(row + j, static_cast<int>(rest), 0));
      }
      continue;
    }
    for (int64_t j = 0; j < n; ++j) packed[j] = row[j * b_col];
    for (int64_t j = n; j < width; ++j) packed[j] = 0;
  }
}

// c[rows, n] = a * b for kRows rows, with b packed.
template <int kRows, int kVectors>
static inline void MultiplyNarrow(int64_t n, int64_t k, const float* a, int64_t a_row, int64_t a_col,
                                  const float* packed, float* c, int64_t ldc) {
  VF sum[kRows][kVectors] = {};
  for (int64_t l = 0; l < k; ++l, packed += kVectors * kLanes) {
    VF b[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) b[v] = Load(packed + v * kLanes);
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
      const float x = a[i * a_row + l * a_col];
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sum[i][v] += x * b[v];
    }
  }
  for (int i = 0; i < kRows; ++i) {
    for (int v = 0; v < kVectors; ++v) {
      const int64_t rest = n - v * kLanes;
      float* to = c + i * ldc + v * kLanes;
      if (rest >= kLanes) {
        Store(to, sum[i][v]);
      } else if (rest > 0) {
        StoreFirst(to, static_cast<int>(rest), sum[i][v]);
      }
    }
  }
}

template <int kVectors>
static inline void NarrowRows(int64_t rows, int64_t n, int64_t k, const float* a, int64_t a_row, int64_t a_col,
                              const float* packed, float* c, int64_t ldc) {
  constexpr int kRows = kVectors == 1 ? 8 : 4;
  int64_t i = 0;
  for (; i + kRows <= rows; i += kRows) {
    MultiplyNarrow<kRows, kVectors>(n, k, a + i * a_row, a_row, a_col, packed, c + i * ldc, ldc);
  }
  for (; i < rows; ++i) MultiplyNarrow<1, kVectors>(n, k, a + i * a_row, a_row, a_col, packed, c + i * ldc, ldc);
}

// c = a * b for any number of rows, with b packed.
static inline void NarrowMatMul(int64_t rows, int64_t n, int64_t k, const float* a, int64_t a_row, int64_t a_col,
                                const float* packed, float* c, int64_t ldc) {
  if (n <= kLanes) {
    NarrowRows<1>(rows, n, k, a, a_row, a_col, packed, c, ldc);
  } else {
    NarrowRows<2>(rows, n, k, a, a_row, a_col, packed, c, ldc);
  }
}

}  // namespace xpu::cpu::XPU_ISA
#include "tensorflow_plugin/backends/cpu/simd/each_isa.h"
#endif  // XPU_ISA

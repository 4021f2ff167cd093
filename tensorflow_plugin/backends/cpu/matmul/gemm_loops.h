// The blocks of Gemm (gemm.h), once per instruction set: pack a block of A and of B, multiply register tiles.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_MATMUL_GEMM_LOOPS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_MATMUL_GEMM_LOOPS_H_

#include <cstdint>
#include <cstring>

#include "tensorflow_plugin/backends/cpu/matmul/gemm.h"

#define XPU_ISA_FILE "tensorflow_plugin/backends/cpu/matmul/gemm_loops.h"
#define XPU_ISA baseline
#define XPU_VECTOR_BYTES 16
#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_MATMUL_GEMM_LOOPS_H_

#if defined(XPU_ISA)
namespace xpu::cpu::XPU_ISA {

template <typename T>
struct GemmTile {
  static constexpr int kVectors = 2;
  static constexpr int kRows = XPU_VECTOR_BYTES == 64 ? 12 : XPU_VECTOR_BYTES == 32 ? 6 : 4;
  static constexpr int kLanes = XPU_VECTOR_BYTES / sizeof(T);
  static constexpr int kCols = kVectors * kLanes;
  typedef T Vector __attribute__((vector_size(XPU_VECTOR_BYTES)));
  typedef T Memory __attribute__((vector_size(XPU_VECTOR_BYTES), aligned(alignof(T)), may_alias));
};

// Copies a matrix of outer by k elements, times alpha, into panels of `width` rows each. A panel has its rows' elements
// of the first term, then those of the second one, and so on. The last panel's missing rows are zeros.
template <typename T>
static void Pack(const T* from, int64_t outer, int64_t outer_stride, int64_t k, int64_t k_stride, int width, T alpha,
                 T* to) {
  for (int64_t first = 0; first < outer; first += width) {
    const int64_t here = outer - first < width ? outer - first : width;
    const T* source = from + first * outer_stride;
    if (outer_stride == 1 && here == width && alpha == 1) {
      for (int64_t l = 0; l < k; ++l, to += width) std::memcpy(to, source + l * k_stride, width * sizeof(T));
      continue;
    }
    for (int64_t l = 0; l < k; ++l, to += width) {
      for (int64_t i = 0; i < here; ++i) to[i] = alpha * source[i * outer_stride + l * k_stride];
      for (int64_t i = here; i < width; ++i) to[i] = 0;
    }
  }
}

// One register tile: c[rows, cols] (+)= a panel * b panel.
template <typename T>
static void MultiplyTile(int64_t k, const T* a, const T* b, T* c, int64_t row_stride, int64_t col_stride, int64_t rows,
                         int64_t cols, bool accumulate) {
  using S = GemmTile<T>;
  using V = typename S::Vector;
  V sum[S::kRows][S::kVectors] = {};
  for (int64_t l = 0; l < k; ++l) {
    const V b0 = *reinterpret_cast<const typename S::Memory*>(b + l * S::kCols);
    const V b1 = *reinterpret_cast<const typename S::Memory*>(b + l * S::kCols + S::kLanes);
#pragma GCC unroll 16
    for (int i = 0; i < S::kRows; ++i) {
      const T x = a[l * S::kRows + i];
      sum[i][0] += x * b0;
      sum[i][1] += x * b1;
    }
  }
  if (col_stride == 1 && cols == S::kCols) {
#pragma GCC unroll 16
    for (int i = 0; i < S::kRows; ++i) {
      if (i >= rows) break;
      auto* to = reinterpret_cast<typename S::Memory*>(c + i * row_stride);
      to[0] = accumulate ? to[0] + sum[i][0] : sum[i][0];
      to[1] = accumulate ? to[1] + sum[i][1] : sum[i][1];
    }
    return;
  }
  T tile[S::kRows * S::kCols];
  std::memcpy(tile, sum, sizeof(tile));
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < cols; ++j) {
      T& to = c[i * row_stride + j * col_stride];
      to = accumulate ? to + tile[i * S::kCols + j] : tile[i * S::kCols + j];
    }
  }
}

// The number of elements that MultiplyBlock needs as memory for its panels.
template <typename T>
static int64_t PanelElements(int64_t m, int64_t n, int64_t k) {
  using S = GemmTile<T>;
  return ((m + S::kRows - 1) / S::kRows * S::kRows + (n + S::kCols - 1) / S::kCols * S::kCols) * k;
}

template <typename T>
static void MultiplyBlock(int64_t m, int64_t n, int64_t k, StridedMatrix<const T> a, StridedMatrix<const T> b,
                          StridedMatrix<T> c, T alpha, bool accumulate, T* panels) {
  using S = GemmTile<T>;
  T* packed_a = panels;
  T* packed_b = panels + (m + S::kRows - 1) / S::kRows * S::kRows * k;
  Pack(a.data, m, a.row_stride, k, a.col_stride, S::kRows, alpha, packed_a);
  Pack(b.data, n, b.col_stride, k, b.row_stride, S::kCols, T(1), packed_b);
  for (int64_t j = 0; j < n; j += S::kCols) {
    const int64_t cols = n - j < S::kCols ? n - j : S::kCols;
    for (int64_t i = 0; i < m; i += S::kRows) {
      const int64_t rows = m - i < S::kRows ? m - i : S::kRows;
      MultiplyTile(k, packed_a + i * k, packed_b + j * k, c.data + i * c.row_stride + j * c.col_stride, c.row_stride,
                   c.col_stride, rows, cols, accumulate);
    }
  }
}

}  // namespace xpu::cpu::XPU_ISA
#include "tensorflow_plugin/backends/cpu/simd/each_isa.h"
#endif  // XPU_ISA

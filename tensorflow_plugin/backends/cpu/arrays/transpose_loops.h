// Transposes of tiles, once per instruction set (isa.h).
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_ARRAYS_TRANSPOSE_LOOPS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_ARRAYS_TRANSPOSE_LOOPS_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "tensorflow_plugin/backends/cpu/arrays/transpose.h"

#define XPU_ISA_FILE "tensorflow_plugin/backends/cpu/arrays/transpose_loops.h"
#define XPU_ISA baseline
#define XPU_VECTOR_BYTES 16
#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_ARRAYS_TRANSPOSE_LOOPS_H_

#if defined(XPU_ISA)
namespace xpu::cpu::XPU_ISA {
namespace {

// The general form, row by row of the destination.
template <int kSize>
inline void TransposeAny(const char* src, int64_t src_column, char* dst, int64_t dst_row, int64_t dst_column,
                         int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      std::memcpy(dst + r * dst_row + c * dst_column, src + r * kSize + c * src_column, kSize);
    }
  }
}

// A square of n * n elements in n registers. Where a register is a cache line, every line is read once and written
// once. So it does not matter that lines a power of two apart push each other out of the cache.
template <typename E, int kBytes>
struct Square {
  static constexpr int kSide = kBytes / sizeof(E);
  typedef E Vector __attribute__((vector_size(kBytes)));

  // Through pointers: a vector wider than the baseline's must not be a return value.
  template <size_t... i>
  static inline void Interleave(const Vector* a, const Vector* b, Vector* out, std::index_sequence<i...>) {
    out[0] = __builtin_shufflevector(*a, *b, (i / 2 + (i % 2 ? kSide : 0))...);
    out[1] = __builtin_shufflevector(*a, *b, (kSide / 2 + i / 2 + (i % 2 ? kSide : 0))...);
  }

  // The elements of n registers in turns: log2(n) times those of registers i and i + n/2.
  template <int n>
  static inline void InterleaveAll(Vector (&v)[n]) {
    Vector w[n];
#pragma GCC unroll 8
    for (int step = 1; step < n; step *= 2) {
#pragma GCC unroll 32
      for (int i = 0; i < n / 2; ++i) Interleave(&v[i], &v[i + n / 2], &w[2 * i], std::make_index_sequence<kSide>());
#pragma GCC unroll 32
      for (int i = 0; i < n; ++i) v[i] = w[i];
    }
  }

  static inline void Transpose(const char* src, int64_t src_column, char* dst, int64_t dst_row) {
    Vector v[kSide];
#pragma GCC unroll 32
    for (int i = 0; i < kSide; ++i) std::memcpy(&v[i], src + i * src_column, kBytes);
    InterleaveAll(v);
#pragma GCC unroll 32
    for (int i = 0; i < kSide; ++i) std::memcpy(dst + i * dst_row, &v[i], kBytes);
  }
};

// Two or four long columns, whose rows follow each other in the destination: groups of channels that are shuffled, or
// a vector's components. The last rows may be copied twice.
template <typename E, int kBytes, int kColumns>
inline void InterleaveColumns(const char* src, int64_t src_column, char* dst, int64_t rows) {
  using S = Square<E, kBytes>;
  constexpr int kSide = S::kSide, kSize = sizeof(E);
  if (rows < kSide) {
    if constexpr (kSide > 2) return InterleaveColumns<E, kBytes / 2, kColumns>(src, src_column, dst, rows);
    return TransposeAny<kSize>(src, src_column, dst, kColumns * kSize, kSize, rows, kColumns);
  }
  for (int64_t row = 0; row < rows; row += kSide) {
    const int64_t r = row + kSide <= rows ? row : rows - kSide;
    typename S::Vector v[kColumns];
    for (int c = 0; c < kColumns; ++c) std::memcpy(&v[c], src + c * src_column + r * kSize, kBytes);
    S::InterleaveAll(v);
    for (int c = 0; c < kColumns; ++c) std::memcpy(dst + (r * kColumns + c * kSide) * kSize, &v[c], kBytes);
  }
}

template <typename E, int kBytes>
inline void Transpose(const char* src, int64_t src_column, char* dst, int64_t dst_row, int64_t dst_column, int64_t rows,
                      int64_t columns) {
  using S = Square<E, kBytes>;
  constexpr int kSide = S::kSide, kSize = sizeof(E);
  if (dst_column == kSize && dst_row == columns * kSize) {
    if (columns == 2) return InterleaveColumns<E, kBytes, 2>(src, src_column, dst, rows);
    if (columns == 4 && kSide > 4) return InterleaveColumns<E, kBytes, 4>(src, src_column, dst, rows);
  }
  if (dst_column != kSize || rows < kSide || columns < kSide) {
    return TransposeAny<kSize>(src, src_column, dst, dst_row, dst_column, rows, columns);
  }
  const int64_t full_rows = rows / kSide * kSide, full_columns = columns / kSide * kSide;
  for (int64_t c = 0; c < full_columns; c += kSide) {
    for (int64_t r = 0; r < full_rows; r += kSide) {
      S::Transpose(src + r * kSize + c * src_column, src_column, dst + r * dst_row + c * kSize, dst_row);
    }
  }
  if (full_columns < columns) {
    TransposeAny<kSize>(src + full_columns * src_column, src_column, dst + full_columns * kSize, dst_row, kSize, rows,
                        columns - full_columns);
  }
  if (full_rows < rows) {
    TransposeAny<kSize>(src + full_rows * kSize, src_column, dst + full_rows * dst_row, dst_row, kSize,
                        rows - full_rows, full_columns);
  }
}

// The width of a register for elements of E: short elements need shuffles across lanes, which only AVX-512 has.
template <typename E>
inline constexpr int kWidth = sizeof(E) == 1                             ? 16
                              : sizeof(E) == 2 && XPU_VECTOR_BYTES == 32 ? 16
                                                                         : XPU_VECTOR_BYTES;

inline TransposeFunction FunctionFor(int64_t size) {
  switch (size) {
    case 1:
      return Transpose<uint8_t, kWidth<uint8_t>>;
    case 2:
      return Transpose<uint16_t, kWidth<uint16_t>>;
    case 4:
      return Transpose<uint32_t, kWidth<uint32_t>>;
    case 8:
      return Transpose<uint64_t, kWidth<uint64_t>>;
    default:
      return TransposeAny<16>;
  }
}

}  // namespace
}  // namespace xpu::cpu::XPU_ISA
#include "tensorflow_plugin/backends/cpu/simd/each_isa.h"
#endif  // XPU_ISA

// The loops of MultiplyBytes (integer_matmul.h), once per instruction set. XPU_VNNI: with dot products of bytes.
//
// The unit of work is a quad: four consecutive terms of a sum, which fill a lane of 32 bits. A dot product of quads has
// one side of unsigned bytes and one of signed bytes. `a` stays as it is. `b` is made the other kind by flipping its
// highest bits, which adds 128 to each of its elements or subtracts it. The owner corrects the sums.
//
// Four rows of b with kGroup columns become four vectors of quads (simd/quads.h). Sums stay in their order until they
// are stored.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_MATMUL_INTEGER_MATMUL_LOOPS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_MATMUL_INTEGER_MATMUL_LOOPS_H_

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <cstdint>
#include <cstring>

#include "tensorflow_plugin/backends/cpu/matmul/integer_matmul.h"
#include "tensorflow_plugin/backends/cpu/simd/ahead.h"
#include "tensorflow_plugin/backends/cpu/simd/quads.h"

#define XPU_ISA_WITH_VNNI
#define XPU_ISA_FILE "tensorflow_plugin/backends/cpu/matmul/integer_matmul_loops.h"
#define XPU_ISA baseline
#define XPU_VECTOR_BYTES 16
#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_MATMUL_INTEGER_MATMUL_LOOPS_H_

#if defined(XPU_ISA)
namespace xpu::cpu::XPU_ISA {

inline constexpr int64_t kGroup = XPU_VECTOR_BYTES;      // columns
inline constexpr int kQuadBytes = 4 * XPU_VECTOR_BYTES;  // of a quad of rows of a group
#if defined(XPU_VNNI)
inline constexpr int kRowsAtOnce = 6;
#elif XPU_VECTOR_BYTES == 64
inline constexpr int kRowsAtOnce = 4;
#else
inline constexpr int kRowsAtOnce = 2;
#endif
inline constexpr int kDirectRows = MostRowsOfBytesAsTheyLie(XPU_VECTOR_BYTES);

static int64_t GroupColumns() { return kGroup; }
static int64_t RowsAtOnce() { return kRowsAtOnce; }

// A vector of quads, as dot products want it.
#if defined(XPU_VNNI)
struct Quads {
  Ints bytes;
};
template <bool kSigned>
static inline Quads Split(Ints v) {
  return {v};
}
#else
typedef int16_t Words __attribute__((vector_size(XPU_VECTOR_BYTES)));
typedef uint16_t UnsignedWords __attribute__((vector_size(XPU_VECTOR_BYTES)));
struct Quads {
  Words even, odd;
};
template <bool kSigned>
static inline Quads Split(Ints v) {
  if (kSigned) return {(Words)((Words)v << 8) >> 8, (Words)v >> 8};
  return {(Words)((UnsignedWords)v & 255), (Words)((UnsignedWords)v >> 8)};
}
#endif

// sum + the dot products of quads, of which those of a are signed or unsigned, and those of b the other.
template <bool kSignedA>
static inline Ints AddDots(Ints sum, const Quads& a, const Quads& b) {
#if defined(XPU_VNNI)
  return (Ints)(kSignedA ? _mm512_dpbusd_epi32((__m512i)sum, (__m512i)b.bytes, (__m512i)a.bytes)
                         : _mm512_dpbusd_epi32((__m512i)sum, (__m512i)a.bytes, (__m512i)b.bytes));
#else
  return sum + MultiplyAddPairs((Ints)a.even, (Ints)b.even) + MultiplyAddPairs((Ints)a.odd, (Ints)b.odd);
#endif
}

template <bool kSignedA>
static inline Quads SplatQuad(const uint8_t* a) {
  int32_t quad;
  std::memcpy(&quad, a, sizeof(quad));
  return Split<kSignedA>(quad - Ints{});
}

// The lane of column `j` of a group, counted through its four vectors.
static inline int64_t PlaceOf(int64_t j) { return j % 16 / 4 * (XPU_VECTOR_BYTES / 4) + j / 16 * 4 + j % 4; }

// k rows of n columns of b as quads, in groups of `group_bytes`. Elements beyond the last row or column are zeros.
static void PackBytes(const uint8_t* b, int64_t ldb, uint8_t flip, int64_t k, int64_t n, uint8_t* packed,
                      int64_t group_bytes) {
  const int64_t quads = (k + 3) / 4;
  uint8_t padded[4][kGroup];
  const Bytes flips = flip - Bytes{};
  for (int64_t q = 0; q < quads; ++q) {
    for (int64_t g = 0; g < n; g += kGroup) {
      const uint8_t* rows[4];
      for (int i = 0; i < 4; ++i) {
        rows[i] = b + (4 * q + i) * ldb + g;
        if (4 * q + i < k && n - g >= kGroup) continue;
        std::memset(padded[i], 0, kGroup);
        if (4 * q + i < k) std::memcpy(padded[i], rows[i], static_cast<size_t>(n - g));
        rows[i] = padded[i];
      }
      Ints out[4];
      Interleave(rows, flips, out);
      std::memcpy(packed + g / kGroup * group_bytes + q * kQuadBytes, out, sizeof(out));
    }
  }
}

// Stores a row of sums, which are in the order of quads, to c in the order of columns.
static inline void StoreRow(const int32_t* sums, int64_t n, int32_t correction, bool add, int32_t* c) {
  for (int64_t j = 0; j < n; j += 4) {
    const int32_t* from = sums + PlaceOf(j);
    const int64_t here = n - j < 4 ? n - j : 4;
    for (int64_t i = 0; i < here; ++i) {
      const uint32_t to = add ? static_cast<uint32_t>(c[j + i]) : static_cast<uint32_t>(correction);
      c[j + i] = static_cast<int32_t>(to + static_cast<uint32_t>(from[i]));
    }
  }
}

template <bool kSignedA, int kRows>
static inline void MultiplyRows(int64_t quads, const uint8_t* a, int64_t lda, const uint8_t* packed, int64_t n,
                                const int32_t* corrections, bool add, int32_t* c, int64_t ldc) {
  Ints sum[kRows][4] = {};
  for (int64_t q = 0; q < quads; ++q, packed += kQuadBytes) {
    Quads x[kRows];
#pragma GCC unroll 6
    for (int i = 0; i < kRows; ++i) x[i] = SplatQuad<kSignedA>(a + i * lda + 4 * q);
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) {
      const Quads y = Split<!kSignedA>((Ints)LoadBytes(packed + v * XPU_VECTOR_BYTES));
#pragma GCC unroll 6
      for (int i = 0; i < kRows; ++i) sum[i][v] = AddDots<kSignedA>(sum[i][v], x[i], y);
    }
  }
  int32_t row[kGroup];
  for (int i = 0; i < kRows; ++i) {
    std::memcpy(row, sum[i], sizeof(row));
    StoreRow(row, n, corrections[i], add, c + i * ldc);
  }
}

// c = a * a packed group of n columns + corrections, or c += that product. At most kRowsAtOnce rows.
static void MultiplyGroup(bool signed_a, int64_t rows, int64_t quads, const uint8_t* a, int64_t lda,
                          const uint8_t* packed, int64_t n, const int32_t* corrections, bool add, int32_t* c,
                          int64_t ldc) {
  using Multiply =
      void (*)(int64_t, const uint8_t*, int64_t, const uint8_t*, int64_t, const int32_t*, bool, int32_t*, int64_t);
#if defined(XPU_VNNI)
  constexpr Multiply kernels[2][6] = {{MultiplyRows<false, 1>, MultiplyRows<false, 2>, MultiplyRows<false, 3>,
                                       MultiplyRows<false, 4>, MultiplyRows<false, 5>, MultiplyRows<false, 6>},
                                      {MultiplyRows<true, 1>, MultiplyRows<true, 2>, MultiplyRows<true, 3>,
                                       MultiplyRows<true, 4>, MultiplyRows<true, 5>, MultiplyRows<true, 6>}};
#elif XPU_VECTOR_BYTES == 64
  constexpr Multiply kernels[2][4] = {
      {MultiplyRows<false, 1>, MultiplyRows<false, 2>, MultiplyRows<false, 3>, MultiplyRows<false, 4>},
      {MultiplyRows<true, 1>, MultiplyRows<true, 2>, MultiplyRows<true, 3>, MultiplyRows<true, 4>}};
#else
  constexpr Multiply kernels[2][2] = {{MultiplyRows<false, 1>, MultiplyRows<false, 2>},
                                      {MultiplyRows<true, 1>, MultiplyRows<true, 2>}};
#endif
  kernels[signed_a][rows - 1](quads, a, lda, packed, n, corrections, add, c, ldc);
}

// The sums of kRows rows of a with whole groups of columns of b; those of row i begin at sums + i * n. A few rows of b
// at a time are read from beginning to end, while the sums stay in the first cache.
template <bool kSignedA, int kRows>
static inline void SumDirectly(int64_t n, int64_t k, const uint8_t* a, int64_t lda, const uint8_t* b, int64_t ldb,
                               uint8_t flip, int32_t* sums) {
  constexpr int64_t kDeep = 32;
  const Bytes flips = flip - Bytes{};
  std::memset(sums, 0, static_cast<size_t>(kRows * n) * sizeof(int32_t));
  for (int64_t l = 0; l < k; l += kDeep) {
    const int64_t end = l + kDeep < k ? l + kDeep : k;
    Ahead ahead(b + (l + kDeep) * ldb, n, ldb, kGroup);
    for (int64_t j = 0; j < n; j += kGroup) {
      Ints sum[kRows][4];
      std::memcpy(sum[0], sums + j, sizeof(sum[0]));
#pragma GCC unroll 4
      for (int i = 1; i < kRows; ++i) std::memcpy(sum[i], sums + i * n + j, sizeof(sum[i]));
      for (int64_t q = l; q < end; q += 4) {
        // Beyond the last row of b the elements of a are zeros, so any row of b will do.
        const uint8_t* rows[4];
#pragma GCC unroll 4
        for (int i = 0; i < 4 && kGroup >= Ahead::kLine; ++i) ahead.Fetch(kGroup);
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) rows[i] = b + (q + i < k ? q + i : k - 1) * ldb + j;
        Ints quads[4];
        Interleave(rows, flips, quads);
#pragma GCC unroll 4
        for (int i = 0; i < kRows; ++i) {
          const Quads x = SplatQuad<kSignedA>(a + i * lda + q);
#pragma GCC unroll 4
          for (int v = 0; v < 4; ++v) sum[i][v] = AddDots<kSignedA>(sum[i][v], x, Split<!kSignedA>(quads[v]));
        }
      }
#pragma GCC unroll 4
      for (int i = 0; i < kRows; ++i) std::memcpy(sums + i * n + j, sum[i], sizeof(sum[i]));
    }
  }
}

// c = a * b + corrections for at most kDirectRows rows; n is a multiple of kGroup. `sums` has room for rows * n sums.
static void MultiplyDirectly(bool signed_a, int64_t rows, int64_t n, int64_t k, const uint8_t* a, int64_t lda,
                             const uint8_t* b, int64_t ldb, uint8_t flip, const int32_t* corrections, int32_t* sums,
                             int32_t* c, int64_t ldc) {
  using Sum = void (*)(int64_t, int64_t, const uint8_t*, int64_t, const uint8_t*, int64_t, uint8_t, int32_t*);
#define XPU_DIRECTLY(rows)                            \
  {                                                   \
    SumDirectly<false, rows>, SumDirectly<true, rows> \
  }
#if XPU_VECTOR_BYTES == 64
  constexpr Sum kernels[4][2] = {XPU_DIRECTLY(1), XPU_DIRECTLY(2), XPU_DIRECTLY(3), XPU_DIRECTLY(4)};
#else
  constexpr Sum kernels[2][2] = {XPU_DIRECTLY(1), XPU_DIRECTLY(2)};
#endif
#undef XPU_DIRECTLY
  kernels[rows - 1][signed_a](n, k, a, lda, b, ldb, flip, sums);
  for (int64_t i = 0; i < rows; ++i, sums += n, c += ldc) {
    for (int64_t j = 0; j < n; j += kGroup) StoreRow(sums + j, kGroup, corrections[i], false, c + j);
  }
}

// One more vector of each column of b, for every row of a.
template <bool kSignedA, int kRows, int kColumns>
static inline void AddVectors(const uint8_t* a, int64_t lda, const Bytes (&b)[kColumns], Ints (&sum)[kRows][4]) {
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i) {
    const Quads x = Split<kSignedA>((Ints)LoadBytes(a + i * lda));
#pragma GCC unroll 4
    for (int j = 0; j < kColumns; ++j) sum[i][j] = AddDots<kSignedA>(sum[i][j], x, Split<!kSignedA>((Ints)b[j]));
  }
}

// The dot products of kRows rows of a and kColumns columns of b, which are in the first cache. Each row of a ends in
// zeros that fill its last vector.
template <bool kSignedA, int kRows, int kColumns>
static inline void DotColumns(int64_t k, const uint8_t* a, int64_t lda, const uint8_t* b, int64_t ldb, uint8_t flip,
                              const int32_t* corrections, int32_t* c, int64_t ldc) {
  const Bytes flips = flip - Bytes{};
  Ints sum[kRows][4] = {};
  const int64_t whole = k / XPU_VECTOR_BYTES * XPU_VECTOR_BYTES;
  for (int64_t l = 0; l < k; l += XPU_VECTOR_BYTES) {
    Bytes y[kColumns];
#pragma GCC unroll 4
    for (int j = 0; j < kColumns; ++j) {
      const uint8_t* const from = b + j * ldb + l;
      y[j] = (l < whole ? LoadBytes(from) : LoadFirstBytes(from, k - whole)) ^ flips;
    }
    AddVectors<kSignedA, kRows, kColumns>(a + l, lda, y, sum);
  }
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i) {
    const Sums4 sums = SumsOfLanes(sum[i][0], sum[i][1], sum[i][2], sum[i][3]) + corrections[i];
    std::memcpy(c + i * ldc, &sums, kColumns * sizeof(int32_t));
  }
}

// The same for columns that come from memory. They are read one after the other. For columns that are read side by side
// the processor fetches nothing in advance. A sum waits for its last addition, so a column has several sums.
template <bool kSignedA, int kRows, int kColumns>
static inline void StreamColumns(int64_t k, const uint8_t* a, int64_t lda, const uint8_t* b, int64_t ldb, uint8_t flip,
                                 const int32_t* corrections, int32_t* c, int64_t ldc) {
  constexpr int kWide = kRows == 1 ? 4 : kRows == 2 ? 2 : 1;
  constexpr int64_t kStep = kWide * XPU_VECTOR_BYTES;
  const Bytes flips = flip - Bytes{};
  Ints total[kRows][4] = {};
  const int64_t whole = k / XPU_VECTOR_BYTES * XPU_VECTOR_BYTES;
#pragma GCC unroll 4
  for (int j = 0; j < kColumns; ++j, b += ldb) {
    Ints sum[kWide][kRows][4] = {};
    int64_t l = 0;
    for (; l + kStep <= k; l += kStep) {
#pragma GCC unroll 4
      for (int w = 0; w < kWide; ++w) {
        const int64_t at = l + w * XPU_VECTOR_BYTES;
        const Bytes y[1] = {LoadBytes(b + at) ^ flips};
        AddVectors<kSignedA, kRows, 1>(a + at, lda, y, sum[w]);
      }
    }
    for (; l < k; l += XPU_VECTOR_BYTES) {
      const Bytes y[1] = {(l < whole ? LoadBytes(b + l) : LoadFirstBytes(b + l, k - whole)) ^ flips};
      AddVectors<kSignedA, kRows, 1>(a + l, lda, y, sum[0]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
      for (int w = 0; w < kWide; ++w) total[i][j] += sum[w][i][0];
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i) {
    const Sums4 sums = SumsOfLanes(total[i][0], total[i][1], total[i][2], total[i][3]) + corrections[i];
    std::memcpy(c + i * ldc, &sums, kColumns * sizeof(int32_t));
  }
}

template <bool kStream, bool kSignedA, int kRows>
static void MultiplyColumnsOf(int64_t n, int64_t k, const uint8_t* a, int64_t lda, const uint8_t* b, int64_t ldb,
                              uint8_t flip, const int32_t* corrections, int32_t* c, int64_t ldc) {
  int64_t j = 0;
  for (; j + 4 <= n; j += 4, b += 4 * ldb) {
    if constexpr (kStream) {
      StreamColumns<kSignedA, kRows, 4>(k, a, lda, b, ldb, flip, corrections, c + j, ldc);
    } else {
      DotColumns<kSignedA, kRows, 4>(k, a, lda, b, ldb, flip, corrections, c + j, ldc);
    }
  }
  for (; j < n; ++j, b += ldb) DotColumns<kSignedA, kRows, 1>(k, a, lda, b, ldb, flip, corrections, c + j, ldc);
}

// c = a * b + corrections for b in columns, which are read as they lie: a few columns at a time, for all rows of a.
static void MultiplyColumns(bool signed_a, int64_t rows, int64_t n, int64_t k, const uint8_t* a, int64_t lda,
                            const uint8_t* b, int64_t ldb, uint8_t flip, const int32_t* corrections, int32_t* c,
                            int64_t ldc) {
  using Multiply = void (*)(int64_t, int64_t, const uint8_t*, int64_t, const uint8_t*, int64_t, uint8_t, const int32_t*,
                            int32_t*, int64_t);
#define XPU_COLUMNS(stream, rows) {MultiplyColumnsOf<stream, false, rows>, MultiplyColumnsOf<stream, true, rows>}
#if XPU_VECTOR_BYTES == 64
#define XPU_COLUMNS_OF(stream) \
  {XPU_COLUMNS(stream, 1), XPU_COLUMNS(stream, 2), XPU_COLUMNS(stream, 3), XPU_COLUMNS(stream, 4)}
#else
#define XPU_COLUMNS_OF(stream)                     \
  {                                                \
    XPU_COLUMNS(stream, 1), XPU_COLUMNS(stream, 2) \
  }
#endif
  constexpr Multiply kernels[2][kDirectRows][2] = {XPU_COLUMNS_OF(false), XPU_COLUMNS_OF(true)};
#undef XPU_COLUMNS_OF
#undef XPU_COLUMNS
  const int64_t columns = rows <= kDirectRows ? n : 16;
  for (int64_t j = 0; j < n; j += columns) {
    const int64_t here = n - j < columns ? n - j : columns;
    for (int64_t i = 0; i < rows; i += kDirectRows) {
      const int64_t rest = rows - i < kDirectRows ? rows - i : kDirectRows;
      kernels[i == 0][rest - 1][signed_a](here, k, a + i * lda, lda, b + j * ldb, ldb, flip, corrections + i,
                                          c + i * ldc + j, ldc);
    }
  }
}

}  // namespace xpu::cpu::XPU_ISA
#include "tensorflow_plugin/backends/cpu/simd/each_isa.h"
#endif  // XPU_ISA

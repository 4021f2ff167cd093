// The loops of MultiplyFewRows (few_rows.h), once per instruction set. SumRows is for a matrix b in rows, SumColumns
// for one in columns. `a` is in rows. Both compute kRows rows and n columns of c. The sums of row i begin at sums + i *
// ld_sums. Each row has room for whole vectors. As many rows of partial sums follow the last one, and a page.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_MATMUL_FEW_ROWS_LOOPS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_MATMUL_FEW_ROWS_LOOPS_H_

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "tensorflow_plugin/backends/cpu/simd/ahead.h"
#include "tensorflow_plugin/backends/cpu/simd/vector_math.h"

namespace xpu::cpu {

// A long sum is one of partial sums, each of so many terms. Partial sums in rows have a page more (SumRow).
constexpr int64_t kTermsOfPartialSum = 32, kFloatsOfPage = 1024;

// Products of one row each. Their matrices in rows lie side by side, `width` columns each, from column -first on. The
// rows of a are lda elements apart.
struct SideBySide {
  int64_t first, width, lda;
};

}  // namespace xpu::cpu

#define XPU_ISA_FILE "tensorflow_plugin/backends/cpu/matmul/few_rows_loops.h"
#define XPU_ISA baseline
#define XPU_VECTOR_BYTES 16
#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_MATMUL_FEW_ROWS_LOOPS_H_

#if defined(XPU_ISA)
namespace xpu::cpu::XPU_ISA {

// The number of vector registers.
inline constexpr int kRegisters = XPU_VECTOR_BYTES == 64 ? 32 : 16;

// Adds `deep` terms, one for each row of b, to the sums of kRows rows of a and kVectors vectors of columns. The caller
// divides a long sum into partial sums of a fixed number of terms, which are added up at `part`. `first` and `last`: a
// partial sum begins or ends here. One that ends is added to `sums`. So a long sum has smaller rounding errors than if
// its terms were added one after the other. The last vector has `tail` columns.
template <typename T, bool kFetch, int kRows, int kVectors>
static inline void AddTerms(int64_t deep, bool first, bool last, const float* a, int64_t lda, const T* b, int64_t ldb,
                            int tail, float* sums, float* part, int64_t ld_sums, Ahead* ahead) {
  constexpr int kBytes = kVectors * kLanes * static_cast<int>(sizeof(T));
  VF sum[kRows][kVectors] = {};
#pragma GCC unroll 4
  for (int i = 0; i < kRows && !first; ++i) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) sum[i][v] = Load(part + i * ld_sums + v * kLanes);
  }
  for (int64_t l = 0; l < deep; ++l, b += ldb) {
    if (kFetch && kBytes % Ahead::kLine == 0) ahead->Fetch(kBytes);
    VF y[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      y[v] = v + 1 < kVectors || tail == kLanes ? Load(b + v * kLanes) : LoadFirst(b + v * kLanes, tail, 0);
    }
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) {
      const float x = a[i * lda + l];
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sum[i][v] += x * y[v];
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      float* const to = (last ? sums : part) + i * ld_sums + v * kLanes;
      Store(to, last ? Load(to) + sum[i][v] : sum[i][v]);
    }
  }
}

// Adds kDeep terms to the sums of kVectors vectors of columns, or begins these. The rows of b are ldb elements apart.
template <bool kBegins, int kDeep, int kVectors, typename T>
static inline void AddVectors(const float* a, const T* b, int64_t ldb, float* sums) {
  VF sum[kVectors] = {};
#pragma GCC unroll 4
  for (int v = 0; v < kVectors && !kBegins; ++v) sum[v] = Load(sums + v * kLanes);
#pragma GCC unroll 8
  for (int i = 0; i < kDeep; ++i) {
    const VF x = Splat<VF>(a[i]);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sum[v] += x * Load(b + i * ldb + v * kLanes);
  }
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) Store(sums + v * kLanes, sum[v]);
}

// The same for n columns in whole vectors.
template <bool kBegins, int kDeep, typename T>
static inline void AddColumns(int64_t n, const float* a, const T* b, int64_t ldb, float* sums) {
  constexpr int64_t kVectors = 4;
  int64_t j = 0;
  for (; j + kVectors * kLanes <= n; j += kVectors * kLanes) {
    AddVectors<kBegins, kDeep, kVectors>(a, b + j, ldb, sums + j);
  }
  for (; j < n; j += kLanes) AddVectors<kBegins, kDeep, 1>(a, b + j, ldb, sums + j);
}

// For one row of a, or one for each product, and b in rows, n columns in whole vectors. The processor sees in which
// order whole rows of b are read, and fetches in advance by itself. Short rows are read one by one: sums in the first
// cache are read and written as quickly as b comes from an outer one. The sums of long rows leave that cache, so kDeep
// of these are read at a time. A load waits for a recent store whose address is the same within a page. So the partial
// sums begin somewhat before b within theirs.
template <int kDeep, typename T>
static inline void SumRowBy(const SideBySide& products, int64_t n, int64_t k, const float* a, const T* b, int64_t ldb,
                            float* sums, float* part) {
  constexpr int64_t kTerms = kTermsOfPartialSum;
  constexpr uintptr_t kPage = kFloatsOfPage * sizeof(float), kDistance = 128;  // bytes
  part += (reinterpret_cast<uintptr_t>(b) - kDistance - reinterpret_cast<uintptr_t>(part)) % kPage / sizeof(float);
  std::memset(sums, 0, static_cast<size_t>(n) * sizeof(float));
  const int64_t row = products.first / products.width, of_first = products.width - products.first % products.width;
  const auto add = [&](auto begins, auto deep, int64_t l) {
    const float* x = a + row * products.lda + l;
    for (int64_t j = 0, end = of_first; j < n; j = end, end += products.width, x += products.lda) {
      AddColumns<begins, deep>((end < n ? end : n) - j, x, b + l * ldb + j, ldb, part + j);
    }
  };
  constexpr std::integral_constant<int, kDeep> deep;
  constexpr std::integral_constant<int, 1> one;
  for (int64_t l = 0; l < k;) {
    const int64_t end = k - l < kTerms ? k : l + kTerms;
    if (end - l < kDeep) {
      add(std::true_type(), one, l);
      l += one;
    } else {
      add(std::true_type(), deep, l);
      l += deep;
    }
    for (; l + deep <= end; l += deep) add(std::false_type(), deep, l);
    for (; l < end; l += one) add(std::false_type(), one, l);
    for (int64_t j = 0; j < n; j += kLanes) Store(sums + j, Load(sums + j) + Load(part + j));
  }
}

template <typename T>
static inline void SumRow(const SideBySide& products, int64_t n, int64_t k, const float* a, const T* b, int64_t ldb,
                          float* sums, float* part) {
  constexpr int64_t kLongRow = 4096;
  const auto sum = n < kLongRow ? &SumRowBy<1, T> : &SumRowBy<8, T>;
  sum(products, n, k, a, b, ldb, sums, part);
}

// For b in rows. kDeep rows of b at a time are read from beginning to end, while the sums stay in the first cache. With
// more rows at a time the processor would prefetch less. If the last columns fill no vector, one vector more has the
// sums of the last kLanes columns. In the end the missing ones are moved to their place.
template <typename T, bool kFetch, int kRows>
static inline void SumRows(int64_t n, int64_t k, const float* a, int64_t lda, const T* b, int64_t ldb, float* sums,
                           int64_t ld_sums) {
  constexpr int kVectors = kRows <= 2 || kRegisters == 32 ? 4 : 2;
  constexpr int64_t kTerms = kTermsOfPartialSum, kDeep = 16, kLongPiece = 1024;
  constexpr int64_t kSize = sizeof(T);
  float* const part = sums + kRows * ld_sums;
  // Long pieces of rows are as good as whole ones.
  const bool in_order = ldb == n || n >= kLongPiece;
  if (kRows == 1 && !kFetch && in_order && n % kLanes == 0) return SumRow({0, n, 0}, n, k, a, b, ldb, sums, part);
  std::memset(sums, 0, static_cast<size_t>(kRows * ld_sums) * sizeof(float));
  for (int64_t l = 0; l < k; l += kDeep) {
    const int64_t deep = k - l < kDeep ? k - l : kDeep;
    const bool first = l % kTerms == 0, last = l + deep == k || (l + deep) % kTerms == 0;
    const T* from = b + l * ldb;
    Ahead ahead(from + kDeep * ldb, n * kSize, ldb * kSize, kVectors * kLanes * kSize);
    int64_t j = 0;
    for (; j + kVectors * kLanes <= n; j += kVectors * kLanes) {
      AddTerms<T, kFetch, kRows, kVectors>(deep, first, last, a + l, lda, from + j, ldb, kLanes, sums + j, part + j,
                                           ld_sums, &ahead);
    }
    for (; j + kLanes <= n; j += kLanes) {
      AddTerms<T, kFetch, kRows, 1>(deep, first, last, a + l, lda, from + j, ldb, kLanes, sums + j, part + j, ld_sums,
                                    &ahead);
    }
    if (j < n) {
      const int lanes = static_cast<int>(n < kLanes ? n : kLanes);
      AddTerms<T, kFetch, kRows, 1>(deep, first, last, a + l, lda, from + n - lanes, ldb, lanes, sums + j, part + j,
                                    ld_sums, &ahead);
    }
  }
  const int64_t rest = n % kLanes;
  for (int i = 0; i < kRows && rest > 0 && n > kLanes; ++i) {
    float* last = sums + i * ld_sums + n - rest;
    std::memmove(last, last + kLanes - rest, static_cast<size_t>(rest) * sizeof(float));
  }
}

// The products of kRows rows of a and kColumns columns of b, whose elements are adjacent. Each product has kWide
// vectors of partial sums: with one alone, each addition would wait for the one before.
template <typename T, bool kFetch, int kRows, int kColumns>
static inline void Dots(int64_t k, const float* a, int64_t lda, const T* b, int64_t ldb, float* sums, int64_t ld_sums,
                        Ahead* ahead) {
  constexpr int kBytes = kLanes * static_cast<int>(sizeof(T));
  constexpr int kWide = kRows == 1 ? kRegisters / 8 : kRows == 2 ? kRegisters / 16 : 1;
  VF sum[kRows][kColumns][kWide] = {};
  int64_t l = 0;
  for (; l + kWide * kLanes <= k; l += kWide * kLanes) {
#pragma GCC unroll 4
    for (int w = 0; w < kWide; ++w) {
      VF x[kRows];
#pragma GCC unroll 4
      for (int i = 0; i < kRows; ++i) x[i] = Load(a + i * lda + l + w * kLanes);
#pragma GCC unroll 4
      for (int j = 0; j < kColumns; ++j) {
        if (kFetch && kBytes % Ahead::kLine == 0) ahead->Fetch(kBytes);
        const VF y = Load(b + j * ldb + l + w * kLanes);
#pragma GCC unroll 4
        for (int i = 0; i < kRows; ++i) sum[i][j][w] += x[i] * y;
      }
    }
  }
  for (; l < k; l += kLanes) {
    const int here = static_cast<int>(k - l < kLanes ? k - l : kLanes);
#pragma GCC unroll 4
    for (int j = 0; j < kColumns; ++j) {
      const VF y = here == kLanes ? Load(b + j * ldb + l) : LoadFirst(b + j * ldb + l, here, 0);
#pragma GCC unroll 4
      for (int i = 0; i < kRows; ++i) {
        sum[i][j][0] += (here == kLanes ? Load(a + i * lda + l) : LoadFirst(a + i * lda + l, here, 0)) * y;
      }
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i) {
    VF total[4] = {};
#pragma GCC unroll 4
    for (int j = 0; j < kColumns; ++j) {
      total[j] = sum[i][j][0];
#pragma GCC unroll 4
      for (int w = 1; w < kWide; ++w) total[j] += sum[i][j][w];
    }
    const V4 found = Sums(total[0], total[1], total[2], total[3]);
    std::memcpy(sums + i * ld_sums, &found, kColumns * sizeof(float));
  }
}

// For products of one row each, whose matrices in columns lie side by side. A row of memory has a column of k elements
// of each, in whole vectors, and is read from beginning to end.
template <typename T>
static inline void DotsSideBySide(int64_t products, int64_t n, int64_t k, const float* a, int64_t lda, const T* b,
                                  int64_t ldb, float* sums, int64_t ld_sums) {
  constexpr int64_t kAtOnce = 4, kInAdvance = 1 << 13;
  for (int64_t j = 0; j < n; ++j, b += ldb) {
    for (int64_t first = 0; first < products; first += kAtOnce) {
      const int64_t here = products - first < kAtOnce ? products - first : kAtOnce;
      int64_t product[kAtOnce];  // the last one stands for those beyond
#pragma GCC unroll 4
      for (int i = 0; i < kAtOnce; ++i) product[i] = first + (i < here ? i : here - 1);
      VF sum[kAtOnce] = {};
      for (int64_t l = 0; l < k; l += kLanes) {
#pragma GCC unroll 4
        for (int i = 0; i < kAtOnce; ++i) {
          const T* const from = b + product[i] * k + l;
          __builtin_prefetch(reinterpret_cast<const char*>(from) + kInAdvance, 0, 2);
          sum[i] += Load(a + product[i] * lda + l) * Load(from);
        }
      }
      const V4 found = Sums(sum[0], sum[1], sum[2], sum[3]);
      for (int64_t i = 0; i < here; ++i) sums[(first + i) * ld_sums + j] = found[i];
    }
  }
}

// For b in columns. Four of them are read at a time.
template <typename T, bool kFetch, int kRows>
static inline void SumColumns(int64_t n, int64_t k, const float* a, int64_t lda, const T* b, int64_t ldb, float* sums,
                              int64_t ld_sums) {
  constexpr int64_t kSize = sizeof(T), kInAdvance = 1 << 15;
  Ahead ahead(reinterpret_cast<const char*>(b) + kInAdvance, k * kSize, ldb * kSize, kLanes * kSize);
  int64_t j = 0;
  for (; j + 4 <= n; j += 4) Dots<T, kFetch, kRows, 4>(k, a, lda, b + j * ldb, ldb, sums + j, ld_sums, &ahead);
  for (; j < n; ++j) Dots<T, kFetch, kRows, 1>(k, a, lda, b + j * ldb, ldb, sums + j, ld_sums, &ahead);
}

// The sums of so many rows, `ld` apart, for each of n columns.
static inline void AddUp(int64_t rows, int64_t n, const float* from, int64_t ld, float* sums) {
  int64_t j = 0;
  for (; j + kLanes <= n; j += kLanes) {
    VF sum = Load(from + j);
    for (int64_t i = 1; i < rows; ++i) sum += Load(from + i * ld + j);
    Store(sums + j, sum);
  }
  for (; j < n; ++j) {
    sums[j] = from[j];
    for (int64_t i = 1; i < rows; ++i) sums[j] += from[i * ld + j];
  }
}

template <typename T>
static inline void StoreSums(const float* sums, int64_t n, T* to) {
  int64_t j = 0;
  for (; j + kLanes <= n; j += kLanes) Store(to + j, Load(sums + j));
  if (j < n) StoreFirst(to + j, static_cast<int>(n - j), Load(sums + j));
}

// SumRows or SumColumns for m rows.
template <typename T, bool kFetch>
static inline void FewRowsOf(bool in_columns, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const T* b,
                             int64_t ldb, float* sums, int64_t ld_sums) {
  constexpr decltype(&SumRows<T, kFetch, 1>) kernels[2][4] = {
      {SumRows<T, kFetch, 1>, SumRows<T, kFetch, 2>, SumRows<T, kFetch, 3>, SumRows<T, kFetch, 4>},
      {SumColumns<T, kFetch, 1>, SumColumns<T, kFetch, 2>, SumColumns<T, kFetch, 3>, SumColumns<T, kFetch, 4>}};
  kernels[in_columns][m - 1](n, k, a, lda, b, ldb, sums, ld_sums);
}
template <typename T>
static inline void FewRows(bool fetch, bool in_columns, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda,
                           const T* b, int64_t ldb, float* sums, int64_t ld_sums) {
  const auto multiply = fetch ? &FewRowsOf<T, true> : &FewRowsOf<T, false>;
  multiply(in_columns, m, n, k, a, lda, b, ldb, sums, ld_sums);
}

}  // namespace xpu::cpu::XPU_ISA
#include "tensorflow_plugin/backends/cpu/simd/each_isa.h"
#endif  // XPU_ISA

// The loops of panels.h, once per instruction set.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_MATMUL_PANELS_LOOPS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_MATMUL_PANELS_LOOPS_H_

#include <cstdint>

#include "tensorflow_plugin/backends/cpu/elementwise/chain_epilogue.h"
#include "tensorflow_plugin/backends/cpu/elementwise/chain_epilogue_loops.h"
#include "tensorflow_plugin/backends/cpu/matmul/panels.h"
#include "tensorflow_plugin/backends/cpu/simd/vector_math.h"

#define XPU_ISA_FILE "tensorflow_plugin/backends/cpu/matmul/panels_loops.h"
#define XPU_ISA baseline
#define XPU_VECTOR_BYTES 16
#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_MATMUL_PANELS_LOOPS_H_

#if defined(XPU_ISA)
namespace xpu::cpu::XPU_ISA {

// Vectors of a panel at most, so that the sums of a tile are in registers.
inline constexpr int kMostVectors = XPU_VECTOR_BYTES == 64 ? 4 : 2;
static inline int64_t LanesOfPanel() { return kLanes; }
static inline int64_t VectorsOfPanel() { return kMostVectors; }

// Copies `count` columns of `b` to rows of kVectors vectors, with zeros beyond the last column.
static inline void PackPanel(int64_t k, int64_t count, int vectors, const float* b, int64_t ldb, float* packed) {
  for (int64_t l = 0; l < k; ++l) {
    for (int v = 0; v < vectors; ++v, packed += kLanes) {
      const int64_t tail = count - v * kLanes;
      const float* const from = b + l * ldb + v * kLanes;
      Store(packed, tail >= kLanes ? Load(from) : LoadFirst(from, static_cast<int>(tail), 0));
    }
  }
}

// Finishes the sums of a tile and stores them.
template <int kRows, int kVectors>
static inline void StoreTile(const VF (&sum)[kRows][kVectors], const PanelOutput& to) {
  if (to.chain != nullptr && to.chain->is_affine) {
    ApplyAffineChain<kRows, kVectors>(to.chain->affine, sum, kRows, to.c, to.ldc, to.offset, to.col, to.tail);
    return;
  }
  if (to.chain != nullptr) {
    alignas(64) float sums[kRows * kVectors * kLanes];
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) Store(sums + (i * kVectors + v) * kLanes, sum[i][v]);
    }
    ApplyChainToTile<kVectors>(*to.chain, kRows, sums, kVectors * kLanes, to.c, to.ldc, to.offset, to.col, to.tail);
    return;
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      StoreUpTo(to.c + i * to.ldc + v * kLanes, v + 1 < kVectors ? int{kLanes} : to.tail, sum[i][v]);
    }
  }
}

// A panel's last vector. Where at most half of its lanes are columns, it is computed in half a vector, which takes some
// processors half of the time.
#if XPU_VECTOR_BYTES == 64
typedef float VHalf __attribute__((vector_size(32)));
static inline VF Whole(VHalf v) { return (VF)_mm512_zextps256_ps512((__m256)v); }
static inline VHalf FirstHalf(VF v) { return (VHalf)_mm512_castps512_ps256((__m512)v); }
static inline VHalf LoadHalf(const float* p) { return (VHalf)_mm256_loadu_ps(p); }
#endif
static inline bool FillsHalf(int tail) { return XPU_VECTOR_BYTES == 64 && tail <= kLanes / 2; }

// Memory that is brought to the cache meanwhile: so many bytes by term of a sum.
struct FetchedAhead {
  const char* from;
  int64_t step;
};

// kRows rows of c, a panel wide. `continues`: the sums begin with what c holds.
template <int kRows, int kVectors, bool kHalfTail>
static inline void PanelTile(const RowTerms& terms, const float* a, int64_t lda, const float* packed,
                             const FetchedAhead& ahead, bool continues, const PanelOutput& to) {
  constexpr int kWhole = kHalfTail ? kVectors - 1 : kVectors;  // vectors
  VF sum[kRows][kVectors] = {};
#if XPU_VECTOR_BYTES == 64
  VHalf half[kRows] = {};
#endif
  if (continues) {
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
      for (int v = 0; v < kWhole; ++v) {
        sum[i][v] = LoadUpTo(to.c + i * to.ldc + v * kLanes, v + 1 < kVectors ? int{kLanes} : to.tail);
      }
#if XPU_VECTOR_BYTES == 64
      if constexpr (kHalfTail) half[i] = FirstHalf(LoadFirst(to.c + i * to.ldc + kWhole * kLanes, to.tail, 0));
#endif
    }
  }
  for (int64_t piece = 0; piece < terms.pieces; ++piece) {
    const float* const x_of = a + terms.offsets[piece];
    for (int64_t l = 0; l < terms.length; ++l, packed += kVectors * kLanes) {
      __builtin_prefetch(ahead.from + l * ahead.step);
      VF y[kVectors];
#pragma GCC unroll 4
      for (int v = 0; v < kWhole; ++v) y[v] = Load(packed + v * kLanes);
#if XPU_VECTOR_BYTES == 64
      const VHalf z = LoadHalf(packed + (kVectors - 1) * kLanes);
#endif
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i) {
        const VF x = Splat<VF>(x_of[i * lda + l]);
#pragma GCC unroll 4
        for (int v = 0; v < kWhole; ++v) sum[i][v] += x * y[v];
#if XPU_VECTOR_BYTES == 64
        if constexpr (kHalfTail) half[i] += Splat<VHalf>(x_of[i * lda + l]) * z;
#endif
      }
    }
  }
#if XPU_VECTOR_BYTES == 64
  if constexpr (kHalfTail) {
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) sum[i][kVectors - 1] = Whole(half[i]);
  }
#endif
  StoreTile(sum, to);
}

// Terms of sums that all tiles add up before they go on: so what the tiles read stays in the second cache. Meanwhile
// they bring the panel's next terms there, and after the last ones those of the next panel. The first tile alone would
// wait for them.
inline constexpr int64_t kTermsAtOnce = 512;

template <int kRows, int kVectors, bool kHalfTail>
static inline void PanelRows(int64_t m, const RowTerms& terms, const float* a, int64_t lda, const float* packed,
                             bool is_followed, const PanelOutput& to) {
  constexpr auto compute_rows = PanelTile<kRows, kVectors, kHalfTail>;
  constexpr int64_t kColumns = kVectors * kLanes;
  const FetchedAhead nothing{reinterpret_cast<const char*>(packed), 0};
  const int64_t whole = m / kRows * kRows;  // rows
  const int64_t slices = terms.pieces == 1 ? (terms.length + kTermsAtOnce - 1) / kTermsAtOnce : 1;
  PanelOutput sums = to;
  for (int64_t s = 0; s < slices; ++s) {
    const int64_t first = terms.length * s / slices, end = terms.length * (s + 1) / slices;
    const RowTerms some{terms.pieces, end - first, terms.offsets};
    const bool is_last = s + 1 == slices;
    sums.chain = is_last ? to.chain : nullptr;
    FetchedAhead ahead = nothing;
    if (!is_last || is_followed) {
      ahead = {reinterpret_cast<const char*>(packed + end * kColumns), kColumns * 4 * kRows / m + 1};
    }
    for (int64_t i = 0; i < whole; i += kRows) {
      compute_rows(some, a + i * lda + first, lda, packed + first * kColumns, ahead, s > 0, sums.Down(i));
      ahead.from += (end - first) * ahead.step;
    }
  }
  int64_t i = whole;
  // Tiles of some rows cost less than many of one row, each of whose sums waits for its last addition. They compute
  // some rows again.
  constexpr int kHalf = kRows / 2;
  constexpr int64_t kOneRow = 4;  // what one row costs, in vectors
  const int64_t left = m - i;
  if (left > kHalf && m >= kRows) {
    i = m - kRows;
    compute_rows(terms, a + i * lda, lda, packed, nothing, false, to.Down(i));
    return;
  }
  if (left * kOneRow > kHalf * kVectors && m >= kHalf) {
    if (left < kHalf) i = m - kHalf;
    PanelTile<kHalf, kVectors, kHalfTail>(terms, a + i * lda, lda, packed, nothing, false, to.Down(i));
    i += kHalf;
  }
  for (; i < m; ++i) PanelTile<1, kVectors, kHalfTail>(terms, a + i * lda, lda, packed, nothing, false, to.Down(i));
}

template <int kRows, int kVectors>
static inline void MultiplyPanelBy(int64_t m, const RowTerms& terms, const float* a, int64_t lda, const float* packed,
                                   bool is_followed, const PanelOutput& to) {
  const auto run =
      FillsHalf(to.tail) ? PanelRows<kRows, kVectors, XPU_VECTOR_BYTES == 64> : PanelRows<kRows, kVectors, false>;
  run(m, terms, a, lda, packed, is_followed, to);
}

// Computes m rows, `vectors` vectors wide. `is_followed`: the panel that is multiplied next lies behind this one.
static inline void MultiplyPanel(int64_t m, const RowTerms& terms, const float* a, int64_t lda, const float* packed,
                                 bool is_followed, int vectors, const PanelOutput& to) {
#if XPU_VECTOR_BYTES == 64
  switch (vectors) {
    case 1:
      return MultiplyPanelBy<12, 1>(m, terms, a, lda, packed, is_followed, to);
    case 2:
      return MultiplyPanelBy<12, 2>(m, terms, a, lda, packed, is_followed, to);
    case 3:
      return MultiplyPanelBy<8, 3>(m, terms, a, lda, packed, is_followed, to);
    default:
      return MultiplyPanelBy<6, 4>(m, terms, a, lda, packed, is_followed, to);
  }
#else
  if (vectors == 1) return MultiplyPanelBy<6, 1>(m, terms, a, lda, packed, is_followed, to);
  return MultiplyPanelBy<6, 2>(m, terms, a, lda, packed, is_followed, to);
#endif
}

// The lanes of a row's last vector, and such a vector. Nothing beyond it is touched.
#if XPU_VECTOR_BYTES == 64
using LastLanes = __mmask16;
static inline LastLanes LastLanesOf(int tail) { return static_cast<LastLanes>((1u << tail) - 1); }
static inline VF LoadLast(const float* p, LastLanes lanes) { return (VF)_mm512_maskz_loadu_ps(lanes, p); }
#elif XPU_VECTOR_BYTES == 32
using LastLanes = VI;
static inline LastLanes LastLanesOf(int tail) { return LaneIds() < tail; }
static inline VF LoadLast(const float* p, LastLanes lanes) { return (VF)_mm256_maskload_ps(p, (__m256i)lanes); }
#else
using LastLanes = int;
static inline LastLanes LastLanesOf(int tail) { return tail; }
static inline VF LoadLast(const float* p, LastLanes lanes) {
  return lanes == kLanes ? Load(p) : LoadFirst(p, lanes, 0);
}
#endif

// Adds to each sum the product of number l of its terms.
template <int kRows, int kVectors>
static inline void AddTerm(int64_t l, const float* a, int64_t lda, const float* b, int64_t ldb, LastLanes lanes,
                           VF (&sum)[kRows][kVectors]) {
  VF y[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v + 1 < kVectors; ++v) y[v] = Load(b + l * ldb + v * kLanes);
  y[kVectors - 1] = LoadLast(b + l * ldb + (kVectors - 1) * kLanes, lanes);
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    const VF x = Splat<VF>(a[i * lda + l]);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sum[i][v] += x * y[v];
  }
}

template <int kRows, int kVectors>
static inline void AddSums(const VF (&part)[kRows][kVectors], VF (&sum)[kRows][kVectors]) {
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sum[i][v] += part[i][v];
  }
}

// kRows rows of c, kVectors vectors wide, of a `b` that is read as it lies. Sums of few rows are those of
// MultiplyFewRows to the last bit: kTerms terms are summed before they meet the sum of all. A sum waits for its last
// addition, so kChains such parts are summed at a time.
template <int kRows, int kVectors, int kChains>
static inline void UnpackedTile(int64_t k, const float* a, int64_t lda, const float* b, int64_t ldb,
                                const PanelOutput& to) {
  constexpr int64_t kTerms = 32;
  const LastLanes lanes = LastLanesOf(to.tail);
  VF sum[kRows][kVectors] = {};
  int64_t l = 0;
  for (; kChains > 1 && l + kChains * kTerms <= k; l += kChains * kTerms) {
    VF part[kChains][kRows][kVectors] = {};
    for (int64_t term = l; term < l + kTerms; ++term) {
#pragma GCC unroll 4
      for (int chain = 0; chain < kChains; ++chain) {
        AddTerm(term + chain * kTerms, a, lda, b, ldb, lanes, part[chain]);
      }
    }
#pragma GCC unroll 4
    for (int chain = 0; chain < kChains; ++chain) AddSums(part[chain], sum);
  }
  if constexpr (kRows <= 4) {
    while (l < k) {
      VF part[kRows][kVectors] = {};
      for (const int64_t end = k - l < kTerms ? k : l + kTerms; l < end; ++l) {
        AddTerm(l, a, lda, b, ldb, lanes, part);
      }
      AddSums(part, sum);
    }
  } else {
    for (; l < k; ++l) AddTerm(l, a, lda, b, ldb, lanes, sum);
  }
  StoreTile(sum, to);
}

template <int kRows, int kVectors>
static inline void UnpackedRows(int64_t m, int64_t k, const float* a, int64_t lda, const float* b, int64_t ldb,
                                const PanelOutput& to) {
  constexpr int kChains = kRows * kVectors >= 4 ? 1 : 4 / (kRows * kVectors);
  int64_t i = 0;
  for (; i + kRows <= m; i += kRows) {
    UnpackedTile<kRows, kVectors, kChains>(k, a + i * lda, lda, b, ldb, to.Down(i));
  }
  if constexpr (kRows > 1) {
    constexpr int kFewer = kRows > 8 ? 8 : kRows > 4 ? 4 : kRows / 2;
    if (i < m) UnpackedRows<kFewer, kVectors>(m - i, k, a + i * lda, lda, b, ldb, to.Down(i));
  }
}

// The same as MultiplyPanel of a `b` that is read as it lies.
static inline void MultiplyUnpacked(int64_t m, int64_t k, const float* a, int64_t lda, const float* b, int64_t ldb,
                                    int vectors, const PanelOutput& to) {
#if XPU_VECTOR_BYTES == 64
  switch (vectors) {
    case 1:
      return UnpackedRows<12, 1>(m, k, a, lda, b, ldb, to);
    case 2:
      return UnpackedRows<12, 2>(m, k, a, lda, b, ldb, to);
    case 3:
      return UnpackedRows<8, 3>(m, k, a, lda, b, ldb, to);
    default:
      return UnpackedRows<6, 4>(m, k, a, lda, b, ldb, to);
  }
#else
  if (vectors == 1) return UnpackedRows<6, 1>(m, k, a, lda, b, ldb, to);
  return UnpackedRows<6, 2>(m, k, a, lda, b, ldb, to);
#endif
}

}  // namespace xpu::cpu::XPU_ISA
#include "tensorflow_plugin/backends/cpu/simd/each_isa.h"
#endif  // XPU_ISA

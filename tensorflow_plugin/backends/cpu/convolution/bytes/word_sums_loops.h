// The loops of WordSums (byte_sums.h), once per instruction set. Their unit is a pair: two consecutive terms of a sum,
// integers of 16 bits, which fill a lane of 32 bits (MultiplyAddPairs).
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_BYTES_WORD_SUMS_LOOPS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_BYTES_WORD_SUMS_LOOPS_H_

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <cstdint>
#include <cstring>

#include "tensorflow_plugin/backends/cpu/simd/quads.h"

namespace xpu::cpu {

// Output channels whose sums one call of SumPairs adds up, and channels of a depthwise convolution at a time.
inline constexpr int kGroupColumns = 16, kDepthwiseChannels = 16;
// A padded value has so many elements more, which loops may read.
inline constexpr int64_t kWordsBehind = 64;

}  // namespace xpu::cpu

#define XPU_ISA_FILE "tensorflow_plugin/backends/cpu/convolution/bytes/word_sums_loops.h"
#define XPU_ISA baseline
#define XPU_VECTOR_BYTES 16
#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_BYTES_WORD_SUMS_LOOPS_H_

#if defined(XPU_ISA)
namespace xpu::cpu::XPU_ISA {

typedef Ints IntsInMemory __attribute__((aligned(1), may_alias));

inline constexpr int kSumVectors = 4 * kGroupColumns / XPU_VECTOR_BYTES;
// Rows whose sums fit into registers beside a group of the filter.
inline constexpr int kPairRows = XPU_VECTOR_BYTES == 64 ? 12 : XPU_VECTOR_BYTES == 32 ? 6 : 2;

static inline Ints LoadPairs(const void* p) { return *static_cast<const IntsInMemory*>(p); }

// n bytes less `zero_point`.
static void Widen(const uint8_t* from, int64_t n, int32_t zero_point, int16_t* to) {
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<int16_t>(from[i] - zero_point);
}

template <int kRows>
static inline void SumPairsOfRows(const int16_t* const* rows, int64_t runs, const int64_t* offsets, int64_t pairs,
                                  const int16_t* filter, int32_t* sums, int64_t ld) {
  Ints sum[kRows][kSumVectors] = {};
  for (int64_t r = 0; r < runs; ++r) {
    const int16_t* x[kRows];
#pragma GCC unroll 12
    for (int i = 0; i < kRows; ++i) x[i] = rows[i] + offsets[r];
    for (int64_t p = 0; p < pairs; ++p, filter += 2 * kGroupColumns) {
      Ints w[kSumVectors];
#pragma GCC unroll 4
      for (int v = 0; v < kSumVectors; ++v) w[v] = LoadPairs(filter + v * (XPU_VECTOR_BYTES / 2));
#pragma GCC unroll 12
      for (int i = 0; i < kRows; ++i) {
        int32_t pair;
        std::memcpy(&pair, x[i] + 2 * p, sizeof(pair));
        const Ints both = pair - Ints{};
#pragma GCC unroll 4
        for (int v = 0; v < kSumVectors; ++v) sum[i][v] += MultiplyAddPairs(both, w[v]);
      }
    }
  }
#pragma GCC unroll 12
  for (int i = 0; i < kRows; ++i) std::memcpy(sums + i * ld, sum[i], sizeof(sum[i]));
}

// The sums of a group of kGroupColumns output channels for `count` rows, in rows of `ld`. A row's terms are some runs
// of `pairs` pairs, which begin at these offsets from its address.
static void SumPairs(int64_t count, const int16_t* const* rows, int64_t runs, const int64_t* offsets, int64_t pairs,
                     const int16_t* filter, int32_t* sums, int64_t ld) {
  for (; count >= kPairRows; count -= kPairRows, rows += kPairRows, sums += kPairRows * ld) {
    SumPairsOfRows<kPairRows>(rows, runs, offsets, pairs, filter, sums, ld);
  }
  for (; count >= 2; count -= 2, rows += 2, sums += 2 * ld) {
    SumPairsOfRows<2>(rows, runs, offsets, pairs, filter, sums, ld);
  }
  if (count > 0) SumPairsOfRows<1>(rows, runs, offsets, pairs, filter, sums, ld);
}

// kDepthwiseChannels channels of kPixels pixels, which are `step` elements apart. `filter` has the two weights of each
// channel for each pair of taps, and `offsets` the places of the taps.
template <int kPixels>
static inline void SumTapsOfPixels(const int16_t* x, int64_t step, int64_t tap_pairs, const int64_t* offsets,
                                   const int16_t* filter, int64_t filter_step, int32_t* sums, int64_t ld) {
  constexpr int kParts = 64 / XPU_VECTOR_BYTES;  // vectors of sums
  Ints sum[kPixels][kParts] = {};
  for (int64_t t = 0; t < tap_pairs; ++t, filter += filter_step) {
    const int16_t *const a = x + offsets[2 * t], *const b = x + offsets[2 * t + 1];
#if XPU_VECTOR_BYTES == 32
    // Interleaving keeps lanes of 128 bits: channels 0 to 3 and 8 to 11 come first.
    const Ints w[2] = {
        (Ints)_mm256_permute2x128_si256((__m256i)LoadPairs(filter), (__m256i)LoadPairs(filter + 16), 0x20),
        (Ints)_mm256_permute2x128_si256((__m256i)LoadPairs(filter), (__m256i)LoadPairs(filter + 16), 0x31)};
#pragma GCC unroll 4
    for (int i = 0; i < kPixels; ++i) {
      const __m256i first = (__m256i)LoadPairs(a + i * step), second = (__m256i)LoadPairs(b + i * step);
      sum[i][0] += MultiplyAddPairs((Ints)_mm256_unpacklo_epi16(first, second), w[0]);
      sum[i][1] += MultiplyAddPairs((Ints)_mm256_unpackhi_epi16(first, second), w[1]);
    }
#else
    Ints w[kParts];
#pragma GCC unroll 4
    for (int v = 0; v < kParts; ++v) w[v] = LoadPairs(filter + v * (XPU_VECTOR_BYTES / 2));
#pragma GCC unroll 4
    for (int i = 0; i < kPixels; ++i) {
#pragma GCC unroll 4
      for (int v = 0; v < kParts; ++v) {
        // A lane has the first one's element below the second one's.
        typedef int16_t Half __attribute__((vector_size(XPU_VECTOR_BYTES / 2), aligned(1), may_alias));
        constexpr int kLanes = XPU_VECTOR_BYTES / 4;
        const Half first = *reinterpret_cast<const Half*>(a + i * step + v * kLanes);
        const Half second = *reinterpret_cast<const Half*>(b + i * step + v * kLanes);
        const Ints pairs = (__builtin_convertvector(first, Ints) & 0xffff) | __builtin_convertvector(second, Ints)
                                                                                 << 16;
        sum[i][v] += MultiplyAddPairs(pairs, w[v]);
      }
    }
#endif
  }
#pragma GCC unroll 4
  for (int i = 0; i < kPixels; ++i) {
#if XPU_VECTOR_BYTES == 32
    const __m256i low = (__m256i)sum[i][0], high = (__m256i)sum[i][1];
    sum[i][0] = (Ints)_mm256_permute2x128_si256(low, high, 0x20);
    sum[i][1] = (Ints)_mm256_permute2x128_si256(low, high, 0x31);
#endif
    std::memcpy(sums + i * ld, sum[i], sizeof(sum[i]));
  }
}

// The same for any number of pixels. Their sums are in rows of `ld`.
static void SumTaps(int64_t pixels, const int16_t* x, int64_t step, int64_t tap_pairs, const int64_t* offsets,
                    const int16_t* filter, int64_t filter_step, int32_t* sums, int64_t ld) {
  for (; pixels >= 4; pixels -= 4, x += 4 * step, sums += 4 * ld) {
    SumTapsOfPixels<4>(x, step, tap_pairs, offsets, filter, filter_step, sums, ld);
  }
  for (; pixels > 0; --pixels, x += step, sums += ld) {
    SumTapsOfPixels<1>(x, step, tap_pairs, offsets, filter, filter_step, sums, ld);
  }
}

}  // namespace xpu::cpu::XPU_ISA
#include "tensorflow_plugin/backends/cpu/simd/each_isa.h"
#endif  // XPU_ISA

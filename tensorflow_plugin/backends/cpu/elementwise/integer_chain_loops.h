// The loops of ApplyIntegerChain (integer_chain.h), once per instruction set.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_INTEGER_CHAIN_LOOPS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_INTEGER_CHAIN_LOOPS_H_

#include <cstdint>
#include <cstring>

#include "tensorflow_plugin/backends/cpu/elementwise/chain_epilogue_loops.h"
#include "tensorflow_plugin/backends/cpu/elementwise/integer_chain.h"
#include "tensorflow_plugin/backends/cpu/simd/vector_math.h"

#define XPU_ISA_FILE "tensorflow_plugin/backends/cpu/elementwise/integer_chain_loops.h"
#define XPU_ISA baseline
#define XPU_VECTOR_BYTES 16
#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_INTEGER_CHAIN_LOOPS_H_

#if defined(XPU_ISA)
namespace xpu::cpu::XPU_ISA {

// The first n lanes; the others are 0.
static inline VI LoadSums(const int32_t* p, int n) {
#if XPU_VECTOR_BYTES == 64
  return (VI)_mm512_maskz_loadu_epi32(static_cast<__mmask16>(n >= kLanes ? 0xffffu : (1u << n) - 1), p);
#else
  VI v{};
  for (int i = 0; i < kLanes && i < n; ++i) v[i] = p[i];
  return v;
#endif
}

static inline VI WholeBelow(VF x) {
#if XPU_VECTOR_BYTES == 64
  return (VI)_mm512_cvt_roundps_epi32((__m512)x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
#elif XPU_VECTOR_BYTES == 32
  return (VI)_mm256_cvttps_epi32(_mm256_floor_ps((__m256)x));
#else
  VI whole{};
  for (int i = 0; i < kLanes; ++i) whole[i] = static_cast<int32_t>(__builtin_floorf(x[i]));
  return whole;
#endif
}

// The lowest bytes of integers from 0 to 255.
static inline void StoreBytes(uint8_t* to, int n, VI whole) {
#if XPU_VECTOR_BYTES == 64
  if (n >= kLanes) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_cvtepi32_epi8((__m512i)whole));
  } else {
    _mm512_mask_cvtepi32_storeu_epi8(to, static_cast<__mmask16>((1u << n) - 1), (__m512i)whole);
  }
#elif XPU_VECTOR_BYTES == 32
  const __m256i lowest = _mm256_shuffle_epi8(
      (__m256i)whole, _mm256_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,  //
                                       0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1));
  const __m128i bytes = _mm_unpacklo_epi32(_mm256_castsi256_si128(lowest), _mm256_extracti128_si256(lowest, 1));
  const int64_t all = _mm_cvtsi128_si64(bytes);
  std::memcpy(to, &all, static_cast<size_t>(n < kLanes ? n : kLanes));
#else
  for (int i = 0; i < (n < kLanes ? n : kLanes); ++i) to[i] = static_cast<uint8_t>(whole[i]);
#endif
}

#if XPU_VECTOR_BYTES == 64
// The bytes of four vectors, with a shuffle for each of them.
static inline void StoreBytesOfFour(uint8_t* to, const VI* whole) {
  const __m512i low = _mm512_packus_epi32((__m512i)whole[0], (__m512i)whole[1]);
  const __m512i high = _mm512_packus_epi32((__m512i)whole[2], (__m512i)whole[3]);
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  _mm512_storeu_si512(to, _mm512_permutexvar_epi32(order, _mm512_packus_epi16(low, high)));
}
#endif

// A quotient, corrected by what is left of x.
static inline VF Corrected(VF quotient, VF x, VF factor, VF inverse) {
#if XPU_VECTOR_BYTES == 64
  const __m512 left = _mm512_fnmadd_ps((__m512)quotient, (__m512)factor, (__m512)x);
  return (VF)_mm512_fmadd_ps(left, (__m512)inverse, (__m512)quotient);
#elif XPU_VECTOR_BYTES == 32
  const __m256 left = _mm256_fnmadd_ps((__m256)quotient, (__m256)factor, (__m256)x);
  return (VF)_mm256_fmadd_ps(left, (__m256)inverse, (__m256)quotient);
#else
  (void)quotient, (void)inverse;
  return x / factor;
#endif
}

template <int kRows, int kVectors>
static inline __attribute__((always_inline)) void StoreFloats(const IntegerChain& chain, const VF (&x)[kRows][kVectors],
                                                              int64_t ld, int64_t offset, int tail) {
  XPU_EACH(StoreUpTo(chain.floats + offset + i * ld + v * kLanes, here, x[i][v]))
}

// kRows rows of kVectors vectors of sums. Their elements are at `offset` + i * ld in operands and results, and begin
// with column `col`. kWhole: the last vector has all lanes. `shift` is added to the sums, by column; none if it is
// null.
template <int kRows, int kVectors, bool kWhole>
static inline void ApplyToSums(const IntegerChain& chain, const int32_t* sums, int64_t ld_sums, const int32_t* shift,
                               int64_t ld, int64_t offset, int64_t col, int lanes_of_last) {
  const int tail = kWhole ? int{kLanes} : lanes_of_last;
  VF x[kRows][kVectors];
  if (chain.begins_with_floats) {
    XPU_EACH(x[i][v] = LoadUpTo(reinterpret_cast<const float*>(sums) + i * ld_sums + v * kLanes, here))
  } else if (shift == nullptr) {
    XPU_EACH(x[i][v] = __builtin_convertvector(LoadSums(sums + i * ld_sums + v * kLanes, here), VF))
  } else {
    XPU_EACH(
        x[i][v] = __builtin_convertvector(
            (VI)((VU)LoadSums(sums + i * ld_sums + v * kLanes, here) + (VU)LoadSums(shift + v * kLanes, here)), VF))
  }
  for (int s = 0; s < chain.num_steps; ++s) {
    if (s == chain.store_before) StoreFloats(chain, x, ld, offset, tail);
    ApplyArithmetic(chain.steps[s], x, ld, offset, col, tail);
  }
  if (chain.store_before == chain.num_steps) StoreFloats(chain, x, ld, offset, tail);
  if (chain.bytes == nullptr) return;
  const VF least = Splat<VF>(chain.least), most = Splat<VF>(chain.most), factor = Splat<VF>(chain.factor);
  XPU_EACH(x[i][v] = AtLeast(AtMost(x[i][v], most), least))
  if (chain.low != 0) {
    const VF low = Splat<VF>(chain.low);
    XPU_EACH(x[i][v] = x[i][v] - low)
  }
  const VF inverse = Splat<VF>(chain.inverse);
  switch (chain.quotient) {
    case IntegerChain::Quotient::kProduct:
      XPU_EACH(x[i][v] = Uncontracted(x[i][v] * factor))
      break;
    case IntegerChain::Quotient::kDivided:
      XPU_EACH(x[i][v] = x[i][v] / factor)
      break;
    case IntegerChain::Quotient::kCorrectedOnce:
      XPU_EACH(x[i][v] = Corrected(Uncontracted(x[i][v] * inverse), x[i][v], factor, inverse))
      break;
    case IntegerChain::Quotient::kCorrectedTwice:
      XPU_EACH(const VF once = Corrected(Uncontracted(x[i][v] * inverse), x[i][v], factor, inverse);
               x[i][v] = Corrected(once, x[i][v], factor, inverse))
      break;
  }
  if (chain.zero != 0) {
    const VF zero = Splat<VF>(chain.zero);
    XPU_EACH(x[i][v] = Uncontracted(x[i][v] - zero))
  }
  VI whole[kRows][kVectors];
  XPU_EACH(whole[i][v] = WholeBelow(x[i][v] + 0.5f))
  if (chain.shift != 0) {
    XPU_EACH(whole[i][v] = whole[i][v] + chain.shift)
  }
  uint8_t* const bytes = chain.bytes + offset;
#if XPU_VECTOR_BYTES == 64
  if constexpr (kVectors == 4 && kWhole) {
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) StoreBytesOfFour(bytes + i * ld, whole[i]);
    return;
  }
#endif
  XPU_EACH(StoreBytes(bytes + i * ld + v * kLanes, here, whole[i][v]))
}

template <int kVectors, bool kWhole>
static inline void ApplyToTile(const IntegerChain& chain, int64_t rows, const int32_t* sums, int64_t ld_sums,
                               const int32_t* shift, int64_t ld, int64_t offset, int64_t col, int tail) {
  // With fewer tiles in flight the processor would wait for results. More do not fit into registers.
  constexpr int kRows = XPU_VECTOR_BYTES != 64 ? 6 / kVectors : kVectors == 4 ? 4 : 8;
  int64_t i = 0;
#define XPU_ROWS(count)                                                                                              \
  for (; i + (count) <= rows; i += (count)) {                                                                        \
    ApplyToSums<count, kVectors, kWhole>(chain, sums + i * ld_sums, ld_sums, shift, ld, offset + i * ld, col, tail); \
  }
  XPU_ROWS(kRows)
  XPU_ROWS((kRows + 1) / 2)
  XPU_ROWS(1)
#undef XPU_ROWS
}

static inline const int32_t* ShiftAt(const int32_t* shift, int64_t col) {
  return shift == nullptr ? nullptr : shift + col;
}

static inline void ApplyToBlock(const IntegerChain& chain, const int32_t* sums, int64_t ld_sums, const int32_t* shift,
                                int64_t first, int64_t rows, int64_t col, int64_t cols, int64_t ld) {
  constexpr int kWide = XPU_VECTOR_BYTES == 64 ? 4 : 2;
  int64_t c = 0;
  for (; c + kWide * kLanes <= cols; c += kWide * kLanes) {
    ApplyToTile<kWide, true>(chain, rows, sums + c, ld_sums, ShiftAt(shift, c), ld, first * ld + col + c, col + c,
                             kLanes);
  }
  if (XPU_VECTOR_BYTES == 64 && c + 2 * kLanes <= cols) {
    ApplyToTile<2, true>(chain, rows, sums + c, ld_sums, ShiftAt(shift, c), ld, first * ld + col + c, col + c, kLanes);
    c += 2 * kLanes;
  }
  for (; c + kLanes <= cols; c += kLanes) {
    ApplyToTile<1, true>(chain, rows, sums + c, ld_sums, ShiftAt(shift, c), ld, first * ld + col + c, col + c, kLanes);
  }
  if (c < cols) {
    const int tail = static_cast<int>(cols - c);
    ApplyToTile<1, false>(chain, rows, sums + c, ld_sums, ShiftAt(shift, c), ld, first * ld + col + c, col + c, tail);
  }
}

}  // namespace xpu::cpu::XPU_ISA
#include "tensorflow_plugin/backends/cpu/simd/each_isa.h"
#endif  // XPU_ISA

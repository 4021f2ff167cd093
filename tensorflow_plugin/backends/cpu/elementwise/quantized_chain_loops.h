// The loops of ApplyQuantizedChain (quantized_chain.h), once per instruction set.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_QUANTIZED_CHAIN_LOOPS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_QUANTIZED_CHAIN_LOOPS_H_

#include <cstdint>
#include <cstring>

#include "tensorflow_plugin/backends/cpu/elementwise/chain_epilogue_loops.h"
#include "tensorflow_plugin/backends/cpu/elementwise/quantized_chain.h"
#include "tensorflow_plugin/backends/cpu/simd/vector_math.h"

#define XPU_ISA_FILE "tensorflow_plugin/backends/cpu/elementwise/quantized_chain_loops.h"
#define XPU_ISA baseline
#define XPU_VECTOR_BYTES 16
#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_QUANTIZED_CHAIN_LOOPS_H_

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

// Where the results of a tile lie: from row to row, the first one's element, and its column. `tail` is how many lanes
// of the last vector there are.
struct ResultTile {
  int64_t ld, offset, col;
  int tail;

  ResultTile Down(int64_t rows) const { return {ld, offset + rows * ld, col, tail}; }
};

template <int kRows, int kVectors>
static inline __attribute__((always_inline)) void StoreFloats(const QuantizedChain& chain,
                                                              const VF (&x)[kRows][kVectors], const ResultTile& to) {
  const int tail = to.tail;
  XPU_EACH(StoreUpTo(chain.floats + to.offset + i * to.ld + v * kLanes, here, x[i][v]))
}

// Applies the chain to kRows rows of kVectors vectors that are in registers, and stores the results. kWhole: the last
// vector has all lanes.
template <int kRows, int kVectors, bool kWhole>
static inline __attribute__((always_inline)) void FinishTile(const QuantizedChain& chain, VF (&x)[kRows][kVectors],
                                                             const ResultTile& to) {
  const int tail = kWhole ? int{kLanes} : to.tail;
  for (int s = 0; s < chain.num_steps; ++s) {
    if (s == chain.store_before) StoreFloats(chain, x, to);
    ApplyArithmetic(chain.steps[s], x, to.ld, to.offset, to.col, tail);
  }
  if (chain.store_before == chain.num_steps) StoreFloats(chain, x, to);
  if (chain.bytes == nullptr) return;
  const VF least = Splat<VF>(chain.least), most = Splat<VF>(chain.most), factor = Splat<VF>(chain.factor);
  XPU_EACH(x[i][v] = AtLeast(AtMost(x[i][v], most), least))
  if (chain.low != 0) {
    const VF low = Splat<VF>(chain.low);
    XPU_EACH(x[i][v] = x[i][v] - low)
  }
  const VF inverse = Splat<VF>(chain.inverse);
  switch (chain.quotient) {
    case QuantizedChain::Quotient::kProduct:
      XPU_EACH(x[i][v] = Uncontracted(x[i][v] * factor))
      break;
    case QuantizedChain::Quotient::kDivided:
      XPU_EACH(x[i][v] = x[i][v] / factor)
      break;
    case QuantizedChain::Quotient::kCorrectedOnce:
      XPU_EACH(x[i][v] = Corrected(Uncontracted(x[i][v] * inverse), x[i][v], factor, inverse))
      break;
    case QuantizedChain::Quotient::kCorrectedTwice:
      XPU_EACH(const VF once = Corrected(Uncontracted(x[i][v] * inverse), x[i][v], factor, inverse);
               x[i][v] = Corrected(once, x[i][v], factor, inverse))
      break;
  }
  if (chain.zero_point != 0) {
    const VF zero_point = Splat<VF>(chain.zero_point);
    XPU_EACH(x[i][v] = Uncontracted(x[i][v] - zero_point))
  }
  VI whole[kRows][kVectors];
  XPU_EACH(whole[i][v] = WholeBelow(x[i][v] + 0.5f))
  if (chain.shift != 0) {
    XPU_EACH(whole[i][v] = whole[i][v] + chain.shift)
  }
  uint8_t* const bytes = chain.bytes + to.offset;
#if XPU_VECTOR_BYTES == 64
  if constexpr (kVectors == 4 && kWhole) {
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) StoreBytesOfFour(bytes + i * to.ld, whole[i]);
    return;
  }
#endif
  XPU_EACH(StoreBytes(bytes + i * to.ld + v * kLanes, here, whole[i][v]))
}

template <int kRows, int kVectors>
static inline void LoadTile(const FloatsInRows& from, int tail, VF (&x)[kRows][kVectors]) {
  XPU_EACH(x[i][v] = LoadUpTo(from.floats + i * from.ld + v * kLanes, here))
}

template <int kRows, int kVectors>
static inline void LoadTile(const SumsInRows& from, int tail, VF (&x)[kRows][kVectors]) {
  if (from.compensation == nullptr) {
    XPU_EACH(x[i][v] = __builtin_convertvector(LoadSums(from.sums + i * from.ld + v * kLanes, here), VF))
  } else {
    XPU_EACH(x[i][v] = __builtin_convertvector((VI)((VU)LoadSums(from.sums + i * from.ld + v * kLanes, here) +
                                                    (VU)LoadSums(from.compensation + v * kLanes, here)),
                                               VF))
  }
}

template <int kVectors, bool kWhole, typename Values>
static inline void ApplyToTiles(const QuantizedChain& chain, const Values& from, int64_t rows, const ResultTile& to) {
  // With fewer tiles in flight the processor would wait for results. More do not fit into registers.
  constexpr int kRows = XPU_VECTOR_BYTES != 64 ? 6 / kVectors : kVectors == 4 ? 4 : 8;
  int64_t row = 0;
#define XPU_ROWS(count)                                           \
  for (; row + (count) <= rows; row += (count)) {                 \
    VF x[count][kVectors];                                        \
    LoadTile(from.At(row, 0), kWhole ? int{kLanes} : to.tail, x); \
    FinishTile<count, kVectors, kWhole>(chain, x, to.Down(row));  \
  }
  XPU_ROWS(kRows)
  XPU_ROWS((kRows + 1) / 2)
  XPU_ROWS(1)
#undef XPU_ROWS
}

static inline ResultTile TileOf(const ResultBlock& block, int64_t col, int tail) {
  return {block.ld, block.row * block.ld + block.col + col, block.col + col, tail};
}

template <typename Values>
static inline void ApplyToBlock(const QuantizedChain& chain, const Values& from, const ResultBlock& to) {
  constexpr int kWide = XPU_VECTOR_BYTES == 64 ? 4 : 2;
  int64_t c = 0;
  for (; c + kWide * kLanes <= to.cols; c += kWide * kLanes) {
    ApplyToTiles<kWide, true>(chain, from.At(0, c), to.rows, TileOf(to, c, kLanes));
  }
  if (XPU_VECTOR_BYTES == 64 && c + 2 * kLanes <= to.cols) {
    ApplyToTiles<2, true>(chain, from.At(0, c), to.rows, TileOf(to, c, kLanes));
    c += 2 * kLanes;
  }
  for (; c + kLanes <= to.cols; c += kLanes)
    ApplyToTiles<1, true>(chain, from.At(0, c), to.rows, TileOf(to, c, kLanes));
  if (c < to.cols) ApplyToTiles<1, false>(chain, from.At(0, c), to.rows, TileOf(to, c, static_cast<int>(to.cols - c)));
}

}  // namespace xpu::cpu::XPU_ISA
#include "tensorflow_plugin/backends/cpu/simd/each_isa.h"
#endif  // XPU_ISA

// Vectors of quads, for the instruction set being compiled for. A quad is four bytes that fill a lane of 32 bits. They
// are consecutive terms of a sum.
//
// Four rows of bytes become four vectors of quads, by interleaving bytes within lanes of 128 bits. So vector v has in
// its lane L the columns 16 L + 4 v to 16 L + 4 v + 3.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_SIMD_QUADS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_SIMD_QUADS_H_

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <cstdint>
#include <cstring>

#define XPU_ISA_WITH_VNNI
#define XPU_ISA_FILE "tensorflow_plugin/backends/cpu/simd/quads.h"
#define XPU_ISA baseline
#define XPU_VECTOR_BYTES 16
#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_SIMD_QUADS_H_

#if defined(XPU_ISA)
namespace xpu::cpu::XPU_ISA {

typedef uint8_t Bytes __attribute__((vector_size(XPU_VECTOR_BYTES)));
typedef int32_t Ints __attribute__((vector_size(XPU_VECTOR_BYTES)));
typedef Bytes BytesInMemory __attribute__((aligned(1), may_alias));

static inline Bytes LoadBytes(const uint8_t* p) { return *reinterpret_cast<const BytesInMemory*>(p); }

// x and y, interleaved by elements of so many bits, within lanes of 128 bits: the lower halves or the higher ones.
static inline Bytes Low8(Bytes x, Bytes y) {
#if !defined(__x86_64__)
  return __builtin_shufflevector(x, y, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
#elif XPU_VECTOR_BYTES == 64
  return (Bytes)_mm512_unpacklo_epi8((__m512i)x, (__m512i)y);
#elif XPU_VECTOR_BYTES == 32
  return (Bytes)_mm256_unpacklo_epi8((__m256i)x, (__m256i)y);
#else
  return (Bytes)_mm_unpacklo_epi8((__m128i)x, (__m128i)y);
#endif
}
static inline Bytes High8(Bytes x, Bytes y) {
#if !defined(__x86_64__)
  return __builtin_shufflevector(x, y, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
#elif XPU_VECTOR_BYTES == 64
  return (Bytes)_mm512_unpackhi_epi8((__m512i)x, (__m512i)y);
#elif XPU_VECTOR_BYTES == 32
  return (Bytes)_mm256_unpackhi_epi8((__m256i)x, (__m256i)y);
#else
  return (Bytes)_mm_unpackhi_epi8((__m128i)x, (__m128i)y);
#endif
}
static inline Bytes Low16(Bytes x, Bytes y) {
#if !defined(__x86_64__)
  return __builtin_shufflevector(x, y, 0, 1, 16, 17, 2, 3, 18, 19, 4, 5, 20, 21, 6, 7, 22, 23);
#elif XPU_VECTOR_BYTES == 64
  return (Bytes)_mm512_unpacklo_epi16((__m512i)x, (__m512i)y);
#elif XPU_VECTOR_BYTES == 32
  return (Bytes)_mm256_unpacklo_epi16((__m256i)x, (__m256i)y);
#else
  return (Bytes)_mm_unpacklo_epi16((__m128i)x, (__m128i)y);
#endif
}
static inline Bytes High16(Bytes x, Bytes y) {
#if !defined(__x86_64__)
  return __builtin_shufflevector(x, y, 8, 9, 24, 25, 10, 11, 26, 27, 12, 13, 28, 29, 14, 15, 30, 31);
#elif XPU_VECTOR_BYTES == 64
  return (Bytes)_mm512_unpackhi_epi16((__m512i)x, (__m512i)y);
#elif XPU_VECTOR_BYTES == 32
  return (Bytes)_mm256_unpackhi_epi16((__m256i)x, (__m256i)y);
#else
  return (Bytes)_mm_unpackhi_epi16((__m128i)x, (__m128i)y);
#endif
}

// The four vectors of quads of four rows, whose highest bits are flipped where `flip` has them.
static inline void Interleave(const uint8_t* const rows[4], Bytes flip, Ints out[4]) {
  Bytes r[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) r[i] = LoadBytes(rows[i]) ^ flip;
  const Bytes low01 = Low8(r[0], r[1]), high01 = High8(r[0], r[1]);
  const Bytes low23 = Low8(r[2], r[3]), high23 = High8(r[2], r[3]);
  out[0] = (Ints)Low16(low01, low23);
  out[1] = (Ints)High16(low01, low23);
  out[2] = (Ints)Low16(high01, high23);
  out[3] = (Ints)High16(high01, high23);
}

// Each lane of x and of y is a pair of integers of 16 bits. The sums of their two products, by lane.
static inline Ints MultiplyAddPairs(Ints x, Ints y) {
#if !defined(__x86_64__)
  return (x << 16 >> 16) * (y << 16 >> 16) + (x >> 16) * (y >> 16);
#elif XPU_VECTOR_BYTES == 64
  return (Ints)_mm512_madd_epi16((__m512i)x, (__m512i)y);
#elif XPU_VECTOR_BYTES == 32
  return (Ints)_mm256_madd_epi16((__m256i)x, (__m256i)y);
#else
  return (Ints)_mm_madd_epi16((__m128i)x, (__m128i)y);
#endif
}

// The first n bytes at an address, and zeros.
static inline Bytes LoadFirstBytes(const uint8_t* p, int64_t n) {
#if XPU_VECTOR_BYTES == 64
  return (Bytes)_mm512_maskz_loadu_epi8((__mmask64)((uint64_t{1} << n) - 1), p);
#else
  Bytes first{};
  std::memcpy(&first, p, static_cast<size_t>(n));
  return first;
#endif
}

static inline Ints Low32(Ints x, Ints y) {
#if XPU_VECTOR_BYTES == 64
  return __builtin_shufflevector(x, y, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29);
#elif XPU_VECTOR_BYTES == 32
  return __builtin_shufflevector(x, y, 0, 8, 1, 9, 4, 12, 5, 13);
#else
  return __builtin_shufflevector(x, y, 0, 4, 1, 5);
#endif
}
static inline Ints High32(Ints x, Ints y) {
#if XPU_VECTOR_BYTES == 64
  return __builtin_shufflevector(x, y, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
#elif XPU_VECTOR_BYTES == 32
  return __builtin_shufflevector(x, y, 2, 10, 3, 11, 6, 14, 7, 15);
#else
  return __builtin_shufflevector(x, y, 2, 6, 3, 7);
#endif
}
static inline Ints Low64(Ints x, Ints y) {
#if XPU_VECTOR_BYTES == 64
  return __builtin_shufflevector(x, y, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
#elif XPU_VECTOR_BYTES == 32
  return __builtin_shufflevector(x, y, 0, 1, 8, 9, 4, 5, 12, 13);
#else
  return __builtin_shufflevector(x, y, 0, 1, 4, 5);
#endif
}
static inline Ints High64(Ints x, Ints y) {
#if XPU_VECTOR_BYTES == 64
  return __builtin_shufflevector(x, y, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
#elif XPU_VECTOR_BYTES == 32
  return __builtin_shufflevector(x, y, 2, 3, 10, 11, 6, 7, 14, 15);
#else
  return __builtin_shufflevector(x, y, 2, 3, 6, 7);
#endif
}

// The sums of the lanes of four vectors.
typedef int32_t Sums4 __attribute__((vector_size(16)));
static inline Sums4 SumsOfLanes(Ints x, Ints y, Ints z, Ints w) {
  const Ints xy = Low32(x, y) + High32(x, y), zw = Low32(z, w) + High32(z, w);
  const Ints all = Low64(xy, zw) + High64(xy, zw);
  Sums4 sums = __builtin_shufflevector(all, all, 0, 1, 2, 3);
#if XPU_VECTOR_BYTES >= 32
  sums += __builtin_shufflevector(all, all, 4, 5, 6, 7);
#endif
#if XPU_VECTOR_BYTES == 64
  sums += __builtin_shufflevector(all, all, 8, 9, 10, 11) + __builtin_shufflevector(all, all, 12, 13, 14, 15);
#endif
  return sums;
}
}  // namespace xpu::cpu::XPU_ISA
#include "tensorflow_plugin/backends/cpu/simd/each_isa.h"
#endif  // XPU_ISA

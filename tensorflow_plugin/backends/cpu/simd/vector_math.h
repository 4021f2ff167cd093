// Vectors of the width of the instruction set being compiled for, and float functions on them.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_SIMD_VECTOR_MATH_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_SIMD_VECTOR_MATH_H_

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <cstdint>
#include <cstring>

#include "tensorflow_plugin/primitives/types.h"

#define XPU_ISA_WITH_VNNI
#define XPU_ISA_FILE "tensorflow_plugin/backends/cpu/simd/vector_math.h"
#define XPU_ISA baseline
#define XPU_VECTOR_BYTES 16
#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_SIMD_VECTOR_MATH_H_

#if defined(XPU_ISA)
namespace xpu::cpu::XPU_ISA {

inline constexpr int kLanes = XPU_VECTOR_BYTES / 4;

template <typename T>
struct VectorOf {
  typedef T type __attribute__((vector_size(XPU_VECTOR_BYTES)));
  // The same in memory: of any alignment, and an alias of its elements.
  typedef T memory __attribute__((vector_size(XPU_VECTOR_BYTES), aligned(alignof(T)), may_alias));
};
using VF = VectorOf<float>::type;
using VI = VectorOf<int32_t>::type;
using VU = VectorOf<uint32_t>::type;

template <typename V, typename T>
static inline V Splat(T v) {
  return v - V{};
}

// The same value. The compiler does not make one operation of the one that it comes from and the next.
static inline VF Uncontracted(VF x) {
#if defined(__x86_64__)
  asm("" : "+v"(x));
#else
  asm("" : "+w"(x));
#endif
  return x;
}

static inline VF Select(VI mask, VF a, VF b) { return mask ? a : b; }
static inline VI LaneIds() {
  VI v;
  for (int i = 0; i < kLanes; ++i) v[i] = i;
  return v;
}
// NaN in b stays out: b where a < b, else a.
template <typename V>
static inline V Max(V a, V b) {
  return a < b ? b : a;
}

typedef float V4 __attribute__((vector_size(16)));
// The lanes joined by `op`, as far as four numbers.
template <typename Op>
static inline V4 Fold(VF v, Op op) {
#if XPU_VECTOR_BYTES == 64
  const auto half = op(__builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7),
                       __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15));
  return op(__builtin_shufflevector(half, half, 0, 1, 2, 3), __builtin_shufflevector(half, half, 4, 5, 6, 7));
#elif XPU_VECTOR_BYTES == 32
  return op(__builtin_shufflevector(v, v, 0, 1, 2, 3), __builtin_shufflevector(v, v, 4, 5, 6, 7));
#else
  return v;
#endif
}
static inline V4 Fold(VF v) {
  return Fold(v, [](auto a, auto b) { return a + b; });
}
// All lanes joined by `op`.
template <typename Op>
static inline float FoldToOne(VF v, Op op) {
  V4 f = Fold(v, op);
  f = op(f, __builtin_shufflevector(f, f, 2, 3, 0, 1));
  return op(f, __builtin_shufflevector(f, f, 1, 0, 3, 2))[0];
}
static inline float Sum(VF v) {
  return FoldToOne(v, [](auto a, auto b) { return a + b; });
}
static inline float Maximum(VF v) {
  return FoldToOne(v, [](auto a, auto b) { return Max(a, b); });
}

// The sums of the lanes of four vectors.
static inline V4 Sums(VF v0, VF v1, VF v2, VF v3) {
  const V4 a = Fold(v0), b = Fold(v1), c = Fold(v2), d = Fold(v3);
  const V4 ab = __builtin_shufflevector(a, b, 0, 1, 4, 5) + __builtin_shufflevector(a, b, 2, 3, 6, 7);
  const V4 cd = __builtin_shufflevector(c, d, 0, 1, 4, 5) + __builtin_shufflevector(c, d, 2, 3, 6, 7);
  return __builtin_shufflevector(ab, cd, 0, 2, 4, 6) + __builtin_shufflevector(ab, cd, 1, 3, 5, 7);
}

// A vector of floats from memory of any alignment, and back with rounding to nearest even.
static inline VF Load(const float* p) { return *reinterpret_cast<const VectorOf<float>::memory*>(p); }
static inline void Store(float* p, VF v) { *reinterpret_cast<VectorOf<float>::memory*>(p) = v; }

typedef uint16_t VH __attribute__((vector_size(XPU_VECTOR_BYTES / 2)));

static inline VF Load(const BFloat16* p) {
  VH h;
  std::memcpy(&h, p, sizeof(h));
  const VU bits = __builtin_convertvector(h, VU) << 16;
  VF f;
  std::memcpy(&f, &bits, sizeof(f));
  return f;
}
static inline void Store(BFloat16* p, VF v) {
  VU u;
  std::memcpy(&u, &v, sizeof(u));
  const VU rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  const VU quiet = (u >> 16) | 0x40u;
  const VU bits = (u & 0x7fffffffu) > 0x7f800000u ? quiet : rounded;
  const VH h = __builtin_convertvector(bits, VH);
  std::memcpy(p, &h, sizeof(h));
}

static inline VF Load(const Half* p) {
#if XPU_VECTOR_BYTES == 64
  return (VF)_mm512_maskz_cvtph_ps(0xffff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
#elif XPU_VECTOR_BYTES == 32
  return (VF)_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
#else
  VF v;
  for (int i = 0; i < kLanes; ++i) v[i] = static_cast<float>(p[i]);
  return v;
#endif
}
static inline void Store(Half* p, VF v) {
#if XPU_VECTOR_BYTES == 64
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      _mm512_maskz_cvtps_ph(0xffff, (__m512)v, _MM_FROUND_TO_NEAREST_INT));
#elif XPU_VECTOR_BYTES == 32
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph((__m256)v, _MM_FROUND_TO_NEAREST_INT));
#else
  for (int i = 0; i < kLanes; ++i) p[i] = Half(v[i]);
#endif
}

// kLanes bytes. The compiler would take the vector apart to convert it.
static inline VI LoadUnsigned(const uint8_t* p) {
#if XPU_VECTOR_BYTES == 64
  return (VI)_mm512_maskz_cvtepu8_epi32(0xffff, _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
#elif XPU_VECTOR_BYTES == 32
  return (VI)_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
#else
  VI v;
  for (int i = 0; i < kLanes; ++i) v[i] = p[i];
  return v;
#endif
}
static inline VF LoadSigned(const int8_t* p) {
  return __builtin_convertvector(LoadUnsigned(reinterpret_cast<const uint8_t*>(p)) << 24 >> 24, VF);
}

// The lanes of x and y in turns: the first half of them, or the second.
static inline VF LowerInTurns(VF x, VF y) {
#if XPU_VECTOR_BYTES == 64
  return __builtin_shufflevector(x, y, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
#elif XPU_VECTOR_BYTES == 32
  return __builtin_shufflevector(x, y, 0, 8, 1, 9, 2, 10, 3, 11);
#else
  return __builtin_shufflevector(x, y, 0, 4, 1, 5);
#endif
}
static inline VF UpperInTurns(VF x, VF y) {
#if XPU_VECTOR_BYTES == 64
  return __builtin_shufflevector(x, y, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
#elif XPU_VECTOR_BYTES == 32
  return __builtin_shufflevector(x, y, 4, 12, 5, 13, 6, 14, 7, 15);
#else
  return __builtin_shufflevector(x, y, 2, 6, 3, 7);
#endif
}
static inline void StoreInterleaved(float* p, VF x, VF y) {
  Store(p, LowerInTurns(x, y));
  Store(p + kLanes, UpperInTurns(x, y));
}

// Every second lane of x and then of y, from the first one on or from the second one on.
template <typename V>
static inline V EvenLanes(V x, V y) {
#if XPU_VECTOR_BYTES == 64
  return __builtin_shufflevector(x, y, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
#elif XPU_VECTOR_BYTES == 32
  return __builtin_shufflevector(x, y, 0, 2, 4, 6, 8, 10, 12, 14);
#else
  return __builtin_shufflevector(x, y, 0, 2, 4, 6);
#endif
}
template <typename V>
static inline V OddLanes(V x, V y) {
#if XPU_VECTOR_BYTES == 64
  return __builtin_shufflevector(x, y, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
#elif XPU_VECTOR_BYTES == 32
  return __builtin_shufflevector(x, y, 1, 3, 5, 7, 9, 11, 13, 15);
#else
  return __builtin_shufflevector(x, y, 1, 3, 5, 7);
#endif
}

// The first n lanes (0 < n < kLanes); the others are `fill`, and nothing beyond them is touched.
static inline VF LoadFirst(const float* p, int n, float fill) {
#if XPU_VECTOR_BYTES == 64
  return (VF)_mm512_mask_loadu_ps(_mm512_set1_ps(fill), static_cast<__mmask16>((1u << n) - 1), p);
#else
  VF v = Splat<VF>(fill);
  for (int i = 0; i < n; ++i) v[i] = p[i];
  return v;
#endif
}
template <typename T>
static inline VF LoadFirst(const T* p, int n, float fill) {
  float v[kLanes];
  for (int i = 0; i < kLanes; ++i) v[i] = fill;
  for (int i = 0; i < n; ++i) v[i] = static_cast<float>(p[i]);
  return Load(v);
}
static inline void StoreFirst(float* p, int n, VF v) {
#if XPU_VECTOR_BYTES == 64
  _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << n) - 1), (__m512)v);
#else
  for (int i = 0; i < n; ++i) p[i] = v[i];
#endif
}
template <typename T>
static inline void StoreFirst(T* p, int n, VF v) {
  for (int i = 0; i < n; ++i) p[i] = static_cast<T>(static_cast<float>(v[i]));
}

// The first n elements from an address on, a vector at most.
template <typename T>
static inline VF LoadUpTo(const T* x, int64_t n) {
  return n >= kLanes ? Load(x) : LoadFirst(x, static_cast<int>(n), 0);
}
template <typename T>
static inline void StoreUpTo(T* y, int64_t n, VF v) {
  n >= kLanes ? Store(y, v) : StoreFirst(y, static_cast<int>(n), v);
}

// exp(r) for |r| <= ln 2 / 2.
static inline VF ExpOfReduced(VF r) {
  VF p = Splat<VF>(1.0f / 5040);
  p = p * r + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  return p * r + 1.0f;
}

// `x` where it is not on the other side of `bound`, which is no NaN. A NaN in `x` stays.
static inline VF AtLeast(VF x, VF bound) {
#if XPU_VECTOR_BYTES == 64
  return (VF)_mm512_maskz_max_ps(0xffff, (__m512)bound, (__m512)x);
#elif XPU_VECTOR_BYTES == 32
  return (VF)_mm256_max_ps((__m256)bound, (__m256)x);
#else
  return x < bound ? bound : x;
#endif
}
static inline VF AtMost(VF x, VF bound) {
#if XPU_VECTOR_BYTES == 64
  return (VF)_mm512_maskz_min_ps(0xffff, (__m512)bound, (__m512)x);
#elif XPU_VECTOR_BYTES == 32
  return (VF)_mm256_min_ps((__m256)bound, (__m256)x);
#else
  return bound < x ? bound : x;
#endif
}

#if XPU_VECTOR_BYTES == 64
// x is n ln 2 and the rest, at most half of ln 2 in size.
struct ReducedVector {
  VF n, rest;
};
static inline ReducedVector ReducedByLn2(VF x) {
  const VF n = (VF)_mm512_maskz_roundscale_ps(0xffff, (__m512)(x * 1.44269504f), 0);
  const VF rest = x - n * 0.693359375f;
  return {n, rest + n * 2.12194440e-4f};
}
static inline VF TimesPowerOfTwo(VF x, VF n) { return (VF)_mm512_maskz_scalef_ps(0xffff, (__m512)x, (__m512)n); }
#endif

// exp within 2 units in the last place; results below the smallest normal number are 0, NaN stays NaN.
static inline VF Exp(VF x) {
  constexpr float kLowest = -87.33654f;
#if XPU_VECTOR_BYTES == 64
  const ReducedVector t = ReducedByLn2(AtMost(x, Splat<VF>(90.0f)));  // exp(90) is infinite
  const VF all = TimesPowerOfTwo(ExpOfReduced(t.rest), t.n);
  return x < kLowest ? Splat<VF>(0.0f) : all;
#else
  constexpr float kHighest = 88.72284f;
  const VI tiny = x < kLowest;
  const VI huge = x > kHighest;
  x = tiny ? Splat<VF>(kLowest) : x;
  x = huge ? Splat<VF>(kHighest) : x;
  // x = n ln 2 + r with |r| <= ln 2 / 2: adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits.
  const VF shifted = x * 1.44269504f + 12582912.0f;
  const VF n = shifted - 12582912.0f;
  VF r = x - n * 0.693359375f;
  r = r + n * 2.12194440e-4f;
  VF p = ExpOfReduced(r);
  VI bits;
  std::memcpy(&bits, &shifted, sizeof(bits));
  // 2^n in two factors: n reaches 128, for which there is no one power.
  const VI half = (bits - 0x4b400000) >> 1, rest = (bits - 0x4b400000) - half;
  const VI half_bits = (half + 127) << 23, rest_bits = (rest + 127) << 23;
  VF scale, scale2;
  std::memcpy(&scale, &half_bits, sizeof(scale));
  std::memcpy(&scale2, &rest_bits, sizeof(scale2));
  p = p * scale * scale2;
  p = huge ? Splat<VF>(__builtin_inff()) : p;
  return tiny ? Splat<VF>(0.0f) : p;
#endif
}

}  // namespace xpu::cpu::XPU_ISA
#include "tensorflow_plugin/backends/cpu/simd/each_isa.h"
#endif  // XPU_ISA

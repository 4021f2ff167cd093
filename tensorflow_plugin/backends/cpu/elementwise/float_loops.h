// Instructions on float and double registers, and the casts, loads and stores that touch them (see isa.h).
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_FLOAT_LOOPS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_FLOAT_LOOPS_H_

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "tensorflow_plugin/backends/cpu/elementwise/instruction_loops.h"
#include "tensorflow_plugin/backends/cpu/elementwise/instruction_table.h"
#include "tensorflow_plugin/backends/cpu/elementwise/table_loops.h"
#include "tensorflow_plugin/backends/cpu/simd/float_math.h"
#include "tensorflow_plugin/backends/cpu/simd/isa.h"

#define XPU_ISA_FILE "tensorflow_plugin/backends/cpu/elementwise/float_loops.h"
#define XPU_ISA baseline
#define XPU_VECTOR_BYTES 16
#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_FLOAT_LOOPS_H_

#if defined(XPU_ISA)
namespace xpu::cpu::XPU_ISA {
namespace {

#define XPU_OP1(name, ...)    \
  struct name {               \
    template <typename T>     \
    XPU_INLINE auto Do(T x) { \
      __VA_ARGS__             \
    }                         \
  }
#define XPU_OP2(name, ...)         \
  struct name {                    \
    template <typename T>          \
    XPU_INLINE auto Do(T x, T y) { \
      __VA_ARGS__                  \
    }                              \
  }

XPU_INLINE float Floor_(float x) { return __builtin_floorf(x); }
XPU_INLINE double Floor_(double x) { return __builtin_floor(x); }
XPU_INLINE float Ceil_(float x) { return __builtin_ceilf(x); }
XPU_INLINE double Ceil_(double x) { return __builtin_ceil(x); }
XPU_INLINE float Rint_(float x) { return __builtin_nearbyintf(x); }
XPU_INLINE double Rint_(double x) { return __builtin_nearbyint(x); }

XPU_OP1(Neg, return -x;);
XPU_OP1(Abs, return Magnitude(x););
XPU_OP1(Sign, const T s = x > 0 ? T(1) : (x < 0 ? T(-1) : T(0)); return x != x ? x : s;);
XPU_OP1(Reciprocal, return 1 / x;);
XPU_OP1(Square, return x * x;);
XPU_OP1(Sqrt, return RootOf(x););
XPU_OP1(Rsqrt, return 1 / RootOf(x););
XPU_OP1(Exp, return Exp_(x););
XPU_OP1(Expm1, return Expm1_(x););
XPU_OP1(Log, return Log_(x););
XPU_OP1(Log1p, return Log1p_(x););
XPU_OP1(Tanh, return Tanh_(x););
XPU_OP1(Sigmoid, return Sigmoid_(x););
XPU_OP1(Erf, return Erf_(x););
XPU_OP1(Erfc, return Erfc_(x););
XPU_OP1(Asin, return Asin_(x););
XPU_OP1(Acos, return Acos_(x););
XPU_OP1(Atanh, return Atanh_(x););
XPU_OP1(Atan, return Atan2_(x, T(1)););
XPU_OP1(Floor, return Floor_(x););
XPU_OP1(Ceil, return Ceil_(x););
XPU_OP1(Rint, return Rint_(x););
XPU_OP1(IsNan, return static_cast<uint8_t>(x != x););
XPU_OP1(IsInf, return static_cast<uint8_t>(Magnitude(x) == Fp<T>::kInf););
XPU_OP1(IsFinite, return static_cast<uint8_t>(Magnitude(x) < Fp<T>::kInf););
XPU_OP2(Add, return x + y;);
XPU_OP2(Sub, return x - y;);
XPU_OP2(Mul, return x * y;);
XPU_OP2(Div, return x / y;);
XPU_OP2(Atan2, return Atan2_(x, y););
XPU_OP2(FloorDiv, return Floor_(x / y););
XPU_OP2(Maximum, const T m = x > y ? x : y; return x != x ? x : m;);
XPU_OP2(Minimum, const T m = x < y ? x : y; return x != x ? x : m;);

#define XPU_FLOAT_OPS_1(V) \
  V(Neg)                   \
  V(Abs)                   \
  V(Sign)                  \
  V(Reciprocal)            \
  V(Square)                \
  V(Sqrt)                  \
  V(Rsqrt)                 \
  V(Exp)                   \
  V(Expm1)                 \
  V(Log)                   \
  V(Log1p)                 \
  V(Tanh)                  \
  V(Sigmoid)               \
  V(Asin)                  \
  V(Acos)                  \
  V(Atan)                  \
  V(Atanh)                 \
  V(Floor)                 \
  V(Ceil)                  \
  V(Rint)                  \
  V(IsNan)                 \
  V(IsInf)                 \
  V(IsFinite)
#define XPU_FLOAT_OPS_2(V) V(Add) V(Sub) V(Mul) V(Div) V(Atan2) V(FloorDiv) V(Maximum) V(Minimum)

// Sine and cosine. A huge, infinite or NaN argument goes to the library.
template <bool cosine>
XPU_INLINE float TrigOf(float x) {
  return SinCos_<cosine ? 1 : 0>(x);
}
template <bool cosine>
XPU_INLINE double TrigOf(double x) {
  const SineAndCosine both = SineAndCosine_(x);
  return cosine ? both.cosine : both.sine;
}
XPU_INLINE float LibrarySine(float x) { return __builtin_sinf(x); }
XPU_INLINE double LibrarySine(double x) { return __builtin_sin(x); }
XPU_INLINE float LibraryCosine(float x) { return __builtin_cosf(x); }
XPU_INLINE double LibraryCosine(double x) { return __builtin_cos(x); }

template <bool cosine, typename T>
static bool Trig(void* dst, const void* a, const void*, const void*, int64_t n) {
  const T* x = static_cast<const T*>(a);
  T* y = static_cast<T*>(dst);
  constexpr int64_t kBlock = 64;
  constexpr T kLimit = sizeof(T) == 4 ? kTrigLimit : kWideTrigLimit;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t m = begin + kBlock < n ? kBlock : n - begin;
    T result[kBlock];  // it may replace the operand
    int in_range = 1;
    for (int64_t i = 0; i < m; ++i) in_range &= Magnitude(x[begin + i]) < kLimit;
#pragma GCC ivdep
    for (int64_t i = 0; i < m; ++i) result[i] = TrigOf<cosine>(x[begin + i]);
    for (int64_t i = 0; i < m && !in_range; ++i) {
      const T angle = x[begin + i];
      if (!(Magnitude(angle) < kLimit)) result[i] = cosine ? LibraryCosine(angle) : LibrarySine(angle);
    }
    std::memcpy(y + begin, result, static_cast<size_t>(m) * sizeof(T));
  }
  return false;
}

// Powers: in a graph the exponent is most often one small constant.
template <typename T>
static bool Power(void* dst, const void* a, const void* b, const void*, int64_t n) {
  const T* x = static_cast<const T*>(a);
  const T* e = static_cast<const T*>(b);
  T* y = static_cast<T*>(dst);
  int same = 1;
  for (int64_t i = 1; i < n; ++i) same &= e[i] == e[0];
  if (same && n > 0 && e[0] == 2) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] * x[i];
  } else if (same && n > 0 && e[0] == 3) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] * x[i] * x[i];
  } else {
    for (int64_t i = 0; i < n; ++i) {
      if constexpr (sizeof(T) == 4) {
        y[i] = __builtin_powf(x[i], e[i]);
      } else {
        y[i] = __builtin_pow(x[i], e[i]);
      }
    }
  }
  return false;
}

// float <-> half and bfloat16, rounded to nearest even.
XPU_INLINE uint16_t ToBFloat16(float x) {
  const uint32_t u = BitCast<uint32_t>(x);
  const uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  return static_cast<uint16_t>((u & 0x7fffffffu) > 0x7f800000u ? ((u >> 16) | 0x40u) : rounded);
}
XPU_INLINE float FromBFloat16(uint16_t bits) { return BitCast<float>(static_cast<uint32_t>(bits) << 16); }
#if XPU_VECTOR_BYTES >= 32
// The compiler does not vectorise scalar conversions, so these work eight at a time.
XPU_INLINE uint16_t ToHalf(float x) {
  return static_cast<uint16_t>(_mm_cvtsi128_si32(_mm_cvtps_ph(_mm_set_ss(x), _MM_FROUND_TO_NEAREST_INT)));
}
XPU_INLINE float FromHalf(uint16_t bits) { return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(bits))); }
constexpr int kHalfLanes = 8;
XPU_INLINE void ToHalfLanes(uint16_t* dst, const float* x) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(dst), _mm256_cvtps_ph(_mm256_loadu_ps(x), _MM_FROUND_TO_NEAREST_INT));
}
XPU_INLINE void FromHalfLanes(float* dst, const uint16_t* x) {
  _mm256_storeu_ps(dst, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x))));
}
#else
XPU_INLINE uint16_t ToHalf(float x) { return Half(x).bits; }
XPU_INLINE float FromHalf(uint16_t bits) {
  Half h;
  h.bits = bits;
  return h;
}
constexpr int kHalfLanes = 8;
XPU_INLINE void ToHalfLanes(uint16_t* dst, const float* x) {
  for (int i = 0; i < kHalfLanes; ++i) dst[i] = ToHalf(x[i]);
}
XPU_INLINE void FromHalfLanes(float* dst, const uint16_t* x) {
  for (int i = 0; i < kHalfLanes; ++i) dst[i] = FromHalf(x[i]);
}
#endif

static bool LoadHalf(void* dst, const void* a, const void*, const void*, int64_t n) {
  const uint16_t* x = static_cast<const uint16_t*>(a);
  float* y = static_cast<float*>(dst);
  int64_t i = 0;
  for (; i + kHalfLanes <= n; i += kHalfLanes) FromHalfLanes(y + i, x + i);
  for (; i < n; ++i) y[i] = FromHalf(x[i]);
  return false;
}
static bool StoreHalf(void* dst, const void* a, const void*, const void*, int64_t n) {
  const float* x = static_cast<const float*>(a);
  uint16_t* y = static_cast<uint16_t*>(dst);
  int64_t i = 0;
  for (; i + kHalfLanes <= n; i += kHalfLanes) ToHalfLanes(y + i, x + i);
  for (; i < n; ++i) y[i] = ToHalf(x[i]);
  return false;
}
static bool LoadBFloat16(void* dst, const void* a, const void*, const void*, int64_t n) {
  const uint16_t* x = static_cast<const uint16_t*>(a);
  float* y = static_cast<float*>(dst);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = FromBFloat16(x[i]);
  return false;
}
static bool StoreBFloat16(void* dst, const void* a, const void*, const void*, int64_t n) {
  const float* x = static_cast<const float*>(a);
  uint16_t* y = static_cast<uint16_t*>(dst);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = ToBFloat16(x[i]);
  return false;
}

// Casts to half and bfloat16 registers: floats that those types can hold.
template <bool bfloat16, typename From>
static bool CastToReduced(void* dst, const void* a, const void*, const void*, int64_t n) {
  const From* x = static_cast<const From*>(a);
  float* y = static_cast<float*>(dst);
  int64_t i = 0;
  if constexpr (bfloat16) {
#pragma GCC ivdep
    for (; i < n; ++i) y[i] = FromBFloat16(ToBFloat16(static_cast<float>(x[i])));
  } else {
    for (; i + kHalfLanes <= n; i += kHalfLanes) {
      float wide[kHalfLanes];
      uint16_t narrow[kHalfLanes];
      for (int j = 0; j < kHalfLanes; ++j) wide[j] = static_cast<float>(x[i + j]);
      ToHalfLanes(narrow, wide);
      FromHalfLanes(y + i, narrow);
    }
    for (; i < n; ++i) y[i] = FromHalf(ToHalf(static_cast<float>(x[i])));
  }
  return false;
}

// Out of range: the lowest integer of 32 or 64 bits. Narrower types have the nearest number to that of 32.
template <typename To>
struct Truncate {
  template <typename T>
  XPU_INLINE To Do(T x) {
    if constexpr (sizeof(To) < 4 || std::is_same_v<To, int32_t>) {
      const bool ok = x >= T(-0x1p31) && x < T(0x1p31);
      const int32_t whole = ok ? static_cast<int32_t>(x) : INT32_MIN;
      if constexpr (sizeof(To) == 4) return whole;
      using Limits = std::numeric_limits<To>;
      const int32_t least = Limits::min(), most = Limits::max();
      return static_cast<To>(whole < least ? least : whole > most ? most : whole);
    } else {
      const bool ok = x >= T(-0x1p63) && x < T(0x1p63);
      return static_cast<To>(ok ? static_cast<int64_t>(x) : INT64_MIN);
    }
  }
};
struct NonZero {
  template <typename T>
  XPU_INLINE uint8_t Do(T x) {
    return x != 0;
  }
};
template <typename To>
struct Convert {
  template <typename T>
  XPU_INLINE To Do(T x) {
    return static_cast<To>(x);
  }
};

XPU_INLINE InstrFn& CastEntry(InstrTable* table, DType from, DType to) {
  return table->cast[static_cast<int>(from)][static_cast<int>(to)];
}

template <typename From>
static void AddCastsToFloat(InstrTable* table, DType from) {
  CastEntry(table, from, DType::kFloat) = &Map1<Convert<float>, From>;
  CastEntry(table, from, DType::kDouble) = &Map1<Convert<double>, From>;
  CastEntry(table, from, DType::kHalf) = &CastToReduced<false, From>;
  CastEntry(table, from, DType::kBFloat16) = &CastToReduced<true, From>;
}

template <typename T>
static void AddCastsFromFloat(InstrTable* table, DType from) {
  AddCastsToFloat<T>(table, from);
  CastEntry(table, from, DType::kBool) = &Map1<NonZero, T>;
  CastEntry(table, from, DType::kInt8) = &Map1<Truncate<int8_t>, T>;
  CastEntry(table, from, DType::kInt16) = &Map1<Truncate<int16_t>, T>;
  CastEntry(table, from, DType::kInt32) = &Map1<Truncate<int32_t>, T>;
  CastEntry(table, from, DType::kInt64) = &Map1<Truncate<int64_t>, T>;
  CastEntry(table, from, DType::kUint8) = &Map1<Truncate<uint8_t>, T>;
  CastEntry(table, from, DType::kUint16) = &Map1<Truncate<uint16_t>, T>;
  CastEntry(table, from, DType::kUint32) = &Map1<Truncate<uint32_t>, T>;
}

template <typename T>
static void AddFloatType(InstrTable* table, DType type) {
#define XPU_ADD(name) SetInstr(table, Opcode::k##name, type, &Map1<name, T>);
  XPU_FLOAT_OPS_1(XPU_ADD)
#undef XPU_ADD
#define XPU_ADD(name) SetBinary<name, T>(table, Opcode::k##name, type);
  XPU_FLOAT_OPS_2(XPU_ADD)
#undef XPU_ADD
#define XPU_ADD(name, symbol) SetBinary<name, T>(table, Opcode::k##name, type);
  XPU_COMPARE_OPS(XPU_ADD)
#undef XPU_ADD
  SetInstr(table, Opcode::kSelect, type, &Choose<T>);
  SetInstr(table, Opcode::kSin, type, &Trig<false, T>);
  SetInstr(table, Opcode::kCos, type, &Trig<true, T>);
  SetInstr(table, Opcode::kPow, type, &Power<T>);
  AddCastsFromFloat<T>(table, type);
}

static void AddFloatInstrs(InstrTable* table) {
  AddFloatType<float>(table, DType::kFloat);
  AddFloatType<double>(table, DType::kDouble);
  SetInstr(table, Opcode::kErf, DType::kFloat, &Map1<Erf, float>);
  SetInstr(table, Opcode::kErfc, DType::kFloat, &Map1<Erfc, float>);
  AddTables(table);
  AddCastsToFloat<uint8_t>(table, DType::kBool);
  AddCastsToFloat<int8_t>(table, DType::kInt8);
  AddCastsToFloat<int16_t>(table, DType::kInt16);
  AddCastsToFloat<int32_t>(table, DType::kInt32);
  AddCastsToFloat<int64_t>(table, DType::kInt64);
  AddCastsToFloat<uint8_t>(table, DType::kUint8);
  AddCastsToFloat<uint16_t>(table, DType::kUint16);
  AddCastsToFloat<uint32_t>(table, DType::kUint32);
  AddCastsToFloat<uint64_t>(table, DType::kUint64);
  table->load[static_cast<int>(DType::kHalf)] = &LoadHalf;
  table->load[static_cast<int>(DType::kBFloat16)] = &LoadBFloat16;
  table->store[static_cast<int>(DType::kHalf)] = &StoreHalf;
  table->store[static_cast<int>(DType::kBFloat16)] = &StoreBFloat16;
}

#undef XPU_OP1
#undef XPU_OP2
#undef XPU_FLOAT_OPS_1
#undef XPU_FLOAT_OPS_2

}  // namespace
}  // namespace xpu::cpu::XPU_ISA
#include "tensorflow_plugin/backends/cpu/simd/each_isa.h"
#endif  // XPU_ISA

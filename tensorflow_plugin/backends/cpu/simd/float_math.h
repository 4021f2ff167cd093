// Float and double functions without branches, so that the loops that call them vectorise. Within about two units in
// the last place, but Tanh (5), Erf and Erfc (6); exact at zeros, infinities and NaN. The names end in _ where the
// plain one is an instruction's.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_SIMD_FLOAT_MATH_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_SIMD_FLOAT_MATH_H_

#include <cstdint>

#include "tensorflow_plugin/backends/cpu/simd/isa.h"

#define XPU_ISA_FILE "tensorflow_plugin/backends/cpu/simd/float_math.h"
#define XPU_ISA baseline
#define XPU_VECTOR_BYTES 16
#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_SIMD_FLOAT_MATH_H_

#if defined(XPU_ISA)
namespace xpu::cpu::XPU_ISA {

template <typename To, typename From>
XPU_INLINE To BitCast(From x) {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, x);
}

template <typename T>
struct Fp;
template <>
struct Fp<float> {
  using Bits = uint32_t;
  static constexpr int kMantissa = 23;
  static constexpr int kBias = 127;
  static constexpr float kRound = 0x1.8p23f;  // adding it rounds to an integer kept in the low bits
  static constexpr float kLow = 0x1p23f;
  static constexpr float kMinNormal = 0x1p-126f;
  static constexpr float kTiny = 0x1p-26f;  // so small that its square is nothing beside it
  static constexpr float kInf = __builtin_inff();
  static constexpr float kNan = __builtin_nanf("");
  static constexpr Bits kSign = 0x80000000u;
  static constexpr Bits kSqrtHalf = 0x3f3504f3u;
  static constexpr float kLn2Hi = 0x1.62e4p-1f, kLn2Lo = 0x1.7f7d1cp-20f;  // kLn2Hi * n is exact
  static constexpr float kExpMax = 89.0f, kExpMin = -104.0f, kExpm1Min = -20.0f;
  static constexpr float kPiHi = 0x1.921fb6p+1f, kPiLo = -0x1.777a5cp-24f;
};
template <>
struct Fp<double> {
  using Bits = uint64_t;
  static constexpr int kMantissa = 52;
  static constexpr int kBias = 1023;
  static constexpr double kRound = 0x1.8p52;
  static constexpr double kLow = 0x1p52;
  static constexpr double kMinNormal = 0x1p-1022;
  static constexpr double kTiny = 0x1p-55;
  static constexpr double kInf = __builtin_inf();
  static constexpr double kNan = __builtin_nan("");
  static constexpr Bits kSign = 0x8000000000000000u;
  static constexpr Bits kSqrtHalf = 0x3fe6a09e667f3bcdu;
  static constexpr double kLn2Hi = 0x1.62e42feep-1, kLn2Lo = 0x1.a39ef35793c76p-33;
  static constexpr double kExpMax = 710.0, kExpMin = -746.0, kExpm1Min = -40.0;
  static constexpr double kPiHi = 0x1.921fb54442d18p+1, kPiLo = 0x1.1a62633145c07p-53;
};

template <typename T>
XPU_INLINE T Magnitude(T x) {
  return BitCast<T>(BitCast<typename Fp<T>::Bits>(x) & ~Fp<T>::kSign);
}
template <typename T>
XPU_INLINE T WithSignOf(T magnitude, T x) {
  using B = typename Fp<T>::Bits;
  return BitCast<T>((BitCast<B>(magnitude) & ~Fp<T>::kSign) | (BitCast<B>(x) & Fp<T>::kSign));
}

XPU_INLINE float RootOf(float x) { return __builtin_sqrtf(x); }
XPU_INLINE double RootOf(double x) { return __builtin_sqrt(x); }

// c[0] + x c[1] + x^2 c[2] + ..., by Horner's rule unrolled at compile time. x may be a vector.
template <int n, typename V, typename T>
XPU_INLINE V Poly(V x, const T (&c)[n]) {
  V r = V{} + c[n - 1];
#pragma GCC unroll 16
  for (int i = n - 2; i >= 0; --i) r = r * x + c[i];
  return r;
}

// (exp(r) - 1 - r) / r^2 on |r| <= log(2) / 2.
XPU_INLINE float ExpTail(float r) {
  constexpr float c[] = {5.000000013e-01f, 1.666666672e-01f, 4.166646491e-02f,
                         8.333298470e-03f, 1.393365035e-03f, 1.989928509e-04f};
  return Poly(r, c);
}
XPU_INLINE double ExpTail(double r) {
  constexpr double c[] = {1. / 2,     1. / 6,      1. / 24,      1. / 120,      1. / 720,       1. / 5040,
                          1. / 40320, 1. / 362880, 1. / 3628800, 1. / 39916800, 1. / 479001600, 1. / 6227020800};
  return Poly(r, c);
}

// 2^m for an integer-valued m in the normal range.
template <typename T>
XPU_INLINE T PowerOfTwo(T m) {
  using F = Fp<T>;
  return BitCast<T>(BitCast<typename F::Bits>(m + (F::kRound + F::kBias)) << F::kMantissa);
}

// x = n log 2 + r with n an integer and |r| <= log(2) / 2.
template <typename T>
struct Reduced {
  T n, r;
};
template <typename T>
XPU_INLINE Reduced<T> ReduceByLn2(T x) {
  using F = Fp<T>;
  const T t = x * T(1.4426950408889634074) + F::kRound;
  const T n = t - F::kRound;
  return {n, (x - n * F::kLn2Hi) - n * F::kLn2Lo};
}

template <typename T>
XPU_INLINE T ExpOf(const Reduced<T>& d) {
  const T p = 1 + (d.r + d.r * d.r * ExpTail(d.r));
  // 2^n leaves the normal range at both ends: scale in two halves.
  const T half = (d.n * T(0.5) + Fp<T>::kRound) - Fp<T>::kRound;
  return p * PowerOfTwo(half) * PowerOfTwo(d.n - half);
}

template <typename T>
XPU_INLINE T Exp_(T x) {
  using F = Fp<T>;
  T y = x > F::kExpMax ? F::kExpMax : x;
  y = y < F::kExpMin ? F::kExpMin : y;
  return ExpOf(ReduceByLn2(y));
}

template <typename T>
XPU_INLINE T Expm1_(T x) {
  using F = Fp<T>;
  T y = x > F::kExpMax ? F::kExpMax : x;
  y = y < F::kExpm1Min ? F::kExpm1Min : y;
  const Reduced<T> d = ReduceByLn2(y);
  const T p = d.r + d.r * d.r * ExpTail(d.r);
  // 2 (2^(n-1) p + (2^(n-1) - 1/2)): the halved scale stays finite up to the overflow of the result.
  const T s = PowerOfTwo(d.n - 1);
  const T y2 = 2 * (s * p + (s - T(0.5)));
  return Magnitude(x) < F::kTiny ? x : y2;  // half of the least normal number would be none
}

// log(1 + f) = f - f^2/2 + s (f^2/2 + LogTail(s^2)) where s = f / (2 + f).
XPU_INLINE float LogTail(float z) {
  constexpr float c[] = {2.f / 3, 2.f / 5, 2.f / 7, 2.f / 9};
  return z * Poly(z, c);
}
XPU_INLINE double LogTail(double z) {
  constexpr double c[] = {2. / 3, 2. / 5, 2. / 7, 2. / 9, 2. / 11, 2. / 13, 2. / 15, 2. / 17, 2. / 19, 2. / 21};
  return z * Poly(z, c);
}

template <typename T>
XPU_INLINE T Log_(T x) {
  using F = Fp<T>;
  using B = typename F::Bits;
  const bool tiny = x < F::kMinNormal;
  const B bits = BitCast<B>(tiny ? x * (2 * F::kLow) : x);
  // Split into 2^k (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)).
  const B offset = bits - F::kSqrtHalf;
  constexpr B exponent_mask = ~((B(1) << F::kMantissa) - 1);
  const B biased = (offset + (B(F::kBias) << F::kMantissa)) >> F::kMantissa;
  const T k = BitCast<T>(biased | BitCast<B>(F::kLow)) - (F::kLow + F::kBias) - (tiny ? T(F::kMantissa + 1) : T(0));
  const T f = BitCast<T>(bits - (offset & exponent_mask)) - 1;
  const T s = f / (2 + f);
  const T half_square = T(0.5) * f * f;
  const T tail = s * (half_square + LogTail(s * s));
  T y = k * F::kLn2Hi - ((half_square - (tail + k * F::kLn2Lo)) - f);
  y = x == 0 ? -F::kInf : y;
  y = x < 0 ? F::kNan : y;
  return x < F::kInf ? y : x;  // infinity and NaN
}

template <typename T>
XPU_INLINE T Log1p_(T x) {
  using F = Fp<T>;
  const T u = 1 + x;
  const T log = Log_(u);
  // The part that the rounding of 1 + x lost, to first order.
  const T corrected = log + (x - (u - 1)) / u;
  const T y = u > 0 && u < F::kInf ? corrected : log;
  return Magnitude(x) < F::kTiny ? x : y;
}

XPU_INLINE double Tanh_(double x) {
  double a = Magnitude(x);
  a = a > 20 ? 20 : a;  // tanh rounds to 1 before
  const double e = Expm1_(2 * a);
  return WithSignOf(e / (e + 2), x);
}

// An odd function that tends to 1 as x P(x^2) / Q(x^2); 1 beyond `one`.
template <int n, int m>
XPU_INLINE float OddRational(float x, const float (&p)[n], const float (&q)[m], float one) {
  const float magnitude = Magnitude(x);
  const float a = magnitude > one ? one : magnitude;
  const float z = a * a;
  float y = a * Poly(z, p) / Poly(z, q);
  y = y > 1.0f ? 1.0f : y;
  return WithSignOf(magnitude > one ? 1.0f : y, x);
}

// The coefficients are minimax fits in relative error; it rounds to 1 from 9.01 on.
XPU_INLINE float Tanh_(float x) {
  constexpr float p[] = {9.999999928e-01f,  1.307970637e-01f, 3.099140224e-03f, 1.110364882e-05f,
                         -2.001775676e-08f, 5.176906077e-11f, -8.22621689e-14f};
  constexpr float q[] = {1.0f, 4.641303285e-01f, 2.447602431e-02f, 2.539116007e-04f};
  return OddRational(x, p, q, 9.01f);
}

template <typename T>
XPU_INLINE T Sigmoid_(T x) {
  return 1 / (1 + Exp_(-x));
}

XPU_INLINE float Erf_(float x) {
  constexpr float p[] = {1.12837914e+00f,  1.935083432e-01f, 5.309587932e-02f,
                         3.881478169e-03f, 2.844768331e-04f, 1.986467235e-06f};
  constexpr float q[] = {
      1.0f, 5.048248728e-01f, 1.153339061e-01f, 1.520356875e-02f, 1.185029358e-03f, 3.741219541e-05f};
  return OddRational(x, p, q, 3.92f);
}

// exp(-a^2) * t * P(t) with t = 1 / (1 + a / 2) and a = |x|. P is a minimax fit in relative error up to kErfcIsZero,
// from where on it rounds to 0, and exact at 0.
inline constexpr float kErfcIsZero = 10.5f;
inline constexpr float kErfcTerms[] = {2.820676863e-01f,  2.827914357e-01f, 2.392107248e-01f,  2.228424847e-01f,
                                       -9.045001119e-02f, 4.067020416e-01f, -6.528199315e-01f, 4.164122641e-01f,
                                       -1.181490645e-01f, 1.139234751e-02f};
XPU_INLINE float Erfc_(float x) {
  const float magnitude = Magnitude(x);
  const float a = magnitude > kErfcIsZero ? kErfcIsZero : magnitude;
  const float t = 1.0f / (1.0f + 0.5f * a);
  // a^2 in two parts: its rounding error would be magnified by the exponential.
  const float high = BitCast<float>(BitCast<uint32_t>(a) & 0xfffff000u);
  Reduced<float> d = ReduceByLn2(-high * high);
  d.r += (high - a) * (high + a);
  const float tail = ExpOf(d) * t * Poly(t, kErfcTerms);
  const float y = x < 0.0f ? 2.0f - tail : tail;
  return x != x ? x : y;
}

// Sine (cosine: quadrant + 1) for |x| < kTrigLimit, reduced by pi/2 in double: exact enough near every multiple.
constexpr float kTrigLimit = 65536.0f;
template <int quadrant_shift>
XPU_INLINE float SinCos_(float x) {
  const double wide = x;
  const double n = (wide * 0.63661977236758134308 + Fp<double>::kRound) - Fp<double>::kRound;
  const float r = static_cast<float>((wide - n * 0x1.921fb544p+0) - n * 0x1.0b4611a626331p-34);
  const int32_t quadrant = static_cast<int32_t>(n) + quadrant_shift;
  const float z = r * r;
  constexpr float sine[] = {-1.f / 6, 1.f / 120, -1.f / 5040, 1.f / 362880};
  constexpr float cosine[] = {1.f / 24, -1.f / 720, 1.f / 40320, -1.f / 3628800};
  const float s = r + r * z * Poly(z, sine);
  const float c = 1 - (0.5f * z - z * z * Poly(z, cosine));
  const float y = (quadrant & 1) ? c : s;
  const float of_x = (quadrant & 2) ? -y : y;
  // The sign of what r may be no number for, and of -0.
  return quadrant_shift == 0 && Magnitude(x) < Fp<float>::kTiny ? x : of_x;
}

// Both of a double below kWideTrigLimit. Multiples of the first two parts of pi/2 are exact, and `rest` is what the
// third one leaves behind r.
constexpr double kWideTrigLimit = 0x1p20;
struct SineAndCosine {
  double sine, cosine;
};
XPU_INLINE SineAndCosine SineAndCosine_(double x) {
  using F = Fp<double>;
  const double shifted = x * 0.63661977236758134308 + F::kRound;
  const double n = shifted - F::kRound;
  const double first = x - n * 0x1.921fb544p+0, part = n * 0x1.0b4611a6p-34, second = first - part;
  const double third = ((first - second) - part) - n * 0x1.3198a2e037073p-69;
  const double r = second + third, rest = (second - r) + third;
  const double z = r * r;
  constexpr double sine[] = {-1. / 6,        1. / 120,        -1. / 5040,          1. / 362880,
                             -1. / 39916800, 1. / 6227020800, -1. / 1307674368000, 1. / 355687428096000};
  constexpr double cosine[] = {1. / 24,        -1. / 720,         1. / 40320,         -1. / 3628800,
                               1. / 479001600, -1. / 87178291200, 1. / 20922789888000};
  const double s = r + (r * z * Poly(z, sine) + rest);
  const double c = 1 - (0.5 * z - (z * z * Poly(z, cosine) - r * rest));
  const uint64_t quadrant = BitCast<uint64_t>(shifted);
  const double sine_of_x = (quadrant & 1) ? c : s, cosine_of_x = (quadrant & 1) ? s : c;
  // The signs; and what r may be no number for, with -0.
  return {Magnitude(x) < F::kTiny ? x
          : (quadrant & 2)        ? -sine_of_x
                                  : sine_of_x,
          ((quadrant + 1) & 2) ? -cosine_of_x : cosine_of_x};
}

// (atan(u) - u) / u^3 as a minimax polynomial of u^2, up to tan(pi/8).
XPU_INLINE float AtanTail(float z) {
  constexpr float c[] = {-3.333331645e-01f, 1.999848336e-01f, -1.424373835e-01f, 1.059513986e-01f, -6.081156433e-02f};
  return Poly(z, c);
}
XPU_INLINE double AtanTail(double z) {
  constexpr double c[] = {-0.333333333333331991,  0.199999999999540828,  -0.142857142802486052,  0.111111107861427011,
                          -0.0909089783658249544, 0.076920616393345295,  -0.0666312040735902123, 0.0584800907578298645,
                          -0.0503984618822363001, 0.0380783372878839838, -0.0179222964122132065};
  return Poly(z, c);
}

// (asin(u) - u) / u^3 as a minimax polynomial of u^2, up to u = 1/2.
XPU_INLINE float AsinTail(float z) {
  constexpr float c[] = {0.16666753921f, 0.074952420069f, 0.045477071426f, 0.024147730646f, 0.042218355608f};
  return Poly(z, c);
}
XPU_INLINE double AsinTail(double z) {
  constexpr double c[] = {0.166666666666653826,   0.0750000000034308446, 0.0446428568234529944,  0.030381959332339203,
                          0.0223717534999866226,  0.0173597714250179383, 0.0138845955769099457,  0.0121732971590851353,
                          0.00651077971356984735, 0.0195741002002809581, -0.0162943686390720178, 0.0319591623895892287};
  return Poly(z, c);
}

// The arc sine of |x| up to 1/2. From there on it is that of sqrt((1 - |x|) / 2), half of what is left to a quarter of
// a turn.
template <typename T>
XPU_INLINE T ArcSine(T x) {
  const T a = Magnitude(x), half_rest = T(0.5) * (1 - a), root = RootOf(half_rest);
  const T z = a > T(0.5) ? half_rest : a * a, u = a > T(0.5) ? root : a;
  return u + u * z * AsinTail(z);
}
XPU_INLINE double Asin_(double x) {
  using F = Fp<double>;
  const double arc = ArcSine(x);
  return WithSignOf(Magnitude(x) > 0.5 ? F::kPiHi / 2 - (2 * arc - F::kPiLo / 2) : arc, x);
}
// In float the root's rounding would be more than a unit of a result near 1/2.
XPU_INLINE float Asin_(float x) { return static_cast<float>(Asin_(static_cast<double>(x))); }
template <typename T>
XPU_INLINE T Acos_(T x) {
  using F = Fp<T>;
  const T arc = ArcSine(x);
  const T to_rest = x < 0 ? F::kPiHi - (2 * arc - F::kPiLo) : 2 * arc;
  return Magnitude(x) > T(0.5) ? to_rest : F::kPiHi / 2 - (WithSignOf(arc, x) - F::kPiLo / 2);
}

// Half of log((1 + a) / (1 - a)).
template <typename T>
XPU_INLINE T Atanh_(T x) {
  const T a = Magnitude(x);
  return WithSignOf(T(0.5) * Log1p_(2 * a / (1 - a)), x);
}

// The angle of (x, y), at every zero and infinity as in IEEE 754. It is a polynomial of the smaller coordinate by the
// larger. From tan(pi/8) on its argument is reduced by `atan(u) = pi/4 + atan((u - 1) / (u + 1))`.
template <typename T>
XPU_INLINE T Atan2_(T y, T x) {
  using F = Fp<T>;
  const T ax = Magnitude(x), ay = Magnitude(y);
  const bool steep = ay > ax;
  // The sum of the largest numbers would overflow; the difference and the product of the least ones would underflow.
  const T large = steep ? ay : ax;
  const T scale = large < T(0x1p100) ? 2 * F::kLow : T(0.25);
  const T most = large * scale, least = (steep ? ax : ay) * scale;
  const bool same = least == most;  // infinities and zeros, too
  const bool reduced = least > T(0.41421356) * most;
  const T dividend = same ? T(0) : reduced ? least - most : least;
  const T divisor = same ? T(1) : reduced ? least + most : most;
  const T u = dividend / divisor;
  const T z = u * u;
  constexpr T kQuarter = F::kPiHi / 4;  // of half a turn
  T angle = u + u * z * AtanTail(z);
  // Zeros and infinities are not reduced.
  const T of_same = most < kQuarter ? most : kQuarter;
  angle = reduced ? kQuarter + (angle + F::kPiLo / 4) : same ? of_same : angle;
  angle = steep ? F::kPiHi / 2 - (angle - F::kPiLo / 2) : angle;
  const bool behind = (BitCast<typename F::Bits>(x) & F::kSign) != 0;
  angle = behind ? F::kPiHi - (angle - F::kPiLo) : angle;
  angle = WithSignOf(angle, y);
  return x != x || y != y ? x + y : angle;
}

}  // namespace xpu::cpu::XPU_ISA
#include "tensorflow_plugin/backends/cpu/simd/each_isa.h"
#endif  // XPU_ISA

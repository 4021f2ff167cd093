// The meaning of every elementwise instruction on one element: what the comments in primitives/program.h say, in C++.
//
// Registers hold RegisterType: half and bfloat16 live as float and are rounded when stored or cast to.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_PLAIN_SCALAR_OPS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_PLAIN_SCALAR_OPS_H_

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "tensorflow_plugin/backends/plain/special_functions.h"
#include "tensorflow_plugin/primitives/types.h"

namespace xpu::plain::scalar {

template <typename T>
inline constexpr bool kIsComplex = false;
template <typename T>
inline constexpr bool kIsComplex<std::complex<T>> = true;
template <typename T>
inline constexpr bool kIsInt = std::is_integral_v<T> && !std::is_same_v<T, bool>;

// A maximum or a minimum begins with this value. Each element is at least as great, or as small.
template <typename T>
constexpr T StartOfExtremum(bool max) {
  using L = std::numeric_limits<T>;
  if (L::has_infinity) return max ? -L::infinity() : L::infinity();
  return max ? L::lowest() : L::max();
}

// Integers wrap: arithmetic is done in 64 unsigned bits, where it is defined for every operand, and cut down.
template <typename T>
constexpr uint64_t Wide(T x) {
  return static_cast<uint64_t>(x);
}

// A power of two that brings a complex number into the range of the type, with its magnitude, its root's parts and
// their squares. For most numbers it is 1.
template <typename T>
struct Scaled {
  using R = typename T::value_type;
  explicit Scaled(const T& x) {
    constexpr R kLeast = std::numeric_limits<R>::min() * R{0x1p30}, kMost = std::numeric_limits<R>::max() / 4;
    const R large = std::max(std::abs(x.real()), std::abs(x.imag()));
    if (large < kLeast) {
      root_of_scale = R{0x1p32};
    } else if (large > kMost && large <= std::numeric_limits<R>::max()) {
      root_of_scale = R{0x1p-2};
    } else {
      value = x;  // times 1 would make zeros of subnormal parts
      return;
    }
    const R scale = root_of_scale * root_of_scale;
    value = T{x.real() * scale, x.imag() * scale};
  }
  T value;
  R root_of_scale{1};
};
template <typename T>
T SquareRoot(const T& x) {
  if constexpr (kIsComplex<T>) {
    const Scaled<T> scaled(x);
    const T root = std::sqrt(scaled.value);
    return scaled.root_of_scale == 1 ? root : root / scaled.root_of_scale;
  } else {
    return std::sqrt(x);
  }
}

namespace ops {

// Each op is a struct with Apply<T>; `failed` is set where the command has to fail.
#define XPU_UNARY_OP(name, ...)     \
  struct name {                     \
    template <typename T>           \
    static auto Apply(const T& x) { \
      __VA_ARGS__                   \
    }                               \
  }
#define XPU_BINARY_OP(name, ...)                                               \
  struct name {                                                                \
    template <typename T>                                                      \
    static auto Apply(const T& x, const T& y, [[maybe_unused]] bool* failed) { \
      __VA_ARGS__                                                              \
    }                                                                          \
  }

XPU_UNARY_OP(Neg, if constexpr (kIsInt<T>) { return static_cast<T>(0 - Wide(x)); } else { return -x; });
XPU_UNARY_OP(
    Abs, if constexpr (kIsInt<T>) { return x < T{0} ? static_cast<T>(0 - Wide(x)) : x; } else { return std::abs(x); });
XPU_UNARY_OP(
    Sign,
    if constexpr (kIsComplex<T>) {
      const T scaled = Scaled<T>(x).value;
      const auto r = std::abs(scaled);
      return r == 0 ? T{} : scaled / r;
    } else if constexpr (kIsInt<T>) { return static_cast<T>((x > T{0}) - (x < T{0})); } else {
      return x != x ? x : static_cast<T>((x > T{0}) - (x < T{0}));
    });
XPU_UNARY_OP(Reciprocal, return T{1} / x;);
XPU_UNARY_OP(Square, if constexpr (kIsInt<T>) { return static_cast<T>(Wide(x) * Wide(x)); } else { return x * x; });
XPU_UNARY_OP(Sqrt, return SquareRoot(x););
XPU_UNARY_OP(Rsqrt, return T{1} / SquareRoot(x););
XPU_UNARY_OP(Exp, return std::exp(x););
XPU_UNARY_OP(
    Expm1,
    if constexpr (kIsComplex<T>) {
      // exp(a + ib) - 1 = (expm1(a) cos b - 2 sin^2(b/2)) + i exp(a) sin b, free of cancellation near 0.
      const auto s = std::sin(x.imag() / 2);
      return T{std::expm1(x.real()) * std::cos(x.imag()) - 2 * s * s,
               x.imag() == 0 ? x.imag() : std::exp(x.real()) * std::sin(x.imag())};  // also beside infinity
    } else { return std::expm1(x); });
XPU_UNARY_OP(Log, return std::log(x););
XPU_UNARY_OP(
    Log1p,
    if constexpr (kIsComplex<T>) {
      // |1 + z|^2 - 1 = a (2 + a) + b^2, free of cancellation near 0.
      using R = typename T::value_type;
      const R a = x.real(), b = x.imag();
      if (std::abs(a) > R{0.5} || std::abs(b) > R{0.5}) return std::log(T{1 + a, b});
      return T{std::log1p(a * (2 + a) + b * b) / 2, std::atan2(b, 1 + a)};
    } else { return std::log1p(x); });
XPU_UNARY_OP(Sin, return std::sin(x););
XPU_UNARY_OP(Cos, return std::cos(x););
XPU_UNARY_OP(Tan, return std::tan(x););
XPU_UNARY_OP(Asin, return std::asin(x););
XPU_UNARY_OP(Acos, return std::acos(x););
XPU_UNARY_OP(Atan, return std::atan(x););
XPU_UNARY_OP(Sinh, return std::sinh(x););
XPU_UNARY_OP(Cosh, return std::cosh(x););
XPU_UNARY_OP(Tanh, return std::tanh(x););
XPU_UNARY_OP(Asinh, return std::asinh(x););
XPU_UNARY_OP(Acosh, return std::acosh(x););
XPU_UNARY_OP(Atanh, return std::atanh(x););
XPU_UNARY_OP(Sigmoid, return T{1} / (T{1} + std::exp(-x)););
XPU_UNARY_OP(Erf, return std::erf(x););
XPU_UNARY_OP(Erfc, return std::erfc(x););
XPU_UNARY_OP(Erfinv, return static_cast<T>(ErfInverse(x)););
XPU_UNARY_OP(Ndtri, return static_cast<T>(NormalQuantile(x)););
XPU_UNARY_OP(Lgamma, return static_cast<T>(LogGamma(x)););
XPU_UNARY_OP(Digamma, return static_cast<T>(DigammaFunction(x)););
XPU_UNARY_OP(BesselI0, return static_cast<T>(special::BesselI0(x)););
XPU_UNARY_OP(BesselI0e, return static_cast<T>(special::BesselI0e(x)););
XPU_UNARY_OP(BesselI1, return static_cast<T>(special::BesselI1(x)););
XPU_UNARY_OP(BesselI1e, return static_cast<T>(special::BesselI1e(x)););
XPU_UNARY_OP(BesselJ0, return static_cast<T>(special::BesselJ0(x)););
XPU_UNARY_OP(BesselJ1, return static_cast<T>(special::BesselJ1(x)););
XPU_UNARY_OP(BesselK0, return static_cast<T>(special::BesselK0(x)););
XPU_UNARY_OP(BesselK0e, return static_cast<T>(special::BesselK0e(x)););
XPU_UNARY_OP(BesselK1, return static_cast<T>(special::BesselK1(x)););
XPU_UNARY_OP(BesselK1e, return static_cast<T>(special::BesselK1e(x)););
XPU_UNARY_OP(BesselY0, return static_cast<T>(special::BesselY0(x)););
XPU_UNARY_OP(BesselY1, return static_cast<T>(special::BesselY1(x)););
XPU_UNARY_OP(Dawsn, return static_cast<T>(special::Dawsn(x)););
XPU_UNARY_OP(Expint, return static_cast<T>(special::Expint(x)););
XPU_UNARY_OP(FresnelCos, return static_cast<T>(special::FresnelCos(x)););
XPU_UNARY_OP(FresnelSin, return static_cast<T>(special::FresnelSin(x)););
XPU_UNARY_OP(Spence, return static_cast<T>(special::Spence(x)););
XPU_UNARY_OP(PopulationCount,
             return static_cast<T>(__builtin_popcountll(Wide(static_cast<std::make_unsigned_t<T>>(x)))););
XPU_UNARY_OP(Ceil, return std::ceil(x););
XPU_UNARY_OP(Floor, return std::floor(x););
XPU_UNARY_OP(Rint, return std::nearbyint(x););
XPU_UNARY_OP(IsNan, return std::isnan(x););
XPU_UNARY_OP(IsInf, return std::isinf(x););
XPU_UNARY_OP(IsFinite, return std::isfinite(x););
XPU_UNARY_OP(LogicalNot, return !x;);
XPU_UNARY_OP(BitwiseNot, return static_cast<T>(~x););
XPU_UNARY_OP(Real, return x.real(););
XPU_UNARY_OP(Imag, return x.imag(););
XPU_UNARY_OP(Angle, return std::arg(x););
XPU_UNARY_OP(Conj, return std::conj(x););

XPU_BINARY_OP(Add, if constexpr (kIsInt<T>) { return static_cast<T>(Wide(x) + Wide(y)); } else { return x + y; });
XPU_BINARY_OP(Sub, if constexpr (kIsInt<T>) { return static_cast<T>(Wide(x) - Wide(y)); } else { return x - y; });
XPU_BINARY_OP(Mul, if constexpr (kIsInt<T>) { return static_cast<T>(Wide(x) * Wide(y)); } else { return x * y; });
XPU_BINARY_OP(Div, return x / y;);
XPU_BINARY_OP(NextAfter, return std::nextafter(x, y););
XPU_BINARY_OP(Igamma, return static_cast<T>(special::Igamma(x, y)););
XPU_BINARY_OP(Igammac, return static_cast<T>(special::Igammac(x, y)););
XPU_BINARY_OP(IgammaGradA, return static_cast<T>(special::IgammaGradA(x, y)););
XPU_BINARY_OP(GammaSampleGrad, return static_cast<T>(special::GammaSampleGrad(x, y)););
XPU_BINARY_OP(Polygamma, return static_cast<T>(special::Polygamma(x, y)););
XPU_BINARY_OP(Zeta, return static_cast<T>(special::Zeta(x, y)););

// Division by -1 is negation: the one quotient that overflows must not trap.
template <typename T>
constexpr bool IsMinusOne(T y) {
  return std::is_signed_v<T> && y == static_cast<T>(-1);
}
XPU_BINARY_OP(
    TruncateDiv,
    if (y == T{0}) {
      *failed = true;
      return T{0};
    } if (IsMinusOne(y)) return static_cast<T>(0 - Wide(x));
    return static_cast<T>(x / y););
XPU_BINARY_OP(
    TruncateMod,
    if constexpr (kIsInt<T>) {
      if (y == T{0}) {
        *failed = true;
        return T{0};
      }
      return IsMinusOne(y) ? T{0} : static_cast<T>(x % y);
    } else { return std::fmod(x, y); });
XPU_BINARY_OP(
    FloorDiv,
    if constexpr (kIsInt<T>) {
      const T q = TruncateDiv::Apply(x, y, failed);
      if (y == T{0} || IsMinusOne(y)) return q;
      return static_cast<T>(x % y != 0 && (x < T{0}) != (y < T{0}) ? q - 1 : q);
    } else { return std::floor(x / y); });
XPU_BINARY_OP(FloorMod, const T r = TruncateMod::Apply(x, y, failed);
              return r != T{0} && (r < T{0}) != (y < T{0}) ? static_cast<T>(r + y) : r;);
XPU_BINARY_OP(
    Maximum,
    if constexpr (std::is_floating_point_v<T>) {
      if (x != x) return x;
    } return x > y
        ? x
        : y;);
XPU_BINARY_OP(
    Minimum,
    if constexpr (std::is_floating_point_v<T>) {
      if (x != x) return x;
    } return x < y
        ? x
        : y;);
XPU_BINARY_OP(
    Pow,
    if constexpr (kIsInt<T>) {
      if (y < T{0}) {
        *failed = true;
        return T{0};
      }
      uint64_t result = 1, base = Wide(x);
      for (uint64_t e = Wide(y); e != 0; e >>= 1, base *= base) {
        if (e & 1) result *= base;
      }
      return static_cast<T>(result);
    } else { return std::pow(x, y); });
XPU_BINARY_OP(Atan2, return std::atan2(x, y););
XPU_BINARY_OP(Equal, return x == y;);
XPU_BINARY_OP(NotEqual, return x != y;);
XPU_BINARY_OP(Less, return x < y;);
XPU_BINARY_OP(LessEqual, return x <= y;);
XPU_BINARY_OP(Greater, return x > y;);
XPU_BINARY_OP(GreaterEqual, return x >= y;);
XPU_BINARY_OP(LogicalAnd, return x && y;);
XPU_BINARY_OP(LogicalOr, return x || y;);
XPU_BINARY_OP(BitwiseAnd, return static_cast<T>(x & y););
XPU_BINARY_OP(BitwiseOr, return static_cast<T>(x | y););
XPU_BINARY_OP(BitwiseXor, return static_cast<T>(x ^ y););
template <typename T>
constexpr int ClampShift(T y) {
  constexpr int last = static_cast<int>(sizeof(T)) * 8 - 1;
  if (y < T{0}) return 0;
  return y > static_cast<T>(last) ? last : static_cast<int>(y);
}
XPU_BINARY_OP(LeftShift, return static_cast<T>(Wide(x) << ClampShift(y)););
XPU_BINARY_OP(RightShift, return static_cast<T>(x >> ClampShift(y)););

struct Betainc {
  template <typename T>
  static T Apply(const T& a, const T& b, const T& x) {
    return static_cast<T>(special::Betainc(a, b, x));
  }
};

struct Select {
  template <typename T>
  static T Apply(bool condition, const T& x, const T& y) {
    return condition ? x : y;
  }
};

#undef XPU_UNARY_OP
#undef XPU_BINARY_OP

}  // namespace ops

// A floating value cut to an integer. Out of range (undefined in C++) it is the result of x86: the lowest integer of 32
// or 64 bits. Unsigned types of as many bits keep the low bits of that, and narrower types have their nearest number.
template <typename To, typename From>
To TruncateTo(From x) {
  using Carrier = std::conditional_t<(sizeof(To) < 4 || std::is_same_v<To, int32_t>), int32_t, int64_t>;
  constexpr From limit = static_cast<From>(sizeof(Carrier) == 4 ? 0x1p31 : 0x1p63);
  if constexpr (std::is_same_v<To, uint64_t>) {
    if (x >= limit && x < 2 * limit) return static_cast<uint64_t>(x);
  }
  const Carrier whole = x >= -limit && x < limit ? static_cast<Carrier>(x) : std::numeric_limits<Carrier>::min();
  if constexpr (sizeof(To) < 4) {
    return static_cast<To>(std::clamp<int32_t>(whole, std::numeric_limits<To>::min(), std::numeric_limits<To>::max()));
  }
  return static_cast<To>(whole);
}

// To is a storage type; the result is its register's.
template <typename To, typename From>
ComputeTypeT<To> Cast(const From& x) {
  if constexpr (kIsComplex<From>) {
    if constexpr (kIsComplex<To>) {
      return To(static_cast<typename To::value_type>(x.real()), static_cast<typename To::value_type>(x.imag()));
    } else {
      return Cast<To>(x.real());
    }
  } else if constexpr (kIsComplex<To>) {
    return To(static_cast<typename To::value_type>(x));
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != From{0};
  } else if constexpr (!std::is_same_v<To, ComputeTypeT<To>>) {
    return static_cast<float>(To(static_cast<float>(x)));
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    return TruncateTo<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

}  // namespace xpu::plain::scalar

#endif  // TENSORFLOW_PLUGIN_BACKENDS_PLAIN_SCALAR_OPS_H_

#include "tensorflow_plugin/backends/tests/rounding.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <type_traits>

#include "gtest/gtest.h"

namespace xpu::testing {
namespace {

// A number rounded to T, as a double.
template <typename T>
double Rounded(double v) {
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<double>(static_cast<T>(v));
  } else {
    return static_cast<double>(static_cast<float>(T(static_cast<float>(v))));
  }
}

// T is the real type that `got` is stored in. Rounding is monotone, so that the results of all computations within the
// bound lie between these two. Beyond the largest number of T they are infinite, or that number.
template <typename T>
bool RealWithin(double got, double want, double bound) {
  if (std::isnan(want)) return std::isnan(got);
  if (std::isinf(want)) return got == want;
  return got >= Rounded<T>(want - bound) && got <= Rounded<T>(want + bound);
}

template <typename T>
bool Equal(const T& a, const T& b) {
  if constexpr (std::is_integral_v<T>) {
    return a == b;
  } else {
    const auto x = static_cast<ComputeTypeT<T>>(a), y = static_cast<ComputeTypeT<T>>(b);
    return x == y || (x != x && y != y);
  }
}

// True if element i is right; `got` and `want` are of one type and there is no bound.
template <typename T>
bool Same(const Array& got, const Array& want, int64_t i) {
  if constexpr (std::is_same_v<T, bool>) {
    return got.as<uint8_t>()[i] == want.as<uint8_t>()[i];  // neither true nor false is neither
  } else {
    return Equal(got.as<T>()[i], want.as<T>()[i]);
  }
}

// The real type a number of type T is made of, and the number as one of doubles.
template <typename T>
struct Parts {
  using Real = T;
  static double Re(const T& v) { return static_cast<double>(static_cast<ComputeTypeT<T>>(v)); }
  static double Im(const T&) { return 0; }
};
template <typename R>
struct Parts<std::complex<R>> {
  using Real = R;
  static double Re(const std::complex<R>& v) { return static_cast<double>(v.real()); }
  static double Im(const std::complex<R>& v) { return static_cast<double>(v.imag()); }
};

// True if `got` is within `bound.relative` of `want`, and `more` beyond that.
template <typename T, typename W>
bool Within(const T& got, const W& want, double relative, double more) {
  using Real = typename Parts<T>::Real;
  const double re = Parts<W>::Re(want), im = Parts<W>::Im(want);
  constexpr bool is_complex = IsComplex(DTypeOf<T>::value);
  const double magnitude = is_complex ? std::hypot(re, im) : std::abs(re);
  const double allowed = more + (std::isfinite(magnitude) ? relative * magnitude : 0);
  if constexpr (!is_complex) return RealWithin<Real>(Parts<T>::Re(got), re, allowed);
  if (std::isnan(re) || std::isnan(im)) return std::isnan(Parts<T>::Re(got)) || std::isnan(Parts<T>::Im(got));
  return RealWithin<Real>(Parts<T>::Re(got), re, allowed) && RealWithin<Real>(Parts<T>::Im(got), im, allowed);
}

bool Exact(const Bound& bound) { return bound.relative == 0 && bound.absolute == 0 && bound.each.empty(); }

}  // namespace

double Roundoff(DType type) {
  switch (type) {
    case DType::kHalf:
    case DType::kBFloat16:
    case DType::kFloat:
    case DType::kComplex64:
      return 0x1p-24;
    case DType::kDouble:
    case DType::kComplex128:
      return 0x1p-53;
    default:
      return 0;
  }
}

double SumError(double n, DType type) { return std::min(n, 8 * std::sqrt(n)) * Roundoff(type); }

Bound SumBound(const Array& magnitudes, double n, DType type) {
  const double factor = SumError(IsComplex(type) ? n + 2 : n, type) * (Wide(type) == type ? 2 : 1);
  Bound bound;
  for (int64_t i = 0; i < magnitudes.size(); ++i) bound.each.push_back(factor * std::abs(At(magnitudes, i)));
  return bound;
}

bool ExpectWithin(const Array& got, const Array& want, const Bound& bound, const std::string& what) {
  const DType type = got.type();
  if (want.type() != type && want.type() != Wide(type)) {
    ADD_FAILURE() << what << ": the result is " << Name(type) << ", expected " << Name(want.type());
    return false;
  }
  if (got.size() != want.size() || !(bound.each.empty() || static_cast<int64_t>(bound.each.size()) == want.size())) {
    ADD_FAILURE() << what << ": " << got.size() << " elements, expected " << want.size() << ", and "
                  << bound.each.size() << " bounds";
    return false;
  }
  int64_t first = -1, wrong = 0;
  auto count = [&](auto&& right) {
    for (int64_t i = 0; i < want.size(); ++i) {
      if (right(i)) continue;
      if (wrong++ == 0) first = i;
    }
  };
  VisitType(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr DType kType = DTypeOf<T>::value;
    if constexpr (!IsFloating(kType) && !IsComplex(kType)) {
      count([&](int64_t i) { return Same<T>(got, want, i); });
    } else if (want.type() != type) {
      using W = std::conditional_t<IsComplex(kType), std::complex<double>, double>;
      const T* g = got.as<T>();
      const W* w = want.as<W>();
      count([&](int64_t i) {
        return Within(g[i], w[i], bound.relative, bound.absolute + (bound.each.empty() ? 0 : bound.each[i]));
      });
    } else if (Exact(bound)) {
      count([&](int64_t i) { return Same<T>(got, want, i); });
    } else {
      const T *g = got.as<T>(), *w = want.as<T>();
      count([&](int64_t i) {
        return Within(g[i], w[i], bound.relative, bound.absolute + (bound.each.empty() ? 0 : bound.each[i]));
      });
    }
  });
  if (wrong == 0) return true;
  ADD_FAILURE() << std::setprecision(10) << what << " (" << Name(type) << "): element " << first << " is "
                << At(got, first) << ", expected " << At(want, first) << ", give or take "
                << bound.relative * std::abs(At(want, first)) + bound.absolute +
                       (bound.each.empty() ? 0 : bound.each[first])
                << " and a rounding; " << wrong << " of " << want.size() << " elements are wrong";
  return false;
}

}  // namespace xpu::testing

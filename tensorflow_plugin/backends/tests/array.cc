#include "tensorflow_plugin/backends/tests/array.h"

#include <algorithm>
#include <limits>
#include <random>
#include <type_traits>

namespace xpu::testing {
namespace {

template <typename T>
std::complex<double> ToNumber(const T& v) {
  return static_cast<double>(v);
}
template <typename T>
std::complex<double> ToNumber(const std::complex<T>& v) {
  return {static_cast<double>(v.real()), static_cast<double>(v.imag())};
}
std::complex<double> ToNumber(const Half& v) { return static_cast<float>(v); }
std::complex<double> ToNumber(const BFloat16& v) { return static_cast<float>(v); }

template <typename T>
struct FromNumber {
  static T Of(std::complex<double> v) { return static_cast<T>(v.real()); }
};
template <>
struct FromNumber<bool> {
  static bool Of(std::complex<double> v) { return v.real() > 0; }
};
template <>
struct FromNumber<Half> {
  static Half Of(std::complex<double> v) { return Half(static_cast<float>(v.real())); }
};
template <>
struct FromNumber<BFloat16> {
  static BFloat16 Of(std::complex<double> v) { return BFloat16(static_cast<float>(v.real())); }
};
template <typename T>
struct FromNumber<std::complex<T>> {
  static std::complex<T> Of(std::complex<double> v) { return {static_cast<T>(v.real()), static_cast<T>(v.imag())}; }
};

// An array of n elements, element i from the number f(i).
template <typename F>
Array Make(DType type, int64_t n, F&& f) {
  Array a(type, n);
  VisitType(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < n; ++i) a.as<T>()[i] = FromNumber<T>::Of(f(i));
  });
  return a;
}

}  // namespace

std::complex<double> At(const Array& a, int64_t i) {
  if (a.type() == DType::kBool) return a.as<uint8_t>()[i];
  std::complex<double> number;
  VisitType(a.type(), [&](auto tag) { number = ToNumber(a.as<typename decltype(tag)::type>()[i]); });
  return number;
}

Array Random(DType type, int64_t n, uint32_t seed, double low, double high) {
  std::mt19937 rng(seed);
  if (IsInteger(type)) {
    VisitType(type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (std::is_integral_v<T>) {
        low = std::max(low, static_cast<double>(std::numeric_limits<T>::lowest()));
        high = std::min(high, static_cast<double>(std::numeric_limits<T>::max()));
      }
    });
  }
  std::uniform_real_distribution<double> uniform(low, high);
  const bool is_complex = IsComplex(type);
  return Make(type, n, [&](int64_t) {
    const double re = uniform(rng);
    return std::complex<double>(re, is_complex ? uniform(rng) : 0);
  });
}

Array Whole(DType type, int64_t n, uint32_t seed, int64_t most) {
  std::mt19937 rng(seed);
  std::uniform_int_distribution<int64_t> uniform(IsUnsignedInteger(type) ? 0 : -most, most);
  const bool is_complex = IsComplex(type);
  return Make(type, n, [&](int64_t) {
    const double re = static_cast<double>(uniform(rng));
    return std::complex<double>(re, is_complex ? static_cast<double>(uniform(rng)) : 0);
  });
}

Array Values(DType type, const std::vector<double>& values) {
  return Make(type, static_cast<int64_t>(values.size()), [&](int64_t i) { return std::complex<double>(values[i], 0); });
}

Array Values(DType type, std::initializer_list<std::complex<double>> values) {
  return Make(type, static_cast<int64_t>(values.size()), [&](int64_t i) { return values.begin()[i]; });
}

Array Bytes(int64_t n) {
  Array a(DType::kUint8, n);
  for (int64_t i = 0; i < n; ++i) a.as<uint8_t>()[i] = static_cast<uint8_t>(i * 7 + (i >> 8) * 13 + (i >> 16));
  return a;
}

Array Coordinates(DType type, int64_t n, const int64_t* dims, int rank, uint32_t seed) {
  std::mt19937 rng(seed);
  return Make(type, n * rank, [&](int64_t i) { return static_cast<double>(rng() % dims[i % rank]); });
}

DType Wide(DType type) {
  if (IsFloating(type)) return DType::kDouble;
  return IsComplex(type) ? DType::kComplex128 : type;
}

Array Widened(const Array& a) {
  if (Wide(a.type()) == a.type()) return a;
  return Make(Wide(a.type()), a.size(), [&](int64_t i) { return At(a, i); });
}

Array Magnitudes(const Array& a) {
  return Make(Wide(a.type()), a.size(), [&](int64_t i) { return std::complex<double>(std::abs(At(a, i)), 0); });
}

}  // namespace xpu::testing

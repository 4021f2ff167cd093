#include "tensorflow_plugin/backends/plain/special_functions.h"

#include <math.h>  // lgamma_r is POSIX, not in namespace std

#include <algorithm>
#include <cmath>
#include <limits>

namespace xpu::plain {

namespace {

// The inverse of erf at a, which is that of erfc at 1 - a = 2 half_tail; the latter would lose subnormal ones.
double ErfInverse(double a, double half_tail) {
  if (half_tail < 1e-300) {
    const double log_tail = std::log(half_tail) + M_LN2;
    // x^2 = -log(tail x sqrt(pi)) + log(1 - z + 3z^2 - 15z^3 + ...) with z = 1 / 2x^2, of which each step adds digits.
    double x = 26;
    for (int i = 0; i < 6; ++i) {
      const double z = 0.5 / (x * x);
      const double series = std::log1p(-z * (1 - 3 * z * (1 - 5 * z * (1 - 7 * z))));
      x = std::sqrt(series - log_tail - std::log(x * std::sqrt(M_PI)));
    }
    return x;
  }
  const double tail = 2 * half_tail;
  // Winitzki's approximation (2e-3) as the start of Halley's iteration, which triples the digits each time. The
  // residual is taken on erfc in the tail, where erf has no digits left.
  constexpr double kA = 0.147;
  const double l = a < 0.5 ? std::log1p(-a * a) : std::log(tail * (1 + a));
  const double t = 2 / (M_PI * kA) + l / 2;
  double x = std::sqrt(std::sqrt(t * t - l / kA) - t);
  for (int i = 0; i < 3; ++i) {
    const double residual = a < 0.5 ? std::erf(x) - a : tail - std::erfc(x);
    const double step = residual * std::exp(x * x) * (std::sqrt(M_PI) / 2);
    x -= step / (1 + x * step);
  }
  return x;
}

}  // namespace

double ErfInverse(double y) {
  const double a = std::abs(y);
  if (!(a < 1)) return a == 1 ? std::copysign(std::numeric_limits<double>::infinity(), y) : y - y + NAN;
  return a == 0 ? y : std::copysign(ErfInverse(a, (1 - a) / 2), y);
}

double NormalQuantile(double p) {
  if (!(p > 0 && p < 1)) {
    return p == 0 || p == 1 ? std::copysign(std::numeric_limits<double>::infinity(), p - 0.5) : p - p + NAN;
  }
  if (p == 0.5) return 0;
  // -sqrt(2) times the inverse of erfc at 2p, on the side where that is less than 1.
  const double half_tail = std::min(p, 1 - p);
  return std::copysign(std::sqrt(2.0) * ErfInverse(1 - 2 * half_tail, half_tail), p - 0.5);
}

double LogGamma(double x) {
  int sign;
  return lgamma_r(x, &sign);
}

double DigammaFunction(double x) {
  if (std::isnan(x) || (std::isinf(x) && x < 0)) return NAN;
  if (x <= 0) {
    if (x == std::floor(x)) return NAN;
    // Reflection. The cotangent's argument is reduced first, exactly, since pi * x would lose the fraction of a large x
    // and the distance to a pole.
    const double fraction = x > -0.5 ? x : x - std::nearbyint(x);  // a subnormal x less 0 would be 0
    const double cotangent = std::abs(fraction) < 0x1p-30 ? 1 / fraction : M_PI / std::tan(M_PI * fraction);
    return DigammaFunction(1 - x) - cotangent;
  }
  double shift = 0;
  for (; x < 12; x += 1) shift -= 1 / x;
  // The asymptotic series: log x - 1/2x - sum B_2k / (2k x^2k).
  const double z = 1 / (x * x);
  const double series =
      z * (1. / 12 - z * (1. / 120 - z * (1. / 252 - z * (1. / 240 - z * (1. / 132 - z * (691. / 32760))))));
  return shift + std::log(x) - 0.5 / x - series;
}

}  // namespace xpu::plain

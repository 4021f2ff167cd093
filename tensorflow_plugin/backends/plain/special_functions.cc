#include "tensorflow_plugin/backends/plain/special_functions.h"

#include <math.h>  // lgamma_r is POSIX, not in namespace std

#include <cmath>
#include <limits>

namespace xpu::plain {

double ErfInverse(double y) {
  const double a = std::abs(y);
  if (!(a < 1)) return a == 1 ? std::copysign(std::numeric_limits<double>::infinity(), y) : y - y + NAN;
  if (a == 0) return y;
  // Winitzki's approximation (2e-3) as the start of Halley's iteration, which triples the digits each time. The
  // residual is taken on erfc in the tail, where erf has no digits left.
  constexpr double kA = 0.147;
  const double tail = 1 - a;
  const double l = a < 0.5 ? std::log1p(-a * a) : std::log(tail * (1 + a));
  const double t = 2 / (M_PI * kA) + l / 2;
  double x = std::sqrt(std::sqrt(t * t - l / kA) - t);
  for (int i = 0; i < 3; ++i) {
    const double residual = a < 0.5 ? std::erf(x) - a : tail - std::erfc(x);
    const double step = residual * std::exp(x * x) * (std::sqrt(M_PI) / 2);
    x -= step / (1 + x * step);
  }
  return std::copysign(x, y);
}

double LogGamma(double x) {
  int sign;
  return lgamma_r(x, &sign);
}

double DigammaFunction(double x) {
  if (std::isnan(x) || (std::isinf(x) && x < 0)) return NAN;
  if (x <= 0) {
    if (x == std::floor(x)) return NAN;
    // Reflection; the cotangent's argument is reduced first, since pi * x would lose the fraction of a large x.
    const double fraction = x - std::floor(x);
    return DigammaFunction(1 - x) - M_PI / std::tan(M_PI * fraction);
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

// Integrals that have no closed form, by series where these do not cancel, and by asymptotic series or continued
// fractions elsewhere. The source is Abramowitz and Stegun, "Handbook of Mathematical Functions", chapters 5, 7 and 27.
#include <cmath>
#include <limits>

#include "tensorflow_plugin/backends/plain/special_functions.h"

namespace xpu::plain::special {
namespace {

constexpr double kEpsilon = std::numeric_limits<double>::epsilon() / 4;  // what a term no longer adds
constexpr double kEulerGamma = 0.57721566490153286061;

// The dilogarithm Li2(z) for -1 <= z <= 1/2, of u = -log(1 - z): u - u^2 / 4 + sum of B_2k u^(2k+1) / (2k+1)!.
double Dilogarithm(double u) {
  constexpr double kCoefficients[] = {1. / 36,
                                      -1. / 3600,
                                      1. / 211680,
                                      -1. / 10886400,
                                      1. / 526901760,
                                      -4.0647616451442255e-11,
                                      8.9216910204564526e-13,
                                      -1.9939295860721076e-14,
                                      4.5189800296199182e-16};
  const double u2 = u * u;
  double series = 0;
  for (int i = 8; i >= 0; --i) series = series * u2 + kCoefficients[i];
  return u - u2 / 4 + u * u2 * series;
}

// C(x) and S(x) for x > 0.
struct Fresnel {
  double cos, sin;
};

Fresnel FresnelSeries(double x) {
  const double a = M_PI / 2 * x * x;
  Fresnel sum = {0, 0};
  double term = x;
  for (int k = 0; std::abs(term) > kEpsilon * std::abs(sum.sin); k += 2) {
    sum.cos += term / (2 * k + 1);
    term *= a / (k + 1);
    sum.sin += term / (2 * k + 3);
    term *= -a / (k + 2);
  }
  return sum;
}

// `C + iS = (1 + i)/2 (1 - exp(i pi x^2 / 2) h)`, with `h = (1 - i) x / (z + 1 - 1*2 / (z + 5 - 3*4 / (z + 9 - ...)))`
// and z = -i pi x^2, which is the continued fraction of erfc.
Fresnel FresnelFraction(double x) {
  const double x2 = x * x, z = -M_PI * x2;  // without i
  const int steps = 8 + static_cast<int>(240 / x2);
  double re = 4. * steps + 1, im = z;  // of the fraction
  for (int k = steps; k > 0; --k) {
    const double scale = (2. * k - 1) * (2. * k) / (re * re + im * im);
    re = 4. * k - 3 - re * scale;
    im = z + im * scale;
  }
  const double scale = x / (re * re + im * im), h_re = (re - im) * scale, h_im = -(re + im) * scale;
  // The phase modulo 2 pi, with the digits of x^2 that do not fit into a double.
  const double phase = M_PI / 2 * (std::fmod(x2, 4) + std::fma(x, x, -x2));
  const double cos = std::cos(phase), sin = std::sin(phase);
  const double rest_re = 1 - (cos * h_re - sin * h_im), rest_im = -(cos * h_im + sin * h_re);
  return {(rest_re - rest_im) / 2, (rest_re + rest_im) / 2};
}

Fresnel FresnelOf(double x) {
  if (x < 1.6) return FresnelSeries(x);
  // Beyond, 1 / (pi x) is lost beside 1/2.
  return x < 1e17 ? FresnelFraction(x) : Fresnel{0.5, 0.5};
}

}  // namespace

double Dawsn(double x) {
  const double a = std::abs(x);
  if (!(a < 1e9)) return 0.5 / x;
  // x / (1 + 2x^2 - 4x^2 / (3 + 2x^2 - 8x^2 / (5 + 2x^2 - ...)))
  const double x2 = 2 * x * x;
  const int steps = static_cast<int>(a < 6 ? 10 + 12 * a : 10 + 4000 / x2);
  double fraction = 2 * steps + 1 + x2;
  for (int k = steps; k > 0; --k) fraction = (2 * k - 1 + x2) - 2 * k * x2 / fraction;
  return x / fraction;
}

double Expint(double x) {
  if (!(x >= 0)) return std::numeric_limits<double>::quiet_NaN();
  if (std::isinf(x)) return x;
  if (x > 50) {
    // exp(x)/x (1 + 1!/x + 2!/x^2 + ...), whose least term is of the order of exp(-x).
    const double step = 1 / x;
    double term = 1, sum = 1;
    for (int k = 1; term > kEpsilon; ++k) sum += term *= k * step;
    return std::exp(x) * step * sum;
  }
  // The logarithm, Euler's constant, and the sum of x^k / (k! k).
  double power = x, sum = x;
  for (int k = 2; power > kEpsilon * sum; ++k) {
    power *= x / k;
    sum += power / k;
  }
  return std::log(x) + kEulerGamma + sum;
}

double FresnelCos(double x) { return std::isnan(x) ? x : std::copysign(FresnelOf(std::abs(x)).cos, x); }
double FresnelSin(double x) { return std::isnan(x) ? x : std::copysign(FresnelOf(std::abs(x)).sin, x); }

double Spence(double x) {
  constexpr double kAtZero = M_PI * M_PI / 6;
  if (!(x >= 0)) return std::numeric_limits<double>::quiet_NaN();
  if (x == 0) return kAtZero;
  if (x == 1) return 0;  // not -0
  const double log = std::log(x);
  if (x > 2) return -0.5 * log * log - Spence(1 / x);
  if (x >= 0.5) return Dilogarithm(-log);
  const double log_rest = std::log1p(-x);
  return kAtZero - log * log_rest - Dilogarithm(-log_rest);
}

}  // namespace xpu::plain::special

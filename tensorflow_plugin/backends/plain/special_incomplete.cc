// Incomplete gamma functions, where Eigen's series end before they have converged or their result cancels.
#include <cmath>
#include <limits>

#include "tensorflow_plugin/backends/plain/special_functions.h"

namespace xpu::plain::special {
namespace {

template <int n>
double Polynomial(const double (&c)[n], double x) {
  double sum = 0;
  for (int i = n - 1; i >= 0; --i) sum = sum * x + c[i];
  return sum;
}

// m - log(1 + m) for |m| < 1/2, of which m^2 / 2 is the most.
double LessLog1p(double m) {
  const double r = m / (2 + m), r2 = r * r;
  double series = 0;
  for (int k = 15; k >= 1; --k) series = series * r2 + 1. / (2 * k + 1);
  return m * m / (2 + m) - 2 * r * r2 * series;
}

// log(gamma(1 + a)) for 0 <= a <= 1. Beside 1 a small a would lose its digits: its series has the values of the zeta
// function.
double LogGammaOf1Plus(double a) {
  if (a > 0.02) return LogGamma(1 + a);
  constexpr double c[] = {-0.57721566490153286061, 0.82246703342411321824,  -0.40068563438653142847,
                          0.27058080842778454788,  -0.20738555102867398527, 0.16955717699740818,
                          -0.14404989676884612,    0.12550966952474304,     -0.11133426586956469,
                          0.10009945751278181};
  return a * Polynomial(c, a);
}

}  // namespace

bool IsNearLargeA(double a, double x) {
  return a >= 1e4 && a <= std::numeric_limits<double>::max() && std::abs(x - a) < 0.3 * a;
}

// Temme's uniform expansion ("Asymptotic expansions of special functions", Boca Raton 2015, section 7). It is half of
// erfc and a rest of the order of 1 / sqrt(a), whose coefficients are series in e.
IncompleteGamma NearLargeA(double a, double x) {
  const double m = (x - a) / a, half_square = LessLog1p(m);
  const double e = std::copysign(std::sqrt(2 * half_square), m);
  constexpr double c0[] = {-1. / 3,        1. / 12,    -2. / 135,         1. / 864,          1. / 2835,
                           -139. / 777600, 1. / 25515, -571. / 261273600, -281. / 151559100, 8.2967113409530860e-7};
  constexpr double c1[] = {
      -1. / 540, -1. / 288, 1. / 378, -77. / 77760, 1. / 4860, -4.0187757201646091e-7, -1.8098550334489978e-5};
  constexpr double c2[] = {25. / 6048, -139. / 51840, 1. / 1296, 2.0093878600823045e-6};
  const double rest = std::exp(-a * half_square) / std::sqrt(2 * M_PI * a) *
                      (Polynomial(c0, e) + (Polynomial(c1, e) + Polynomial(c2, e) / a) / a);
  const double root = e * std::sqrt(a / 2);
  return {std::erfc(-root) / 2 - rest, std::erfc(root) / 2 + rest};
}

// 1 - x^a / gamma(a) (1/a - x / (a + 1) + x^2 / 2! (a + 2) - ...), less the 1 that a small a leaves nothing of.
double UpperOfSmall(double a, double x) {
  const double log_power = a * std::log(x) - LogGammaOf1Plus(a);
  double factor = 1, sum = 0;
  for (int k = 1; std::abs(factor) > 0x1p-60; ++k) {
    factor *= -x / k;
    sum += factor / (a + k);
  }
  return -std::expm1(log_power) - a * std::exp(log_power) * sum;
}

}  // namespace xpu::plain::special

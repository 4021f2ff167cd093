// The functions that Eigen has: TensorFlow's own, in double; but not where it has no digits left.
#include <cmath>
#include <limits>

#include "tensorflow_plugin/backends/host_runtime/float_mode.h"
#include "tensorflow_plugin/backends/plain/special_functions.h"
#include "xpu_eigen/SpecialFunctions.h"

namespace xpu::plain::special {

namespace numext = xpu_eigen::numext;

namespace {

// J (or Y, the second kind) of an order of 0 or 1 for finite x >= kFar, by Hankel's asymptotic series. Eigen subtracts
// the phase from x, which has no digits for it there: here x itself is the angle.
constexpr double kFar = 25;
double FarBessel(double x, int order, bool second) {
  double even = 1, odd = 0, term = 1;
  for (int k = 1; std::abs(term) > 0x1p-56; ++k) {  // the least one is of the order of exp(-2x)
    term *= (4 * order - (2. * k - 1) * (2. * k - 1)) / (8 * x * k);
    const double alternating = k / 2 % 2 == 0 ? term : -term;
    (k % 2 == 0 ? even : odd) += alternating;
  }
  // The cosine and the sine of x - (2 order + 1) pi / 4, times the root of 2.
  const double sum = std::sin(x) + std::cos(x), difference = std::sin(x) - std::cos(x);
  const double cosine = order == 0 ? sum : difference, sine = order == 0 ? difference : -sum;
  return (second ? even * sine + odd * cosine : even * cosine - odd * sine) / std::sqrt(M_PI * x);
}
bool IsFar(double x) { return x >= kFar && x <= std::numeric_limits<double>::max(); }

}  // namespace

double BesselI0(double x) { return numext::bessel_i0(x); }
double BesselI0e(double x) { return numext::bessel_i0e(x); }
double BesselI1(double x) { return numext::bessel_i1(x); }
double BesselI1e(double x) { return numext::bessel_i1e(x); }
double BesselJ0(double x) {
  const double a = std::abs(x);
  return IsFar(a) ? FarBessel(a, 0, false) : numext::bessel_j0(x);
}
double BesselJ1(double x) {
  const double a = std::abs(x);
  return IsFar(a) ? std::copysign(1.0, x) * FarBessel(a, 1, false) : numext::bessel_j1(x);
}
double BesselK0(double x) { return numext::bessel_k0(x); }
double BesselK0e(double x) { return numext::bessel_k0e(x); }
double BesselK1(double x) { return numext::bessel_k1(x); }
double BesselK1e(double x) { return numext::bessel_k1e(x); }
double BesselY0(double x) { return IsFar(x) ? FarBessel(x, 0, true) : numext::bessel_y0(x); }
double BesselY1(double x) { return IsFar(x) ? FarBessel(x, 1, true) : numext::bessel_y1(x); }

double Igamma(double a, double x) { return IsNearLargeA(a, x) ? NearLargeA(a, x).lower : numext::igamma(a, x); }
double Igammac(double a, double x) {
  if (IsNearLargeA(a, x)) return NearLargeA(a, x).upper;
  return a > 0 && a <= 1 && x > 0 && x <= 1 ? UpperOfSmall(a, x) : numext::igammac(a, x);
}
double IgammaGradA(double a, double x) { return numext::igamma_der_a(a, x); }
double GammaSampleGrad(double alpha, double sample) { return numext::gamma_sample_der_alpha(alpha, sample); }
double Zeta(double x, double q) {
  // Eigen 3.4 divides by the sum, which may be 0; TensorFlow's is later and ends there.
  if (x > 1 && q > 0 && std::pow(q, -x) == 0) return 0;
  // Its terms are a fraction of a result that may be near the least number.
  const host_runtime::ScopedFloatMode mode(host_runtime::FloatMode::WithSubnormalResults());
  const double zeta = numext::zeta(x, q);
  return std::abs(zeta) < std::numeric_limits<double>::min() ? 0 : zeta;
}
double Polygamma(double n, double x) {
  if (n == 0) return DigammaFunction(x);
  if (!(n > 0) || n != std::floor(n)) return std::numeric_limits<double>::quiet_NaN();
  const double sign = std::fmod(n, 2) == 0 ? -1 : 1;
  return sign * std::exp(LogGamma(n + 1)) * Zeta(n + 1, x);
}
double Betainc(double a, double b, double x) { return numext::betainc(a, b, x); }

}  // namespace xpu::plain::special

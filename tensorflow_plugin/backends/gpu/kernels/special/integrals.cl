// As plain/special_integrals.cc.
#ifndef DOUBLE_EPSILON
#define DOUBLE_EPSILON 0x1p-54  // what a term no longer adds
#endif

// The dilogarithm Li2(z) for -1 <= z <= 1/2, of u = -log(1 - z).
double dilogarithm(double u) {
  const double u2 = u * u;
  double series = 4.5189800296199182e-16;
  series = series * u2 + -1.9939295860721076e-14;
  series = series * u2 + 8.9216910204564526e-13;
  series = series * u2 + -4.0647616451442255e-11;
  series = series * u2 + 1. / 526901760;
  series = series * u2 + -1. / 10886400;
  series = series * u2 + 1. / 211680;
  series = series * u2 + -1. / 3600;
  series = series * u2 + 1. / 36;
  return u - u2 / 4 + u * u2 * series;
}

// Complex numbers.
double2 product_of(double2 a, double2 b) { return MAKE2(double2, a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }
double2 quotient_of(double2 a, double2 b) {
  return product_of(a, MAKE2(double2, b.x, -b.y)) / (b.x * b.x + b.y * b.y);
}

// C(x) and S(x) for x > 0.
double2 fresnel_of(double x) {
  if (x < 1.6) {
    const double a = M_PI / 2 * x * x;
    double2 sum = SPLAT(double2, 0);
    double term = x;
    for (int k = 0; fabs(term) > DOUBLE_EPSILON * fabs(sum.y); k += 2) {
      sum.x += term / (2 * k + 1);
      term *= a / (k + 1);
      sum.y += term / (2 * k + 3);
      term *= -a / (k + 2);
    }
    return sum;
  }
  // Beyond, 1 / (pi x) is lost beside 1/2.
  if (!(x < 1e17)) return SPLAT(double2, 0.5);
  const double x2 = x * x;
  const double2 z = MAKE2(double2, 0, -M_PI * x2);
  const int steps = 8 + (int)(240 / x2);
  double2 fraction = z + MAKE2(double2, 4. * steps + 1, 0);
  for (int k = steps; k > 0; --k) {
    const double2 part = quotient_of(MAKE2(double2, (2. * k - 1) * (2. * k), 0), fraction);
    fraction = z + MAKE2(double2, 4. * k - 3, 0) - part;
  }
  const double2 h = quotient_of(MAKE2(double2, x, -x), fraction);
  // The phase modulo 2 pi, with the digits of x^2 that do not fit into a double.
  const double phase = M_PI / 2 * (fmod(x2, 4) + fma(x, x, -x2));
  const double2 rest = MAKE2(double2, 1, 0) - product_of(MAKE2(double2, cos(phase), sin(phase)), h);
  return MAKE2(double2, rest.x - rest.y, rest.x + rest.y) / 2;
}

double special_dawsn(double x) {
  const double a = fabs(x);
  if (!(a < 1e9)) return 0.5 / x;
  // x / (1 + 2x^2 - 4x^2 / (3 + 2x^2 - 8x^2 / (5 + 2x^2 - ...)))
  const double x2 = 2 * x * x;
  const int steps = (int)(a < 6 ? 10 + 12 * a : 10 + 4000 / x2);
  double fraction = 2 * steps + 1 + x2;
  for (int k = steps; k > 0; --k) fraction = (2 * k - 1 + x2) - 2 * k * x2 / fraction;
  return x / fraction;
}

double special_expint(double x) {
  if (!(x >= 0)) return NAN;
  if (isinf(x)) return x;
  if (x > 50) {
    // exp(x)/x (1 + 1!/x + 2!/x^2 + ...), whose least term is of the order of exp(-x).
    const double step = 1 / x;
    double term = 1, sum = 1;
    for (int k = 1; term > DOUBLE_EPSILON; ++k) {
      term *= k * step;
      sum += term;
    }
    return exp(x) * step * sum;
  }
  // The logarithm, Euler's constant, and the sum of x^k / (k! k).
  double power = x, sum = x;
  for (int k = 2; power > DOUBLE_EPSILON * sum; ++k) {
    power *= x / k;
    sum += power / k;
  }
  return log(x) + 0.57721566490153286061 + sum;
}

double special_fresnel_cos(double x) { return isnan(x) ? x : copysign(fresnel_of(fabs(x)).x, x); }
double special_fresnel_sin(double x) { return isnan(x) ? x : copysign(fresnel_of(fabs(x)).y, x); }

// 0.5 <= x <= 2, or less than that.
double spence_up_to_2(double x) {
  const double at_zero = M_PI * M_PI / 6;
  if (x == 0) return at_zero;
  if (x >= 0.5) return dilogarithm(-log(x));
  const double log_rest = log1p(-x);
  return at_zero - log(x) * log_rest - dilogarithm(-log_rest);
}
double special_spence(double x) {
  if (!(x >= 0)) return NAN;
  if (x <= 2) return spence_up_to_2(x);
  return -0.5 * log(x) * log(x) - spence_up_to_2(1 / x);
}

// Functions of several arguments: the incomplete gamma and beta functions and Hurwitz's zeta, by their series and
// continued fractions. Poles, and what is out of a domain, are as in plain/special_eigen.cc. special/gamma.cl stands in
// front.
#define MOST_TERMS 2000
#define MOST_TERMS_OF_A_DERIVATIVE 500
#define ADDS_NOTHING 0x1p-53

// Numbers with their derivatives.
double2 dual_product(double2 u, double2 v) { return MAKE2(double2, u.x * v.x, u.x * v.y + u.y * v.x); }
double2 dual_quotient(double2 u, double2 v) {
  const double q = u.x / v.x;
  return MAKE2(double2, q, (u.y - q * v.y) / v.x);
}

// 1 + x / (a + 1) + x^2 / ((a + 1) (a + 2)) + ..., and if it is wanted, its derivative by a. P(a, x) is that times
// x^a exp(-x) / (a gamma(a)).
double2 gamma_series(double a, double x, int derivative) {
  double2 sum = MAKE2(double2, 1, 0), term = sum;
  const int most = derivative ? MOST_TERMS_OF_A_DERIVATIVE : MOST_TERMS;
  for (int k = 1; k <= most; ++k) {
    // (x / (a + k))' = -x / (a + k)^2
    term = dual_product(term, MAKE2(double2, x / (a + k), -x / ((a + k) * (a + k))));
    sum += term;
    if (derivative ? fabs(term.y) <= ADDS_NOTHING * fabs(sum.y) : term.x <= ADDS_NOTHING * sum.x) break;
  }
  return sum;
}

// 1 / (x + 1 - a - 1 (1 - a) / (x + 3 - a - 2 (2 - a) / ...)), and if it is wanted, its derivative by a. 1 - P(a, x) is
// that times x^a exp(-x) / gamma(a). By Lentz's method, for x > 1, x > a.
double2 gamma_fraction(double a, double x, int derivative) {
  double2 b = MAKE2(double2, x - a + 1, -1), c = MAKE2(double2, 1e300, 0), d = dual_quotient(MAKE2(double2, 1, 0), b), all = d;
  const int most = derivative ? MOST_TERMS_OF_A_DERIVATIVE : MOST_TERMS;
  for (int k = 1; k <= most; ++k) {
    const double2 part = MAKE2(double2, -k * (k - a), k);
    b.x += 2;
    d = dual_quotient(MAKE2(double2, 1, 0), dual_product(part, d) + b);
    c = b + dual_quotient(part, c);
    const double2 factor = dual_product(c, d), before = all;
    all = dual_product(all, factor);
    if (derivative ? fabs(all.y - before.y) <= ADDS_NOTHING * fabs(all.y) : fabs(factor.x - 1) <= ADDS_NOTHING) break;
  }
  return all;
}

// x^a exp(-x) / gamma(a), which is 0 where it is less than the inverse of the largest number.
double gamma_density(double a, double x) {
  if (isinf(a) || isinf(x)) return 0;
  const double logarithm = a * log(x) - x - lgamma(a);
  return logarithm < -709.782712893384 ? 0 : exp(logarithm);
}
double by_series(double a, double x) {
  const double density = gamma_density(a, x);
  return density == 0 ? 0 : gamma_series(a, x, 0).x / a * density;
}
double by_fraction(double a, double x) {
  const double density = gamma_density(a, x);
  const int is_known_to_1 = a * ADDS_NOTHING * ADDS_NOTHING < 1;  // what x - a is
  return density == 0 || !is_known_to_1 ? 0 : gamma_fraction(a, x, 0).x * density;
}
int is_beyond(double a, double x) { return !(x >= 0) || !(a > 0); }

// For large a and x near it, as plain/special_incomplete.cc: the lower function, or the upper one.
int is_near_large_a(double a, double x) { return a >= 1e4 && a <= DBL_MAX && fabs(x - a) < 0.3 * a; }
double near_large_a(double a, double x, int upper) {
  const double m = (x - a) / a, r = m / (2 + m), r2 = r * r;
  double series = 0;
  for (int k = 15; k >= 1; --k) series = series * r2 + 1.0 / (2 * k + 1);
  const double half_square = m * m / (2 + m) - 2 * r * r2 * series;  // m - log(1 + m)
  const double e = copysign(sqrt(2 * half_square), m), root = e * sqrt(a / 2);
  const double c0[] = {-1. / 3,         1. / 12,    -2. / 135,           1. / 864,           1. / 2835,
                       -139. / 777600,  1. / 25515, -571. / 261273600,   -281. / 151559100,  8.2967113409530860e-7};
  const double c1[] = {-1. / 540,  -1. / 288,              1. / 378,               -77. / 77760,
                       1. / 4860,  -4.0187757201646091e-7, -1.8098550334489978e-5};
  const double c2[] = {25. / 6048, -139. / 51840, 1. / 1296, 2.0093878600823045e-6};
  double sum0 = 0, sum1 = 0, sum2 = 0;
  for (int k = 9; k >= 0; --k) sum0 = sum0 * e + c0[k];
  for (int k = 6; k >= 0; --k) sum1 = sum1 * e + c1[k];
  for (int k = 3; k >= 0; --k) sum2 = sum2 * e + c2[k];
  const double rest = exp(-a * half_square) / sqrt(2 * M_PI * a) * (sum0 + (sum1 + sum2 / a) / a);
  return upper ? erfc(root) / 2 + rest : erfc(-root) / 2 - rest;
}

double special_igamma(double a, double x) {
  if (x == 0) return 0;
  if (is_beyond(a, x)) return NAN;
  if (is_near_large_a(a, x)) return near_large_a(a, x, 0);
  return x > 1 && x > a ? 1 - by_fraction(a, x) : by_series(a, x);
}

double special_igammac(double a, double x) {
  if (is_beyond(a, x)) return NAN;
  if (is_near_large_a(a, x)) return near_large_a(a, x, 1);
  return x < 1 || x < a ? 1 - by_series(a, x) : by_fraction(a, x);
}

// The derivative of P(a, x) by a, divided by x^a exp(-x) / gamma(a).
double gamma_slope(double a, double x) {
  if (x > 1 && x > a) {
    const double2 fraction = gamma_fraction(a, x, 1);
    return -(fraction.y + fraction.x * (log(x) - special_digamma(a)));
  }
  const double2 series = gamma_series(a, x, 1);
  return (series.y + series.x * (log(x) - special_digamma(a + 1))) / a;
}

double special_igamma_grad_a(double a, double x) {
  if (x == 0) return 0;
  if (is_beyond(a, x)) return NAN;
  const double density = gamma_density(a, x);
  return density == 0 ? 0 : gamma_slope(a, x) * density;
}

// Minus the derivative of P(a, x) by a, divided by that by x.
double special_gamma_sample_grad(double a, double x) {
  if (x == 0) return 0;
  if (is_beyond(a, x)) return NAN;
  return gamma_density(a, x) == 0 ? 0 : -gamma_slope(a, x) * x;
}

// Euler and Maclaurin's sum: terms until they are far out, then the integral and its corrections, by (2k)! / B_2k.
CONSTANT double kCorrections[] = {12,
                                  -720,
                                  30240,
                                  -1209600,
                                  47900160,
                                  -1307674368000. / 691,
                                  74724249600.,
                                  -1067062284288000. / 3617,
                                  5109094217170944000. / 43867,
                                  -802857662698291200000. / 174611,
                                  14101100039391805440000. / 77683,
                                  -1693824136731743669452800000. / 236364091};

double special_zeta(double s, double q) {
  if (s == 1) return INFINITY;
  if (!(s > 1) || isnan(q)) return NAN;
  if (q <= 0) {
    if (q == floor(q)) return s == floor(s) && (isinf(s) || fmod(s, 2) == 0) ? (double)INFINITY : (double)NAN;
    if (s != floor(s)) return NAN;
  }
  double sum = pow(q, -s), at = q, term = 0;
  if (q > 0 && sum == 0) return 0;
  for (int k = 0; k < 9 || at <= 9; ++k) {
    at += 1;
    term = pow(at, -s);
    sum += term;
    if (fabs(term) < ADDS_NOTHING * fabs(sum)) return sum;
  }
  sum += term * at / (s - 1) - term / 2;
  double factor = 1;
  for (int k = 0; k < 12; ++k) {
    factor *= s + 2 * k;
    term /= at;
    const double correction = factor * term / kCorrections[k];
    sum += correction;
    if (fabs(correction) < ADDS_NOTHING * fabs(sum)) break;
    factor *= s + 2 * k + 1;
    term /= at;
  }
  return sum;
}

double special_polygamma(double n, double x) {
  if (n == 0) return special_digamma(x);
  if (!(n > 0) || n != floor(n)) return NAN;
  return (fmod(n, 2) == 0 ? -1 : 1) * exp(special_lgamma(n + 1)) * special_zeta(n + 1, x);
}

// The continued fraction of I_x(a, b) / (x^a (1 - x)^b / (a B(a, b))), for x below the mean of the distribution. By
// Lentz's method.
double beta_fraction(double a, double b, double x) {
  double c = 1, d = 1 / (1 - (a + b) * x / (a + 1)), all = d;
  for (int k = 1; k < MOST_TERMS; ++k) {
    const double even = k * (b - k) * x / ((a + 2 * k - 1) * (a + 2 * k));
    d = 1 / (1 + even * d);
    c = 1 + even / c;
    all *= d * c;
    const double odd = -(a + k) * (a + b + k) * x / ((a + 2 * k) * (a + 2 * k + 1));
    d = 1 / (1 + odd * d);
    c = 1 + odd / c;
    const double factor = d * c;
    all *= factor;
    if (fabs(factor - 1) <= 2 * ADDS_NOTHING) break;
  }
  return all;
}

double special_betainc(double a, double b, double x) {
  if (a <= 0 || b <= 0) return NAN;
  if (x == 0 || x == 1) return x;
  if (isnan(a) || isnan(b) || !(x > 0 && x < 1)) return NAN;
  const double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
  if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a;
  return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

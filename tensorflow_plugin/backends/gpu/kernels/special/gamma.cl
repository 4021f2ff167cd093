// As plain/special_functions.cc.

double special_lgamma(double x) { return isinf(x) ? (double)INFINITY : lgamma(x); }

// The logarithm and its series, of x > 0.
double digamma_of_positive(double x) {
  double shift = 0;
  for (; x < 12; x += 1) shift -= 1 / x;
  // The asymptotic series: log x - 1/2x - sum B_2k / (2k x^2k).
  const double z = 1 / (x * x);
  const double series =
      z * (1. / 12 - z * (1. / 120 - z * (1. / 252 - z * (1. / 240 - z * (1. / 132 - z * (691. / 32760))))));
  return shift + log(x) - 0.5 / x - series;
}

double special_digamma(double x) {
  if (isnan(x) || (isinf(x) && x < 0)) return NAN;
  if (x > 0) return digamma_of_positive(x);
  if (x == floor(x)) return NAN;
  // Reflection. The cotangent's argument is reduced first, since pi * x would lose the fraction of a large x.
  const double fraction = x > -0.5 ? x : x - rint(x);
  return digamma_of_positive(1 - x) - (fabs(fraction) < 0x1p-30 ? 1 / fraction : M_PI / tan(M_PI * fraction));
}

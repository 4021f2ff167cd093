// As plain/special_functions.cc.

// The inverse of erfc at `tail`, which is 1 - a and less than 0.5, or of erf at a; x is the inverse of either.
double inverse_of_erf(double a, double tail) {
  if (tail < 1e-300) {
    // x^2 = -log(tail x sqrt(pi)) + log(1 - z + 3z^2 - 15z^3 + ...) with z = 1 / 2x^2, of which each step adds digits.
    double x = 26;
    for (int i = 0; i < 6; ++i) {
      const double z = 0.5 / (x * x);
      const double series = log1p(-z * (1 - 3 * z * (1 - 5 * z * (1 - 7 * z))));
      x = sqrt(series - log(tail) - log(x * sqrt(M_PI)));
    }
    return x;
  }
  // Winitzki's approximation, and Halley's iteration.
  const double l = a < 0.5 ? log1p(-a * a) : log(tail * (1 + a));
  const double t = 2 / (M_PI * 0.147) + l / 2;
  double x = sqrt(sqrt(t * t - l / 0.147) - t);
  for (int i = 0; i < 3; ++i) {
    const double residual = a < 0.5 ? erf(x) - a : tail - erfc(x);
    const double step = residual * exp(x * x) * (sqrt(M_PI) / 2);
    x -= step / (1 + x * step);
  }
  return x;
}

double special_erfinv(double y) {
  const double a = fabs(y);
  if (!(a < 1)) return a == 1 ? copysign((double)INFINITY, y) : (double)NAN;
  return a == 0 ? y : copysign(inverse_of_erf(a, 1 - a), y);
}

double special_ndtri(double p) {
  if (!(p > 0 && p < 1)) return p == 0 || p == 1 ? copysign((double)INFINITY, p - 0.5) : (double)NAN;
  if (p == 0.5) return 0;
  // -sqrt(2) times the inverse of erfc at 2p, on the side where that is less than 1.
  const double tail = 2 * fmin(p, 1 - p);
  return copysign(sqrt(2.0) * inverse_of_erf(1 - tail, tail), p - 0.5);
}

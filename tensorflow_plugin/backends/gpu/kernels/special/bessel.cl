// Bessel functions of orders 0 and 1 (Abramowitz and Stegun, "Handbook of Mathematical Functions", chapter 9). They are
// power series where these do not cancel, recurrences, and asymptotic series beyond.
#ifndef DOUBLE_EPSILON
#define DOUBLE_EPSILON 0x1p-54  // what a term no longer adds
#endif
#define EULER_GAMMA 0.57721566490153286061

// Both orders.
typedef struct {
  double of_0, of_1;
} Orders;

// The power series of the first and of the second kind. The latter leaves out the logarithm and a pole. They are sums
// over k of (q^k / (k!)^2, q^k / (k! (k + 1)!)) and of those times (H_k, H_k + H_(k+1)), the harmonic numbers.
typedef struct {
  Orders first, second;
} Series;

Series bessel_series(double q) {
  Series sum = {{1, 1}, {0, 1}};
  double term = 1, harmonic = 0;
  for (int k = 1; fabs(term) > DOUBLE_EPSILON * fabs(sum.first.of_0) && k < 200; ++k) {
    term *= q / ((double)k * k);
    harmonic += 1.0 / k;
    sum.first.of_0 += term;
    sum.first.of_1 += term / (k + 1);
    sum.second.of_0 += term * harmonic;
    sum.second.of_1 += term / (k + 1) * (2 * harmonic + 1.0 / (k + 1));
  }
  return sum;
}

// Hankel's series of order 0 or 1 in 1 / 8x. It is the terms with even and with odd powers, each with alternating
// signs, or the sum of all with one of `sign`.
typedef struct {
  double even, odd, all;
} Hankel;

Hankel hankel_series(double x, int order, double sign) {
  Hankel sum = {1, 0, 1};
  double term = 1, signed_term = 1;
  for (int k = 1; fabs(term) > DOUBLE_EPSILON && k < 60; ++k) {
    const double odd = 2 * k - 1, factor = (4 * order - odd * odd) / (8 * x * k);
    term *= factor;
    signed_term *= sign * factor;
    sum.all += signed_term;
    const double alternating = (k / 2) % 2 == 0 ? term : -term;
    if (k % 2 == 0) {
      sum.even += alternating;
    } else {
      sum.odd += alternating;
    }
  }
  return sum;
}

// exp(-a) I(a) for a >= 0.
double scaled_i(double a, int order) {
  if (a < 30) {
    const Series series = bessel_series(a * a / 4);
    return exp(-a) * (order == 0 ? series.first.of_0 : a / 2 * series.first.of_1);
  }
  return hankel_series(a, order, -1).all / sqrt(2 * M_PI * a);
}

double special_bessel_i0e(double x) { return scaled_i(fabs(x), 0); }
double special_bessel_i1e(double x) { return copysign(scaled_i(fabs(x), 1), x); }
double special_bessel_i0(double x) { return exp(fabs(x)) * special_bessel_i0e(x); }
double special_bessel_i1(double x) { return exp(fabs(x)) * special_bessel_i1e(x); }

// exp(x) K(x) for x > 1, of both orders: Temme's sum beside Steed's continued fraction; beyond, Hankel's series.
Orders scaled_k(double x) {
  Orders k;
  const double first = sqrt(M_PI / (2 * x));
  if (!(x < 30)) {
    k.of_0 = first * hankel_series(x, 0, 1).all;
    k.of_1 = first * hankel_series(x, 1, 1).all;
    return k;
  }
  double b = 2 * (1 + x), d = 1 / b, step = d, fraction = d;
  double before = 0, here = 1, weight = 0.25, sum = 0.25, a = -0.25;
  double total = 1 + sum * step;
  for (int i = 2; i < 500; ++i) {
    a -= 2 * (i - 1);
    weight *= -a / i;
    const double next = (before - b * here) / a;
    before = here;
    here = next;
    sum += weight * next;
    b += 2;
    d = 1 / (b + a * d);
    step *= b * d - 1;
    fraction += step;
    total += sum * step;
    if (fabs(sum * step) < DOUBLE_EPSILON * fabs(total)) break;
  }
  k.of_0 = first / total;
  k.of_1 = k.of_0 * (x + 0.5 - 0.25 * fraction) / x;
  return k;
}

// The same, of x <= 1, without the factor; beyond, it would be a small difference.
Orders small_k(double x) {
  const Series series = bessel_series(x * x / 4);
  const double log_x = log(x / 2) + EULER_GAMMA;
  const Orders k = {series.second.of_0 - log_x * series.first.of_0,
                    1 / x + x / 2 * (log_x * series.first.of_1 - series.second.of_1 / 2)};
  return k;
}

double k_of(double x, int order, int scaled) {
  if (x <= 0) return INFINITY;
  const int small = x <= 1;
  const Orders k = small ? small_k(x) : scaled_k(x);
  const double value = order == 0 ? k.of_0 : k.of_1;
  if (small == !scaled) return value;
  return value * exp(small ? x : -x);
}

double special_bessel_k0(double x) { return k_of(x, 0, 0); }
double special_bessel_k0e(double x) { return k_of(x, 0, 1); }
double special_bessel_k1(double x) { return k_of(x, 1, 0); }
double special_bessel_k1e(double x) { return k_of(x, 1, 1); }

// J and Y for x >= 0.
Series jy_of(double x) {
  Series result;
  if (x < 2) {
    const Series series = bessel_series(-x * x / 4);
    const double log_x = log(x / 2) + EULER_GAMMA;
    result.first.of_0 = series.first.of_0;
    result.first.of_1 = x / 2 * series.first.of_1;
    result.second.of_0 = M_2_PI * (log_x * result.first.of_0 - series.second.of_0);
    result.second.of_1 = M_2_PI * (log_x * result.first.of_1 - 1 / x - x / 4 * series.second.of_1);
  } else if (x < 25) {
    // Miller's recurrence from an order on where J is nothing, down to 0; Neumann's series for Y, of J of all orders.
    double above = 0, here = 1e-30, norm = 0, of_y0 = 0, of_y1 = 0, j1 = 0;
    for (int n = 2 * (int)(x / 2) + 40; n > 0; --n) {
      const int k = n / 2;  // `here` is J of order n
      const double sign = k % 2 == 0 ? 1 : -1;
      if (n % 2 == 0) {
        norm += 2 * here;
        of_y0 += sign * here / k;
      } else if (k > 0) {
        of_y1 += sign * here * (1.0 / k + 1.0 / (k + 1));
      } else {
        j1 = here;
      }
      const double below = 2 * n / x * here - above;
      above = here;
      here = below;
    }
    norm += here;
    const double log_x = log(x / 2) + EULER_GAMMA;
    result.first.of_0 = here / norm;
    result.first.of_1 = j1 / norm;
    result.second.of_0 = M_2_PI * (log_x * here - 2 * of_y0) / norm;
    result.second.of_1 = M_2_PI * ((log_x - 1) * j1 - here / x - of_y1) / norm;
  } else {
    // Times the root of 2, the cosine and the sine of x less the phase: pi / 4, 3 pi / 4. Subtracted from a large x, that
    // would be lost.
    const double first = 1 / sqrt(M_PI * x), sum = sin(x) + cos(x), difference = sin(x) - cos(x);
    const Hankel of_0 = hankel_series(x, 0, 1), of_1 = hankel_series(x, 1, 1);
    result.first.of_0 = first * (of_0.even * sum - of_0.odd * difference);
    result.second.of_0 = first * (of_0.even * difference + of_0.odd * sum);
    result.first.of_1 = first * (of_1.even * difference + of_1.odd * sum);
    result.second.of_1 = first * (of_1.odd * difference - of_1.even * sum);
  }
  return result;
}

double special_bessel_j0(double x) { return jy_of(fabs(x)).first.of_0; }
double special_bessel_j1(double x) { return x < 0 ? -jy_of(-x).first.of_1 : jy_of(x).first.of_1; }
double special_bessel_y0(double x) { return x <= 0 ? (double)-INFINITY : jy_of(x).second.of_0; }
double special_bessel_y1(double x) { return x <= 0 ? (double)-INFINITY : jy_of(x).second.of_1; }

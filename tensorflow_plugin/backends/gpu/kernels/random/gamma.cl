// Gamma numbers, one for an item, as plain/random.cc makes them: in double, each with 256 groups of words to itself. In
// front of this stand random/philox.cl, RESULT, the register of a number, LOAD_ALPHA(i) and STORE(i, x). Powers, and
// numbers of alpha 1, are the device's, and no number is exact.
typedef struct {
  double values[2];
  int left;
} Doubles;

// The second of the two numbers that four words give comes first.
double next_normal(Doubles *d, Generator *g) {
  if (d->left == 0) {
    normal_pair(next(g), d->values);
    d->left = 2;
  }
  return d->values[--d->left];
}
double next_uniform(Doubles *d, Generator *g) {
  if (d->left == 0) {
    const uint4 words = next(g);
    d->values[0] = UNIT(words.x, words.y);
    d->values[1] = UNIT(words.z, words.w);
    d->left = 2;
  }
  return d->values[--d->left];
}

double gamma_sample(double alpha, Generator *g) {
  Doubles normal, uniform;
  normal.left = uniform.left = 0;
  if (alpha == 1) return -log1p(-next_uniform(&uniform, g));
  const double d = alpha + (alpha < 1 ? 2.0 / 3 : -1.0 / 3), c = 1.0 / 3 / sqrt(d);
  if (!(d > 0)) return NAN;
  for (;;) {
    const double x = next_normal(&normal, g);
    double v = 1 + c * x;
    if (v <= 0) continue;
    v = v * v * v;
    const double u = next_uniform(&uniform, g);
    if (u < 1 - 0.0331 * (x * x) * (x * x) || u == 0 || exact_log(u) < 0.5 * x * x + d * (1 - v + exact_log(v))) {
      return alpha < 1 ? d * v * pow(next_uniform(&uniform, g), 1 / alpha) : d * v;
    }
  }
}

kernel void run(const ulong n, const ulong parameters, const int given, const ulong key_value, const ulong low_value,
                const ulong high_value, MEMORY(key), MEMORY(counter), MEMORY(alpha), MEMORY(out)) {
  const ulong i = get_global_id(0);
  if (i >= n) return;
  Generator g;
  g.key = given == 2 ? AT(ulong, key)[0] : key_value;
  g.low = given != 0 ? AT(ulong, counter)[0] : low_value;
  g.high = given != 0 ? AT(ulong, counter)[1] : high_value;
  skip(&g, 256 * i);
  const ulong samples = n / parameters, parameter = i / samples, sample = i % samples;
  const RESULT value = (RESULT)gamma_sample(LOAD_ALPHA(parameter), &g);
  STORE(sample * parameters + parameter, value);
}

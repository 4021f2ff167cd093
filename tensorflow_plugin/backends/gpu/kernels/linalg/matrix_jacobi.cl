// The rotation that makes [[p, z], [conj(z), q]] diagonal, by the smaller angle: cosine and sine. Also by how much p
// then becomes less, and q more.
REAL rotation(const REAL p, const REAL q, const T z, REAL *c, T *s) {
  const REAL size = SIZE(z), theta = (q - p) / (2 * size);
  const REAL tangent = (theta < 0 ? -1 : 1) / (fabs(theta) + hypot((REAL)1, theta));
  *c = 1 / hypot((REAL)1, tangent);
  *s = *c * tangent * (z / size);
  return tangent * size;
}

// [x, y] = [x, y] [[c, s], [-conj(s), c]]
void turn(Matrix x, Matrix y, const ulong length, const REAL c, const T s) {
  FOR_LANES(i, 0, length) {
    const T u = x[i], v = y[i];
    x[i] = c * u - MUL(CONJ(s), v);
    y[i] = MUL(s, u) + c * v;
  }
}

#define MAX_SWEEPS 100

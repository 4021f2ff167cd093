// The rotation that makes [[p, z], [conj(z), q]] diagonal, by the smaller angle: cosine and sine.
void rotation(const REAL p, const REAL q, const T z, REAL *c, T *s) {
  const REAL size = SIZE(z), theta = (q - p) / (2 * size);
  const REAL tangent = (theta < 0 ? -1 : 1) / (fabs(theta) + hypot((REAL)1, theta));
  *c = 1 / hypot((REAL)1, tangent);
  *s = *c * tangent * (z / size);
}

#define MAX_SWEEPS 100

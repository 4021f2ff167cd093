// Jacobi's method on a hermitian matrix, of which the lower triangle is read. The scratch of a matrix is what is worked
// on, [n, n], and the turns, [n, n], of which a row is a vector.
kernel void run(const ulong n, const int vectors, MEMORY(a), MEMORY(values), MEMORY(eigenvectors), MEMORY(scratch),
                MEMORY(report)) {
  SHARED REAL lanes[LANES];
  const ulong matrix = get_group_id(0);
  const Matrix from = AT(T, a) + matrix * n * n, to = AT(T, values) + matrix * n;
  const Matrix of = AT(T, eigenvectors) + matrix * n * n;
  const Matrix m = AT(T, scratch) + matrix * 2 * n * n, turns = m + n * n;
  int bad = 0;
  REAL part = 0;
  FOR_ROWS(i, 0, n, n) {
    FOR_COLUMNS(j, n) {
      const T x = j <= i ? from[i * n + j] : CONJ(from[j * n + i]);
      bad |= !IS_FINITE(x);
      m[i * n + j] = i == j ? FROM_REAL(RE(x)) : x;
      turns[i * n + j] = i == j ? ONE : ZERO;
      part += NORM2(m[i * n + j]);
    }
  }
  // Smaller eigenvalues are far below a rounding of the largest one.
  const REAL tiny = sqrt(sum_of_lanes(part, lanes)) * EPSILON / 64;
  bad = any_of_lanes(bad, lanes);
  if (bad && LANE == 0) FAIL(min(matrix, (ulong)UINT_MAX - 1));
  int turned = !bad;
  for (int sweep = 0; turned && sweep < MAX_SWEEPS; ++sweep) {
    turned = 0;
    for (ulong p = 0; p < n; ++p) {
      for (ulong q = p + 1; q < n; ++q) {
        SYNC
        const T z = m[p * n + q];
        if (SIZE(z) > tiny) {
          turned = 1;
          REAL c;
          T s;
          const REAL left = RE(m[p * n + p]), right = RE(m[q * n + q]), shift = rotation(left, right, z, &c, &s);
          SYNC
          FOR_LANES(j, 0, n) {
            if (j != p && j != q) {
              const T x = m[p * n + j], y = m[q * n + j];
              const T of_p = c * x - MUL(s, y), of_q = MUL(CONJ(s), x) + c * y;
              m[p * n + j] = of_p;
              m[q * n + j] = of_q;
              m[j * n + p] = CONJ(of_p);
              m[j * n + q] = CONJ(of_q);
            }
          }
          if (LANE == 0) {
            m[p * n + p] = FROM_REAL(left - shift);
            m[q * n + q] = FROM_REAL(right + shift);
            m[p * n + q] = m[q * n + p] = ZERO;
          }
          turn(turns + p * n, turns + q * n, n, c, s);
        }
      }
    }
  }
  SYNC
  // Ascending, and equal ones in their order.
  FOR_LANES(j, 0, n) {
    const REAL value = RE(m[j * n + j]);
    ulong place = 0;
    for (ulong i = 0; i < n; ++i) {
      const REAL other = RE(m[i * n + i]);
      place += other < value || (other == value && i < j);
    }
    to[place] = FROM_REAL(value);
    for (ulong i = 0; vectors && i < n; ++i) of[i * n + place] = turns[j * n + i];
  }
}

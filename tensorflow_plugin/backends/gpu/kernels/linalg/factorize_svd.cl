// One-sided Jacobi: turns the columns of a, or of its adjoint where that has more rows, until they are orthogonal. Then
// they are the one side's vectors times the values, and the turns are the other side's vectors. The scratch of a matrix
// keeps columns as rows: the columns, [n, length], the turns, [n, n], and n numbers.

// The `length` elements at x and y.
T dot(const Matrix x, const Matrix y, const ulong length, const ulong step, SHARED_POINTER(REAL) lanes) {
  T sum = ZERO;
  FOR_LANES(i, 0, length) sum += MUL(CONJ(x[i * step]), y[i * step]);
  return whole_sum_of_lanes(sum, lanes);
}
REAL norm2(const Matrix x, const ulong length, const ulong step, SHARED_POINTER(REAL) lanes) {
  REAL sum = 0;
  FOR_LANES(i, 0, length) sum += NORM2(x[i * step]);
  return sum_of_lanes(sum, lanes);
}

// For neighbours: x^H y, and the sums of squares, in several sums, which are added up at the same time.
#define SUMS 8
T products_of(const Matrix x, const Matrix y, const ulong length, REAL *xx, REAL *yy, SHARED_POINTER(REAL) lanes) {
  T xy[SUMS];
  REAL x2[SUMS], y2[SUMS];
  for (int k = 0; k < SUMS; ++k) {
    xy[k] = ZERO;
    x2[k] = y2[k] = 0;
  }
  const ulong whole = length / (SUMS * LANES) * (SUMS * LANES);
  for (ulong i = LANE * SUMS; i < whole; i += SUMS * LANES) {
    for (int k = 0; k < SUMS; ++k) {
      const T u = x[i + k], v = y[i + k];
      xy[k] += MUL(CONJ(u), v);
      x2[k] += NORM2(u);
      y2[k] += NORM2(v);
    }
  }
  FOR_LANES(i, whole, length) {
    xy[0] += MUL(CONJ(x[i]), y[i]);
    x2[0] += NORM2(x[i]);
    y2[0] += NORM2(y[i]);
  }
  for (int k = 1; k < SUMS; ++k) {
    xy[0] += xy[k];
    x2[0] += x2[k];
    y2[0] += y2[k];
  }
  *xx = sum_of_lanes(x2[0], lanes);
  *yy = sum_of_lanes(y2[0], lanes);
  return whole_sum_of_lanes(xy[0], lanes);
}

// Makes the columns of q [rows, cols] from `have` on orthonormal to all before them: what is left of unit vectors.
void complete(Matrix q, const ulong rows, const ulong cols, ulong have, SHARED_POINTER(REAL) lanes) {
  for (ulong unit = 0; have < cols && unit < rows; ++unit) {
    SYNC
    FOR_LANES(i, 0, rows) q[i * cols + have] = i == unit ? ONE : ZERO;
    for (int pass = 0; pass < 2; ++pass) {
      for (ulong c = 0; c < have; ++c) {
        SYNC
        const T part = dot(q + c, q + have, rows, cols, lanes);
        FOR_LANES(i, 0, rows) q[i * cols + have] -= MUL(part, q[i * cols + c]);
      }
    }
    const REAL norm = norm2(q + have, rows, cols, lanes);
    // One of the unit vectors that are left has at least this much beside the columns there are.
    if (norm * (REAL)rows >= (REAL)0.5) {
      FOR_LANES(i, 0, rows) q[i * cols + have] /= sqrt(norm);
      ++have;
    }
  }
  SYNC
}

kernel void run(const ulong rows, const ulong cols, const ulong u_cols, const ulong v_cols, const int vectors,
                MEMORY(a), MEMORY(values), MEMORY(u), MEMORY(v), MEMORY(scratch)) {
  SHARED REAL lanes[LANES];
  const int is_tall = rows >= cols;
  const ulong matrix = get_group_id(0), n = min(rows, cols), length = max(rows, cols);
  const Matrix from = AT(T, a) + matrix * rows * cols;
  const Matrix m = AT(T, scratch) + matrix * (n * length + n * n + n), turns = m + n * length;
  GLOBAL REAL *norms = (GLOBAL REAL *)(turns + n * n), *to = AT(REAL, values) + matrix * n;
  const Matrix of_u = AT(T, u) + matrix * rows * u_cols, of_v = AT(T, v) + matrix * cols * v_cols;
  int bad = 0;
  FOR_ROWS(i, 0, n, length) {
    FOR_COLUMNS(j, length) {
      const T x = is_tall ? from[j * cols + i] : CONJ(from[i * cols + j]);
      bad |= !IS_FINITE(x);
      m[i * length + j] = x;
    }
  }
  FOR_LANES(i, 0, n * n) turns[i] = i / n == i % n ? ONE : ZERO;
  bad = any_of_lanes(bad, lanes);
  if (bad) {
    FOR_LANES(i, 0, n) to[i] = NAN;
    FOR_LANES(i, 0, vectors ? rows * u_cols : 0) of_u[i] = NOT_A_NUMBER;
    FOR_LANES(i, 0, vectors ? cols * v_cols : 0) of_v[i] = NOT_A_NUMBER;
  }
  const REAL rounding = EPSILON * sqrt((REAL)length);  // a product's own
  int turned = !bad;
  for (int sweep = 0; turned && sweep < MAX_SWEEPS; ++sweep) {
    turned = 0;
    for (ulong p = 0; p < n; ++p) {
      for (ulong q = p + 1; q < n; ++q) {
        SYNC
        const Matrix x = m + p * length, y = m + q * length;
        REAL pp, qq;
        const T z = products_of(x, y, length, &pp, &qq, lanes);
        if (SIZE(z) > rounding * sqrt(pp) * sqrt(qq) && SIZE(z) >= LEAST) {
          turned = 1;
          REAL c;
          T s;
          rotation(pp, qq, z, &c, &s);
          turn(x, y, length, c, s);
          turn(turns + p * n, turns + q * n, n, c, s);
        }
      }
    }
  }
  if (!bad) {
    SYNC
    REAL largest = 0;
    for (ulong j = 0; j < n; ++j) {
      const REAL norm = sqrt(norm2(m + j * length, length, 1, lanes));
      largest = fmax(largest, norm);
      if (LANE == 0) norms[j] = norm;
    }
    SYNC
    // The vectors beside which values are, and the others.
    const Matrix q = is_tall ? of_u : of_v, other = is_tall ? of_v : of_u;
    const ulong q_cols = is_tall ? u_cols : v_cols, other_cols = is_tall ? v_cols : u_cols;
    ulong rank = 0;
    for (ulong j = 0; j < n; ++j) {
      // Descending, and equal ones in their order.
      const REAL value = norms[j];
      ulong place = 0;
      for (ulong i = 0; i < n; ++i) place += norms[i] > value || (norms[i] == value && i < j);
      if (LANE == 0) to[place] = value;
      // A column that is nothing but roundings has no direction.
      const int has_direction = value > largest * EPSILON * (REAL)length;
      rank += has_direction;
      if (vectors) {
        FOR_LANES(i, 0, has_direction ? length : 0) q[i * q_cols + place] = m[j * length + i] / value;
        FOR_LANES(i, 0, n) other[i * other_cols + place] = turns[j * n + i];
      }
    }
    if (vectors) {
      complete(q, length, q_cols, rank, lanes);
      complete(other, n, other_cols, n, lanes);
    }
  }
}

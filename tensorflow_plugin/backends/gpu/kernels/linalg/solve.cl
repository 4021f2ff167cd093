// Solves with a matrix, or with a triangle of it, for all right-hand sides at once.

// Solves with a triangle of the matrix whose element [r, c] is at r * row + c * column of m. The element is conjugate
// if it is to be; the diagonal is ones if `unit`. In place on x [n, columns].
void solve_triangle(const Matrix m, const ulong row, const ulong column, const int conjugate, const int lower,
                    const int unit, const ulong n, const ulong columns, Matrix x) {
  for (ulong step = 0; step < n; ++step) {
    const ulong k = lower ? step : n - 1 - step;
    SYNC
    if (!unit) {
      const T element = m[k * row + k * column], pivot = conjugate ? CONJ(element) : element;
      FOR_LANES(c, 0, columns) x[k * columns + c] = DIV(x[k * columns + c], pivot);
      SYNC
    }
    const ulong begin = lower ? k + 1 : 0, end = lower ? n : k;
    FOR_ROWS(r, begin, end, columns) {
      const T element = m[r * row + k * column], factor = conjugate ? CONJ(element) : element;
      FOR_COLUMNS(c, columns) x[r * columns + c] -= MUL(factor, x[k * columns + c]);
    }
  }
}

#define GENERAL 0
#define LOWER 1
#define UPPER 2

// The scratch of a general matrix is [n, n], and its permutation's are n numbers.
kernel void run(const int kind, const int adjoint, const ulong n, const ulong columns, MEMORY(a), MEMORY(b), MEMORY(x),
                MEMORY(scratch), MEMORY(permutations), MEMORY(report)) {
  SHARED REAL lanes[LANES];
  SHARED uint places[LANES];
  const ulong matrix = get_group_id(0);
  const Matrix of_a = AT(T, a) + matrix * n * n, of_b = AT(T, b) + matrix * n * columns;
  const Matrix to = AT(T, x) + matrix * n * columns;
  if (kind == GENERAL) {
    const Matrix lu = AT(T, scratch) + matrix * n * n;
    GLOBAL int *permutation = AT(int, permutations) + matrix * n;
    FOR_ROWS(r, 0, n, n) {
      FOR_COLUMNS(c, n) lu[r * n + c] = adjoint ? CONJ(of_a[c * n + r]) : of_a[r * n + c];
    }
    int sign;
    const int regular = factorize_lu(lu, n, permutation, &sign, lanes, places);
    if (!regular && LANE == 0) FAIL(min(matrix, (ulong)UINT_MAX - 1));
    FOR_ROWS(r, 0, n, columns) {
      FOR_COLUMNS(c, columns) to[r * columns + c] = of_b[(ulong)permutation[r] * columns + c];
    }
    solve_triangle(lu, n, 1, 0, 1, 1, n, columns, to);
    solve_triangle(lu, n, 1, 0, 0, 0, n, columns, to);
  } else {
    FOR_LANES(i, 0, n * columns) to[i] = of_b[i];
    solve_triangle(of_a, adjoint ? 1 : n, adjoint ? n : 1, adjoint, (kind == LOWER) != adjoint, 0, n, columns, to);
  }
}

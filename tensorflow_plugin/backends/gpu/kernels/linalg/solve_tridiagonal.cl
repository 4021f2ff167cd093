// One system by Gaussian elimination, as plain/tridiagonal.cc: every item goes through the matrix, and eliminates the
// right-hand sides that are its own. The rest of a row, the diagonal and two superdiagonals, is in the scratch.

// True if the row below is the better pivot. With `perturb` each is compared with the size of its row.
int exchanges(const int pivoting, const int perturb, const T pivot, const T below, const REAL scale,
              const REAL below_scale) {
  if (!pivoting) return 0;
  if (!perturb) return SIZE(pivot) < SIZE(below);
  if (SAME(below, ZERO)) return 0;
  const REAL own = SAME(pivot, ZERO) ? (REAL)0 : SIZE(pivot) / scale;
  return own < SIZE(below) / below_scale;
}

// Row i less a multiple of row j.
#define SUBTRACT(i, factor, j)                                                                           \
  {                                                                                                      \
    const T times = factor;                                                                              \
    if (!SAME(times, ZERO)) {                                                                            \
      FOR_LANES(c, 0, columns) to[(i)*columns + c] -= MUL(times, to[(j)*columns + c]);                   \
    }                                                                                                    \
  }

kernel void run(const int pivoting, const int perturb, const ulong n, const ulong columns, MEMORY(a), MEMORY(b),
                MEMORY(x), MEMORY(scratch)) {
  SHARED REAL lanes[LANES];
  const ulong matrix = get_group_id(0);
  const Matrix above = AT(T, a) + matrix * 3 * n, diagonal = above + n, below = diagonal + n;
  const Matrix from = AT(T, b) + matrix * n * columns, to = AT(T, x) + matrix * n * columns;
  const Matrix u = AT(T, scratch) + matrix * 3 * n;
  FOR_LANES(c, 0, columns) {
    for (ulong i = 0; i < n; ++i) to[i * columns + c] = from[i * columns + c];
  }
  // The row that is left.
  T pivot = diagonal[0], first = n > 1 ? above[0] : ZERO, second = ZERO;
  REAL scale = SIZE(pivot) + SIZE(first), largest = 0;
  int has_zero = 0;
  for (ulong i = 0; i < n; ++i) {
    T next_pivot = ZERO, next_first = ZERO;
    if (i + 1 < n) {
      const T under = below[i + 1], beside = diagonal[i + 1], beyond = i + 2 < n ? above[i + 1] : ZERO;
      const REAL next_scale = SIZE(under) + SIZE(beside) + SIZE(beyond);
      if (!exchanges(pivoting, perturb, pivot, under, scale, next_scale)) {
        // Where nothing is below there is nothing to do; a pivot of 0 is met further down.
        const T factor = SAME(under, ZERO) && perturb ? ZERO : DIV(under, pivot);
        next_pivot = beside - MUL(factor, first);
        next_first = beyond;
        SUBTRACT(i + 1, factor, i)
        scale = next_scale;
      } else {
        const T factor = DIV(pivot, under);
        next_pivot = first - MUL(factor, beside);
        next_first = -MUL(factor, beyond);
        pivot = under;
        first = beside;
        second = beyond;
        FOR_LANES(c, 0, columns) {
          const T upper = to[i * columns + c], lower = to[(i + 1) * columns + c];
          to[i * columns + c] = lower;
          to[(i + 1) * columns + c] = SAME(factor, ZERO) ? upper : upper - MUL(factor, lower);
        }
      }
    }
    if (LANE == 0) {
      u[3 * i] = pivot;
      u[3 * i + 1] = first;
      u[3 * i + 2] = second;
    }
    largest = fmax(largest, fmax(SIZE(pivot), fmax(SIZE(first), SIZE(second))));
    has_zero |= SAME(pivot, ZERO);
    pivot = next_pivot;
    first = next_first;
    second = ZERO;
  }
  SYNC
  if (has_zero && !perturb) {
    FOR_LANES(c, 0, n * columns) to[c] = NOT_A_NUMBER;
    return;
  }
  for (ulong i = n; i-- > 0;) {
    if (i + 1 < n) SUBTRACT(i, u[3 * i + 1], i + 1)
    if (i + 2 < n) SUBTRACT(i, u[3 * i + 2], i + 2)
    T divisor = u[3 * i], times = ONE;
    if (perturb) {
      // Makes a pivot so large that no quotient of its row overflows, in steps that begin with a rounding of the largest
      // element.
      REAL mine = 0;
      FOR_LANES(c, 0, columns) mine = fmax(mine, SIZE(to[i * columns + c]));
      const REAL in_row = largest_of_lanes(mine, lanes);
      REAL step = copysign(fmax(largest * EPSILON, LEAST), RE(divisor));
      for (REAL size = SIZE(divisor); size < 1; size = SIZE(divisor)) {
        if (size < LEAST && size != 0 && in_row * LEAST <= size) {
          divisor *= 1 / LEAST;
          times *= 1 / LEAST;
          break;
        }
        if (size != 0 && in_row <= size / LEAST) break;
        divisor += FROM_REAL(step);
        step *= 2;
      }
    }
    FOR_LANES(c, 0, columns) to[i * columns + c] = DIV(MUL(to[i * columns + c], times), divisor);
  }
}

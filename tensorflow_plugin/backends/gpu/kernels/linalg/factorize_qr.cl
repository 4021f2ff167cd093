// Householder's reflections I - tau v v^H with v(0) = 1, which take what is left of column k to beta e1. The matrix that
// is worked on keeps v below beta.

// `vector` times the rows from k on of columns [begin, columns) of m, in `row`. Those rows then lose * v times that. m
// has `width` columns, and v is column k of `of`, which has `of_width`.
void reflect(Matrix m, const ulong rows, const ulong width, const ulong begin, Matrix of, const ulong of_width,
             const ulong k, const T with, Matrix row) {
  // Each item has columns of its own.
  FOR_LANES(c, begin, width) row[c] = m[k * width + c];
  for (ulong i = k + 1; i < rows; ++i) {
    const T x = CONJ(of[i * of_width + k]);
    FOR_LANES(c, begin, width) row[c] += MUL(x, m[i * width + c]);
  }
  FOR_LANES(c, begin, width) m[k * width + c] -= MUL(with, row[c]);
  for (ulong i = k + 1; i < rows; ++i) {
    const T x = MUL(with, of[i * of_width + k]);
    FOR_LANES(c, begin, width) m[i * width + c] -= MUL(x, row[c]);
  }
}

// The sizes are q [rows, size] and r [size, cols]. The scratch of a matrix has [rows, cols] for the work. It also has a
// tau for each column of the diagonal of r, and a row of the wider of q and r.
kernel void run(const ulong rows, const ulong cols, const ulong size, const ulong scratch_size, MEMORY(a), MEMORY(q),
                MEMORY(r), MEMORY(scratch)) {
  SHARED REAL lanes[LANES];
  const ulong matrix = get_group_id(0), least = min(rows, cols);
  const Matrix from = AT(T, a) + matrix * rows * cols, to_q = AT(T, q) + matrix * rows * size;
  const Matrix to_r = AT(T, r) + matrix * size * cols;
  const Matrix rest = AT(T, scratch) + matrix * scratch_size, taus = rest + rows * cols, row = taus + least;
  FOR_LANES(i, 0, rows * cols) rest[i] = from[i];
  for (ulong k = 0; k < least; ++k) {
    SYNC
    const T head = rest[k * cols + k];
    REAL part = 0;
    FOR_LANES(i, k + 1, rows) part += NORM2(rest[i * cols + k]);
    const REAL tail = sum_of_lanes(part, lanes);
    T tau = ZERO, beta = head;
    if (tail != 0 || IM(head) != 0) {
      const REAL norm = sqrt(NORM2(head) + tail);
      beta = FROM_REAL(RE(head) >= 0 ? -norm : norm);
      tau = CONJ(DIV(beta - head, beta));
      FOR_LANES(i, k + 1, rows) rest[i * cols + k] = DIV(rest[i * cols + k], head - beta);
    }
    SYNC
    if (LANE == 0) {
      rest[k * cols + k] = beta;
      taus[k] = tau;
    }
    reflect(rest, rows, cols, k + 1, rest, cols, k, tau, row);
  }
  SYNC
  FOR_ROWS(i, 0, size, cols) {
    FOR_COLUMNS(j, cols) to_r[i * cols + j] = i <= j ? rest[i * cols + j] : ZERO;
  }
  // q = H0^H H1^H ... applied to the identity, the last one first.
  FOR_ROWS(i, 0, rows, size) {
    FOR_COLUMNS(j, size) to_q[i * size + j] = i == j ? ONE : ZERO;
  }
  for (ulong k = least; k-- > 0;) {
    SYNC
    reflect(to_q, rows, size, k, rest, cols, k, CONJ(taus[k]), row);
  }
}

// a = l l^H. The part of the matrix above the diagonal keeps the adjoint of the part below, so that items read
// neighbours.
kernel void run(const ulong n, MEMORY(a), MEMORY(l)) {
  const ulong matrix = get_group_id(0);
  const Matrix from = AT(T, a) + matrix * n * n, to = AT(T, l) + matrix * n * n;
  FOR_ROWS(i, 0, n, n) {
    FOR_COLUMNS(j, n) to[i * n + j] = j <= i ? from[i * n + j] : ZERO;
  }
  int is_definite = 1;
  for (ulong k = 0; k < n && is_definite; ++k) {
    SYNC
    const REAL pivot = RE(to[k * n + k]);
    if (pivot <= 0) {
      is_definite = 0;
    } else {
      const REAL root = sqrt(pivot);
      SYNC
      FOR_LANES(i, k + 1, n) {
        const T x = to[i * n + k] / root;
        to[i * n + k] = x;
        to[k * n + i] = CONJ(x);
      }
      if (LANE == 0) to[k * n + k] = FROM_REAL(root);
      SYNC
      const ulong rest = n - k - 1;
      FOR_ROWS(i, k + 1, n, rest) {
        const T factor = to[i * n + k];
        FOR_COLUMNS(j, rest) {
          if (k + 1 + j <= i) to[i * n + k + 1 + j] -= MUL(factor, to[k * n + k + 1 + j]);
        }
      }
    }
  }
  SYNC
  FOR_ROWS(i, 0, n, n) {
    FOR_COLUMNS(j, n) {
      if (j > i) {
        to[i * n + j] = ZERO;
      } else if (!is_definite) {
        to[i * n + j] = NOT_A_NUMBER;
      }
    }
  }
}

// In place, with partial pivoting: row i is what was row permutation[i], whose sign goes to all items. 0 where an element
// of u's diagonal is 0, or the first is NaN. `lanes` and `places` are for an element of each item.
int factorize_lu(Matrix m, const ulong n, GLOBAL int *permutation, int *sign, SHARED_POINTER(REAL) lanes, SHARED_POINTER(uint) places) {
  int regular = 1;
  *sign = 1;
  FOR_LANES(i, 0, n) permutation[i] = (int)i;
  for (ulong k = 0; k < n; ++k) {
    // The first of the largest; a NaN is larger than nothing, and stays where it is the first.
    SYNC
    REAL largest = -1;
    ulong best = k;
    FOR_LANES(i, k, n) {
      const REAL size = SIZE(m[i * n + k]);
      if (size > largest) {
        largest = size;
        best = i;
      }
    }
#if LANES > 1
    lanes[LANE] = largest;
    places[LANE] = (uint)best;
    SYNC
    largest = -1;
    for (uint i = 0; i < LANES; ++i) {
      if (lanes[i] > largest || (lanes[i] == largest && places[i] < best)) {
        largest = lanes[i];
        best = places[i];
      }
    }
#endif
    const T head = m[k * n + k];
    if (IS_NAN(head)) best = k;
    const T pivot = m[best * n + k];
    if (SAME(pivot, ZERO) || (k == 0 && IS_NAN(pivot))) regular = 0;
    SYNC
    if (best != k) {
      FOR_LANES(j, 0, n) {
        const T x = m[k * n + j];
        m[k * n + j] = m[best * n + j];
        m[best * n + j] = x;
      }
      if (LANE == 0) {
        const int row = permutation[k];
        permutation[k] = permutation[best];
        permutation[best] = row;
      }
      *sign = -*sign;
    }
    SYNC
    if (SAME(pivot, ZERO)) continue;  // nor is anything below it
    FOR_LANES(i, k + 1, n) m[i * n + k] = DIV(m[i * n + k], pivot);
    SYNC
    const ulong rest = n - k - 1;
    FOR_ROWS(i, k + 1, n, rest) {
      const T factor = m[i * n + k];
      FOR_COLUMNS(j, rest) m[i * n + k + 1 + j] -= MUL(factor, m[k * n + k + 1 + j]);
    }
  }
  SYNC
  return regular;
}

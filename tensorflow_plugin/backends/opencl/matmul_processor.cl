// For processors, whose registers are vectors and whose local memory is memory: an item computes ROWS rows of two
// vectors each. T is the type of a register, SUM the one that products are added in, VECTOR is WIDTH of those.
// DENSE says that the elements of a vector of b can be loaded as one, where they are neighbours.
#pragma OPENCL FP_CONTRACT ON
#define COLUMNS (2 * WIDTH)

kernel void run(const ulong m, const ulong n, const ulong k, const long a_row, const long a_column, const long b_row,
                const long b_column, const long c_row, MEMORY(a), MEMORY(b), MEMORY(c), const int rank, constant long *table) {
  const ulong first_row = (ulong)get_global_id(0) * ROWS, first_column = (ulong)get_global_id(1) * COLUMNS;
  // Where the matrices of this product lie: o0, o1 and o2 elements into a, b and c.
  long o0 = 0, o1 = 0, o2 = 0;
  ulong rest = get_global_id(2);
  for (int d = rank - 1; d >= 0; --d) {
    const long position = rest % (ulong)table[d];
    rest /= (ulong)table[d];
    o0 += position * table[rank + d];
    o1 += position * table[2 * rank + d];
    o2 += position * table[3 * rank + d];
  }
  // Rows and columns beyond the last are that again, and not stored.
  long of_a[ROWS];
  for (int i = 0; i < ROWS; ++i) of_a[i] = o0 + (long)min(first_row + i, m - 1) * a_row;
  VECTOR sums[ROWS][2];
  for (int i = 0; i < ROWS; ++i) sums[i][0] = sums[i][1] = (VECTOR)0;
#if DENSE
  if (b_column == 1 && first_column + COLUMNS <= n) {
    const global SUM *from = AT(SUM, b) + o1 + first_column;
    for (ulong l = 0; l < k; ++l, from += b_row) {
      const VECTOR left = LOAD_VECTOR(0, from), right = LOAD_VECTOR(0, from + WIDTH);
      for (int i = 0; i < ROWS; ++i) {
        const SUM x = (SUM)LOAD_A(of_a[i] + (long)l * a_column);
        sums[i][0] += x * left;
        sums[i][1] += x * right;
      }
    }
  } else
#endif
  {
    long of_b[COLUMNS];
    for (int j = 0; j < COLUMNS; ++j) of_b[j] = o1 + (long)min(first_column + j, n - 1) * b_column;
    for (ulong l = 0; l < k; ++l) {
      SUM row[COLUMNS];
      for (int j = 0; j < COLUMNS; ++j) row[j] = (SUM)LOAD_B(of_b[j] + (long)l * b_row);
      const VECTOR left = LOAD_VECTOR(0, row), right = LOAD_VECTOR(0, row + WIDTH);
      for (int i = 0; i < ROWS; ++i) {
        const SUM x = (SUM)LOAD_A(of_a[i] + (long)l * a_column);
        sums[i][0] += x * left;
        sums[i][1] += x * right;
      }
    }
  }
  for (int i = 0; i < ROWS && first_row + i < m; ++i) {
    SUM row[COLUMNS];
    STORE_VECTOR(sums[i][0], 0, row);
    STORE_VECTOR(sums[i][1], 0, row + WIDTH);
    for (int j = 0; j < COLUMNS && first_column + j < n; ++j) {
      const T value = (T)row[j];
      STORE_C(o2 + (long)(first_row + i) * c_row + (long)(first_column + j), value);
    }
  }
}

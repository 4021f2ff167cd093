// For processors, whose registers are vectors and whose local memory is memory: an item computes ROWS rows of two
// vectors each. SUM is what products are added in, VECTOR is WIDTH of those. DENSE says that the elements of a vector of
// b can be loaded as one, where they are neighbours. In front of this stand the operands (product.h).
#pragma OPENCL FP_CONTRACT ON
#define COLUMNS (2 * WIDTH)

// Written out, as arrays become registers only where each index is a number.
#define ROWS 6
#define EACH_ROW(STATEMENT) STATEMENT(0) STATEMENT(1) STATEMENT(2) STATEMENT(3) STATEMENT(4) STATEMENT(5)

// A row of b, in `left` and `right`, times an element of row i of a.
#define ADD_PRODUCT(i, element) \
  {                             \
    const SUM x = element;      \
    sums[i][0] += x * left;     \
    sums[i][1] += x * right;    \
  }
#define ADD_THERE(i) ADD_PRODUCT(i, (SUM)LOAD_A(at_a[i] + (long)l * A_STEP))
#define ADD_MAYBE(i) ADD_PRODUCT(i, element_or_0(PASS(a), IS_THERE(i, l), at_a[i] + (long)l * A_STEP))
#define NOTHING_YET(i) sums[i][0] = sums[i][1] = (VECTOR)0;
#define STORE_ROW(i)                                                                                              \
  if (first_row + i < m) {                                                                                        \
    SUM row[COLUMNS];                                                                                             \
    STORE_VECTOR(sums[i][0], 0, row);                                                                             \
    STORE_VECTOR(sums[i][1], 0, row + WIDTH);                                                                     \
    for (int j = 0; j < COLUMNS && first_column + j < n; ++j) STORE(first_row + i, first_column + j, row[j]);     \
  }

// Without a branch: instead of what is not there, the first of all is read.
SUM element_or_0(MEMORY(a), int is_there, long at) {
  const long at_any = is_there ? at : 0;
  const SUM x = (SUM)LOAD_A(at_any);
  return is_there ? x : 0;
}

kernel void run(const ulong m, const ulong n, const ulong k, PARAMETERS) {
  // Rows and columns beyond the last are that again, and not stored.
  const ulong first_row = (ulong)get_global_id(0) * ROWS, first_column = (ulong)get_global_id(1) * COLUMNS;
  BEGIN(get_global_id(2))
  VECTOR sums[ROWS][2];
  EACH_ROW(NOTHING_YET)
  // Where the elements of a segment begin, of each row of a, and of b.
  long at_a[ROWS], at_b;
  ROWS_BEGIN
  EACH_ROW(ROW)
  for (ulong s = SEGMENT_BEGIN; s < SEGMENT_END; ++s) {
    ulong l_begin = 0, l_end = LENGTH;
    int all_there = 1;
    SEGMENT
    EACH_ROW(SEGMENT_ROW)
    SEGMENT_READY
#if DENSE
    if (B_ROWS_ARE_DENSE && first_column + COLUMNS <= n) {
      const GLOBAL SUM *from = AT(SUM, b) + at_b + first_column + (long)l_begin * B_STEP;
      if (all_there) {
        for (ulong l = l_begin; l < l_end; ++l, from += B_STEP) {
          const VECTOR left = LOAD_VECTOR(0, from), right = LOAD_VECTOR(0, from + WIDTH);
          EACH_ROW(ADD_THERE)
        }
      } else {
        for (ulong l = l_begin; l < l_end; ++l, from += B_STEP) {
          const VECTOR left = LOAD_VECTOR(0, from), right = LOAD_VECTOR(0, from + WIDTH);
          EACH_ROW(ADD_MAYBE)
        }
      }
    } else
#endif
    {
      long of_b[COLUMNS];
      for (int j = 0; j < COLUMNS; ++j) of_b[j] = at_b + (long)min(first_column + j, n - 1) * B_COLUMN_STEP;
      for (ulong l = l_begin; l < l_end; ++l) {
        SUM row[COLUMNS];
        for (int j = 0; j < COLUMNS; ++j) row[j] = (SUM)LOAD_B(of_b[j] + (long)l * B_STEP);
        const VECTOR left = LOAD_VECTOR(0, row), right = LOAD_VECTOR(0, row + WIDTH);
        EACH_ROW(ADD_MAYBE)
      }
    }
  }
  EACH_ROW(STORE_ROW)
}

// As product_processor.cl, for complex numbers. An item computes ROWS rows of WIDTH columns, the real and the imaginary
// parts in vectors of their own. So a product is four products of vectors. In front of this stand the operands
// (product.h), REAL, the type of a part, and the matrices' signs.
#pragma OPENCL FP_CONTRACT ON
#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define VECTOR PASTE(REAL, WIDTH)
#define LOAD_VECTOR PASTE(vload, WIDTH)
#define STORE_VECTOR PASTE(vstore, WIDTH)

// Written out, as arrays become registers only where each index is a number.
#define ROWS 6
#define EACH_ROW(STATEMENT) STATEMENT(0) STATEMENT(1) STATEMENT(2) STATEMENT(3) STATEMENT(4) STATEMENT(5)

#define NOTHING_YET(i) re[i] = im[i] = (VECTOR)0;
#define ADD_PRODUCT(i)                                                                     \
  {                                                                                        \
    const T x = LOAD_A(at_a[i] + (long)l * A_STEP);                                        \
    const REAL y = a_sign * x.y;                                                           \
    re[i] += x.x * b_re;                                                                   \
    re[i] -= y * b_im;                                                                     \
    im[i] += x.x * b_im;                                                                   \
    im[i] += y * b_re;                                                                     \
  }
#define STORE_ROW(i)                                                                 \
  if (first_row + i < m) {                                                           \
    REAL row_re[WIDTH], row_im[WIDTH];                                               \
    STORE_VECTOR(re[i], 0, row_re);                                                  \
    STORE_VECTOR(im[i], 0, row_im);                                                  \
    for (int j = 0; j < WIDTH && first_column + j < n; ++j) {                        \
      const T sum = (T)(row_re[j], row_im[j]);                                       \
      STORE(first_row + i, first_column + j, sum);                                   \
    }                                                                                \
  }

kernel void run(const ulong m, const ulong n, const ulong k, PARAMETERS) {
  // Rows and columns beyond the last are that again, and not stored.
  const ulong first_row = (ulong)get_global_id(0) * ROWS, first_column = (ulong)get_global_id(1) * WIDTH;
  BEGIN(get_global_id(2))
  VECTOR re[ROWS], im[ROWS];
  EACH_ROW(NOTHING_YET)
  // Where the elements begin, of each row of a, and of b.
  long at_a[ROWS], at_b;
  ROWS_BEGIN
  EACH_ROW(ROW)
  SEGMENT
  if (B_ROWS_ARE_DENSE && first_column + WIDTH <= n) {
    const GLOBAL REAL *from = AT(REAL, b) + 2 * (at_b + (long)first_column);
    for (ulong l = 0; l < k; ++l, from += 2 * B_STEP) {
      const PASTE(REAL, PAIRS) pairs = PASTE(vload, PAIRS)(0, from);
      const VECTOR b_re = pairs.even, b_im = b_sign * pairs.odd;
      EACH_ROW(ADD_PRODUCT)
    }
  } else {
    long of_b[WIDTH];
    for (int j = 0; j < WIDTH; ++j) of_b[j] = at_b + (long)min(first_column + j, n - 1) * B_COLUMN_STEP;
    for (ulong l = 0; l < k; ++l) {
      REAL row_re[WIDTH], row_im[WIDTH];
      for (int j = 0; j < WIDTH; ++j) {
        const T x = LOAD_B(of_b[j] + (long)l * B_STEP);
        row_re[j] = x.x;
        row_im[j] = b_sign * x.y;
      }
      const VECTOR b_re = LOAD_VECTOR(0, row_re), b_im = LOAD_VECTOR(0, row_im);
      EACH_ROW(ADD_PRODUCT)
    }
  }
  EACH_ROW(STORE_ROW)
}

// The operands of a product of strided matrices. T is the type of a register.

// A conjugate operand has the sign -1.
#ifdef COMPLEX
#define SIGNS const REAL a_sign, const REAL b_sign,
#define SIGNED(x, sign) ((x) * MAKE2(T, 1, sign))
#else
#define SIGNS
#define SIGNED(x, sign) (x)
#endif

#define PARAMETERS                                                                                                \
  const long a_row, const long a_column, const long b_row, const long b_column, const long c_row, SIGNS MEMORY(a), \
      MEMORY(b), MEMORY(c), const int rank, CONSTANT long *batch_table EPILOGUE_PARAMETERS

// Where the matrices of this product lie: o0, o1 and o2 elements into a, b and c.
#define BEGIN(batch)                                        \
  long o0 = 0, o1 = 0, o2 = 0;                              \
  {                                                         \
    ulong rest = batch;                                     \
    for (int d = rank - 1; d >= 0; --d) {                   \
      const long position = rest % (ulong)batch_table[d];   \
      rest /= (ulong)batch_table[d];                        \
      o0 += position * batch_table[rank + d];               \
      o1 += position * batch_table[2 * rank + d];           \
      o2 += position * batch_table[3 * rank + d];           \
    }                                                       \
  }

#define STORE(row, column, sum)                                \
  {                                                            \
    const T value = (T)(sum);                                  \
    FINISH(o2 + (long)(row)*c_row + (long)(column), value);    \
  }

#define K_BEGIN 0
#define K_END k
// For tiles: where rows, columns and terms lie.
#define A_ROW long
#define A_TERM long
#define B_TERM long
#define B_COLUMN long
#define A_ROW_AT(row) (o0 + (long)(row)*a_row)
#define A_TERM_AT(l) ((long)(l)*a_column)
#define B_TERM_AT(l) (o1 + (long)(l)*b_row)
#define B_COLUMN_AT(column) ((long)(column)*b_column)
#define A(of_row, of_term) SIGNED((SUM)(LOAD_A((of_row) + (of_term))), a_sign)
#define B(of_term, of_column) SIGNED((SUM)(LOAD_B((of_term) + (of_column))), b_sign)

#define B_ROWS_ARE_DENSE (b_column == 1)

#define SEGMENT_BEGIN 0
#define SEGMENT_END 1
#define LENGTH k
#define ROWS_BEGIN
#define ROW(i) at_a[i] = o0 + (long)min(first_row + i, m - 1) * a_row;
#define SEGMENT at_b = o1;
#define SEGMENT_ROW(i)
#define SEGMENT_READY
#define IS_THERE(i, l) 1
#define A_STEP a_column
#define B_STEP b_row
#define B_COLUMN_STEP b_column

// Matrices of T, real or complex, whose parts are REAL; a group of LANES items works on each. In front of this stand
// LANES and, of complex types, COMPLEX and their functions (complex.cl).
#ifdef COMPLEX
#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define MUL PASTE(T, _mul)
#define DIV PASTE(T, _div)
#define CONJ PASTE(T, _conj)
#define NORM2 PASTE(T, _squared_abs)
#define SIZE PASTE(T, _abs)
#define RE(z) ((z).x)
#define IM(z) ((z).y)
#define FROM_REAL(x) MAKE2(T, x, 0)
#define SAME(z, w) ((z).x == (w).x && (z).y == (w).y)
#else
#define MUL(x, y) ((x) * (y))
#define DIV(x, y) ((x) / (y))
#define CONJ(x) (x)
#define NORM2(x) ((x) * (x))
#define SIZE(x) fabs(x)
#define RE(x) (x)
#define IM(x) ((REAL)0)
#define FROM_REAL(x) (x)
#define SAME(x, y) ((x) == (y))
#endif
#define ZERO SPLAT(T, 0)
#define ONE FROM_REAL((REAL)1)
#define IS_NAN(x) (isnan(RE(x)) || isnan(IM(x)))
#define IS_FINITE(x) (isfinite(RE(x)) && isfinite(IM(x)))
#define NOT_A_NUMBER FROM_REAL((REAL)NAN)

typedef GLOBAL T *Matrix;

// All items of a group have come here, and see what the others have written.
#if LANES == 1
#define SYNC
#else
#define SYNC barrier(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE);
#endif

// An item's place in its group.
#define LANE ((ulong)get_local_id(0))
// for (i = begin; i < end), the items in turns.
#define FOR_LANES(i, begin, end) for (ulong i = (begin) + LANE; i < (end); i += LANES)

// For elements [rows, columns] of a matrix: of few columns an item has one, and of the rows those that are its turn.
#if LANES == 1
#define COLUMN_LANES(columns) ((ulong)1)
#else
#define COLUMN_LANES(columns) min((ulong)LANES, max((ulong)(columns), (ulong)1))
#endif
#define FOR_ROWS(r, begin, end, columns)                                             \
  for (ulong r = (begin) + LANE / COLUMN_LANES(columns),                             \
             r##_step = LANES / COLUMN_LANES(columns);                               \
       LANE < r##_step * COLUMN_LANES(columns) && r < (end); r += r##_step)
#define FOR_COLUMNS(c, columns) \
  for (ulong c = LANE % COLUMN_LANES(columns); c < (columns); c += COLUMN_LANES(columns))

// Takes a value from each item, in the order of the items, for all of them.
#if LANES == 1
#define OF_LANES(name, JOINED) \
  REAL name(const REAL mine, SHARED_POINTER(REAL) lanes) { return mine; }
#else
#define OF_LANES(name, JOINED)                                                \
  REAL name(const REAL mine, SHARED_POINTER(REAL) lanes) {                             \
    SYNC                                                                      \
    lanes[LANE] = mine;                                                       \
    SYNC                                                                      \
    REAL all = lanes[0];                                                      \
    for (uint i = 1; i < LANES; ++i) all = JOINED(all, lanes[i]);             \
    return all;                                                               \
  }
#endif
#define PLUS(x, y) ((x) + (y))
OF_LANES(sum_of_lanes, PLUS)
OF_LANES(largest_of_lanes, fmax)
T whole_sum_of_lanes(const T mine, SHARED_POINTER(REAL) lanes) {
#ifdef COMPLEX
  const REAL re = sum_of_lanes(mine.x, lanes);
  return MAKE2(T, re, sum_of_lanes(mine.y, lanes));
#else
  return sum_of_lanes(mine, lanes);
#endif
}
int any_of_lanes(const int mine, SHARED_POINTER(REAL) lanes) { return sum_of_lanes(mine ? 1 : 0, lanes) != 0; }

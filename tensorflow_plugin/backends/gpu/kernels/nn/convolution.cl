// The operands of a convolution as a product, and its geometry. T is the type of a register.
//
// A position is an image and a cell of the array that is dense over positions. A tap is a cell of the filter and a
// channel of the source. Together they say which element of the source meets which of the filter:
//   source cell = (position's cell * SCALE + tap's cell * SPREAD + SHIFT) / DIVISOR, if that is whole and inside
//                        source   dense over positions   product
//   forward              x        y                      y [positions, columns] = source [positions, taps] filter
//   gradient to data     dy       dx                     dx, likewise, with the filter's channels exchanged
//   gradient to filter   x        dy                     filter [taps, columns] = source [taps, positions] dy
// There is one product for each group of channels, and the last kind may be cut along its positions into parts.
#define POSITIONS(d) ((int)shape[d])
#define FILTER(d) ((int)shape[3 + (d)])
#define SOURCE(d) ((int)shape[6 + (d)])
#define SCALE(d) ((int)shape[9 + (d)])
#define SPREAD(d) ((int)shape[12 + (d)])
#define SHIFT(d) ((int)shape[15 + (d)])
#define DIVISOR(d) (DIVIDES ? (int)shape[18 + (d)] : 1)
#define SOURCE_STEP(d) shape[21 + (d)]  // in elements
#define SOURCE_IMAGE shape[24]
#define SOURCE_CHANNEL shape[25]
#define CHANNELS ((uint)shape[26])  // of the source, in a group
#define CELLS ((uint)shape[27])     // of the positions of an image
#define DENSE_IMAGE shape[28]
#define DENSE_CELL shape[29]
#define DENSE_CHANNEL shape[30]
#define DENSE_CHANNELS ((ulong)shape[36])  // of all groups

// AXES of the three, the last ones, are more than one cell: the others need not be looked at.
#define FIRST_AXIS (3 - AXES)

// The amounts that a position or a tap adds to a cell's coordinates, before the division, and to the place of its
// elements.
typedef struct {
  int cell[3];
  long at;
} Point;

Point position_at(CONSTANT long *shape, uint position) {
  Point p;
  uint rest = position % CELLS;
  p.at = (long)(position / CELLS) * SOURCE_IMAGE;
  p.cell[0] = p.cell[1] = 0;
  for (int d = 2; d >= FIRST_AXIS; --d) {
    p.cell[d] = (int)(d == FIRST_AXIS ? rest : rest % (uint)POSITIONS(d)) * SCALE(d);
    rest /= (uint)POSITIONS(d);
  }
  return p;
}

Point tap_at(CONSTANT long *shape, uint tap) {
  Point p;
  uint rest = tap / CHANNELS;
  p.at = (long)(tap % CHANNELS) * SOURCE_CHANNEL;
  p.cell[0] = p.cell[1] = 0;
  for (int d = 2; d >= FIRST_AXIS; --d) {
    p.cell[d] = (int)(d == FIRST_AXIS ? rest : rest % (uint)FILTER(d)) * SPREAD(d) + SHIFT(d);
    rest /= (uint)FILTER(d);
  }
  return p;
}

// Where their element of the source lies, in *at; whether there is one. For the axes beyond `axes` it has coordinates
// as they come, which a caller who walks along them looks at.
int meets(CONSTANT long *shape, const Point *a, const Point *b, int axes, long *at) {
  int inside = 1;
  *at = a->at + b->at;
  for (int d = FIRST_AXIS; d < 3; ++d) {
    int cell = a->cell[d] + b->cell[d];
    if (d < axes) {
      const int divisor = DIVISOR(d);
      if (divisor != 1) {
        inside &= cell % divisor == 0;
        inside &= cell >= 0;
        cell /= divisor;
      }
      inside &= cell >= 0 && cell < SOURCE(d);
    }
    *at += (long)cell * SOURCE_STEP(d);
  }
  return inside;
}

long dense_at(CONSTANT long *shape, uint position) {
  return (long)(position / CELLS) * DENSE_IMAGE + (long)(position % CELLS) * DENSE_CELL;
}

// `step` positions belong to a part.
#define PARAMETERS                                                                                           \
  MEMORY(a), MEMORY(b), MEMORY(c), MEMORY(partials), const uint parts, const uint step, CONSTANT long *shape \
      EPILOGUE_PARAMETERS

// o0, o1: where the group's channels begin in the source and in b; `columns` are those of all groups.
#define BEGIN(batch)                                                    \
  const uint part = (batch) % parts, group = (batch) / parts;           \
  const ulong columns = DENSE_CHANNELS;                                 \
  const long o0 = (long)(group * CHANNELS) * SOURCE_CHANNEL;            \
  const long o1 = (long)group * (long)n * (TO_FILTER ? DENSE_CHANNEL : 1);

#if TO_FILTER

// On processors there are more rows than channels for a cell of the filter, so that an item's rows are of one cell.
#define ROW_CHANNELS ((uint)shape[35])
#define STORE(row, column, sum)                                                            \
  if ((row) % ROW_CHANNELS < CHANNELS) {                                                   \
    const ulong tap = (row) / ROW_CHANNELS * CHANNELS + (row) % ROW_CHANNELS;              \
    const ulong element = tap * columns + group * n + (column);                            \
    if (parts > 1) {                                                                       \
      AT(SUM, partials)[part * (m / ROW_CHANNELS * CHANNELS) * columns + element] = sum;   \
    } else {                                                                               \
      FINISH(element, sum);                                                                \
    }                                                                                      \
  }
#define K_BEGIN (part * (ulong)step)
#define K_END min(k, (part + 1) * (ulong)step)
#define A_ROW_AT(row) tap_at(shape, (uint)(row))  // ROW_CHANNELS are CHANNELS
#define A_TERM_AT(l) position_at(shape, (uint)(l))
#define B_TERM_AT(l) (o1 + dense_at(shape, (uint)(l)))
#define B_COLUMN_AT(column) ((long)(column)*DENSE_CHANNEL)
#define B_ROWS_ARE_DENSE (DENSE_CHANNEL == 1)

// A segment is the positions along the last axis.
#define LENGTH ((uint)POSITIONS(2))
#define SEGMENT_BEGIN first_segment
#define SEGMENT_END last_segment
#define ROWS_BEGIN                                                                                \
  Point rows[ROWS];                                                                               \
  uint begin[ROWS], count[ROWS], there[ROWS];                                                     \
  /* Rows that are channels of one cell of the filter are looked for once. */                     \
  const int one_cell = ROW_CHANNELS % ROWS == 0;                                                  \
  const uint first_segment = (uint)K_BEGIN / LENGTH, last_segment = (uint)K_END / LENGTH;              \
  /* Of the next segment. */                                                                      \
  int next_line = (int)(first_segment % (uint)POSITIONS(1));                                      \
  int next_plane = (int)(first_segment / (uint)POSITIONS(1) % (uint)POSITIONS(0));                \
  long next_image = (long)(first_segment / ((uint)POSITIONS(0) * (uint)POSITIONS(1)));
#define ROW(i)                                                                                    \
  {                                                                                               \
    const uint row = (uint)min(first_row + i, m - 1);                                             \
    const uint channel = min(row % ROW_CHANNELS, CHANNELS - 1);                                   \
    rows[i] = tap_at(shape, row / ROW_CHANNELS * CHANNELS + channel);                             \
    const int scale = SCALE(2), first = rows[i].cell[2], room = SOURCE(2) - first;                \
    begin[i] = first >= 0 ? 0 : (uint)(-first + scale - 1) / (uint)scale;                         \
    const uint end = room <= 0 ? 0 : min(LENGTH, (uint)(room + scale - 1) / (uint)scale);         \
    count[i] = end > begin[i] ? end - begin[i] : 0;                                               \
    rows[i].at += o0 + (long)first * SOURCE_STEP(2);                                              \
  }
#define SEGMENT                                                                                   \
  const int plane = next_plane * SCALE(0), line = next_line * SCALE(1);                           \
  const long at_image = next_image * SOURCE_IMAGE;                                                \
  at_b = (long)(next_plane * POSITIONS(1) + next_line) * LENGTH * DENSE_CELL;                     \
  at_b += o1 + next_image * DENSE_IMAGE;                                                          \
  if (++next_line == POSITIONS(1)) {                                                              \
    next_line = 0;                                                                                \
    if (++next_plane == POSITIONS(0)) {                                                           \
      next_plane = 0;                                                                             \
      ++next_image;                                                                               \
    }                                                                                             \
  }                                                                                               \
  int any_there = 0;
#define SEGMENT_ROW(i)                                                                            \
  if (i == 0 || !one_cell) {                                                                      \
    const int y = plane + rows[i].cell[0], x = line + rows[i].cell[1];                            \
    there[i] = y >= 0 && y < SOURCE(0) && x >= 0 && x < SOURCE(1) ? count[i] : 0;                 \
    at_a[i] = at_image + rows[i].at + (long)y * SOURCE_STEP(0) + (long)x * SOURCE_STEP(1);        \
  } else {                                                                                        \
    there[i] = there[0];                                                                          \
    at_a[i] = at_a[0] + rows[i].at - rows[0].at;                                                  \
  }                                                                                               \
  all_there &= there[i] == LENGTH;                                                                \
  any_there |= there[i] != 0;
#define SEGMENT_READY                                                                             \
  if (!any_there) continue;                                                                       \
  if (one_cell) {                                                                                 \
    all_there = 1;                                                                                \
    l_begin = begin[0];                                                                           \
    l_end = begin[0] + there[0];                                                                  \
  }
#define IS_THERE(i, l) ((uint)(l)-begin[i] < there[i])
#define A_STEP ((long)SCALE(2) * SOURCE_STEP(2))
#define B_STEP DENSE_CELL
#define B_COLUMN_STEP DENSE_CHANNEL

#else

#define STORE(row, column, sum) \
  FINISH(dense_at(shape, (uint)(row)) + (long)(group * n + (column)) * DENSE_CHANNEL, sum);
#define K_BEGIN 0
#define K_END k
#define A_ROW_AT(row) position_at(shape, (uint)(row))
#define A_TERM_AT(l) tap_at(shape, (uint)(l))
#define B_TERM_AT(l) (o1 + (long)((l)*columns))
#define B_COLUMN_AT(column) ((long)(column))
#define B_ROWS_ARE_DENSE 1

// A segment is the channels of a cell of the filter.
#define LENGTH CHANNELS
#define SEGMENT_BEGIN 0
#define SEGMENT_END (uint)k / LENGTH
#define ROWS_BEGIN  \
  Point rows[ROWS]; \
  uint there[ROWS];
#define ROW(i) rows[i] = position_at(shape, (uint)min(first_row + i, m - 1));
#define SEGMENT                                                 \
  const Point segment = tap_at(shape, (uint)s * LENGTH);        \
  at_b = o1 + (long)(s * LENGTH * columns);
#define SEGMENT_ROW(i)                                          \
  there[i] = (uint)meets(shape, &rows[i], &segment, 3, &at_a[i]); \
  at_a[i] += o0;                                                \
  all_there &= (int)there[i];
#define SEGMENT_READY
#define IS_THERE(i, l) there[i]
#define A_STEP SOURCE_CHANNEL
#define B_STEP columns
#define B_COLUMN_STEP 1

#endif

// For tiles: what rows, columns and terms are made of.
#define A_ROW Point
#define A_TERM Point
#define B_TERM long
#define B_COLUMN long
#define A(of_row, of_term) source(shape, PASS(a), o0, &(of_row), &(of_term))
#define B(of_term, of_column) ((SUM)(LOAD_B((of_term) + (of_column))))

SUM source(CONSTANT long *shape, MEMORY(a), long o0, const Point *p, const Point *q) {
  long at;
  return meets(shape, p, q, 3, &at) ? (SUM)LOAD_A(o0 + at) : 0;
}

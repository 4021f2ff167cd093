// These stand before this source: row_of (indices.h), and for an update that computes the following names. T is a
// register and ROUND(x) the register that a stored x is read as. LOAD_UPDATE(i), LOAD_BUFFER(i) and STORE_BUFFER(i, x)
// move elements. COMBINE(old, update) computes, and DIVIDES says that it is a division of integers. For an update that
// replaces: UNIT, the unit of elements, and how many of it a scalar update has.
//
// Updates are sorted by the rows that they go to, and stay in their order in each. An item then updates one element of a
// row with all that there is for it: the result does not depend on who comes first.
//
// The sort takes 8 bits of the rows at a time, the lowest first. Each of some items counts its stretch of the updates,
// one item makes positions of the counts, and each item puts its stretch there. Index j of no row is in row `rows`.
#define STEP_ROWS 0
#define STEP_COUNT 1
#define STEP_POSITIONS 2
#define STEP_PLACE 3
#define STEP_UPDATE 4
#define DIGITS 256

kernel void run(const int step, const ulong n, const ulong units, const ulong rows, const int depth,
                CONSTANT long *dims, const ulong stretch, const ulong stretches, const int shift,
                const int scalar_update, const int skip_negative, MEMORY(indices), MEMORY(updates), MEMORY(buffer), MEMORY(from_rows),
                MEMORY(from_order), MEMORY(to_rows), MEMORY(to_order), MEMORY(counts), MEMORY(report)) {
  const ulong id = get_global_id(0);
  GLOBAL uint *row_of_place = AT(uint, from_rows), *order = AT(uint, from_order);
  if (step == STEP_ROWS) {
    if (id >= n) return;
    int any_negative;
    const long row = row_of(id, PASS(indices), depth, dims, &any_negative);
    row_of_place[id] = row < 0 ? (uint)rows : (uint)row;
    order[id] = (uint)id;
  } else if (step == STEP_COUNT) {
    if (id >= stretches) return;
    // Digit by digit, so that one scan makes positions: [DIGITS, stretches].
    GLOBAL uint *count = AT(uint, counts) + id;
    for (uint d = 0; d < DIGITS; ++d) count[d * stretches] = 0;
    for (ulong i = id * stretch; i < min(n, (id + 1) * stretch); ++i) {
      ++count[(row_of_place[i] >> shift & (DIGITS - 1)) * stretches];
    }
  } else if (step == STEP_POSITIONS) {
    if (id != 0) return;
    uint before = 0;
    for (ulong i = 0; i < DIGITS * stretches; ++i) {
      const uint count = AT(uint, counts)[i];
      AT(uint, counts)[i] = before;
      before += count;
    }
  } else if (step == STEP_PLACE) {
    if (id >= stretches) return;
    GLOBAL uint *position = AT(uint, counts) + id;
    for (ulong i = id * stretch; i < min(n, (id + 1) * stretch); ++i) {
      const uint to = position[(row_of_place[i] >> shift & (DIGITS - 1)) * stretches]++;
      AT(uint, to_rows)[to] = row_of_place[i];
      AT(uint, to_order)[to] = order[i];
    }
  } else {
    const ulong place = id / units, unit = id % units;
    if (place >= n) return;
    const uint row = row_of_place[place];
    if (row == rows) {
      int any_negative;
      row_of(order[place], PASS(indices), depth, dims, &any_negative);
      if (unit == 0 && !(skip_negative && any_negative)) FAIL(order[place]);
      return;
    }
    if (place != 0 && row_of_place[place - 1] == row) return;
    const ulong at = (ulong)row * units + unit;
#ifdef COMBINE
    T value = LOAD_BUFFER(at);
    for (ulong i = place; i < n && row_of_place[i] == row; ++i) {
      const T update = LOAD_UPDATE(scalar_update ? 0 : order[i] * units + unit);
#ifdef DIVIDES
      if (update == 0) FAIL(n + order[i] * units + unit);
#endif
      const T combined = COMBINE(value, update);
      value = ROUND(combined);
    }
    STORE_BUFFER(at, value);
#else
    ulong last = place;
    while (last + 1 < n && row_of_place[last + 1] == row) ++last;
    AT(UNIT, buffer)[at] = AT(UNIT, updates)[scalar_update ? unit % SCALAR_UNITS : order[last] * units + unit];
#endif
  }
}

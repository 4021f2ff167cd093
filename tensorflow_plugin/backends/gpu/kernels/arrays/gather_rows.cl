// As gather.cl, for devices that are no processors: `items` items, a power of two, move a piece of a row. Each moves
// EACH words, all of which are on their way at a time, and reads the row's index once. In front of this stand row_of
// (indices.h); UNIT, a word; and INDEX, which counts items, with DIVIDE (walk.h). A row has `units` words in pieces.
// by_... are divisors.
kernel void run(const ulong rows_out, const ulong units, const int items_log2, const ulong pieces,
                const ulong by_pieces, const ulong num_indices, const ulong by_num_indices, const ulong by_outer,
                const ulong rows, const int depth, CONSTANT long *dims, MEMORY(params), MEMORY(indices), MEMORY(out),
                MEMORY(report)) {
  const INDEX id = get_global_id(0), work = id >> items_log2, to = DIVIDE(work, by_pieces);
  if (to >= rows_out) return;
  const uint items = 1u << items_log2, item = (uint)id & (items - 1);
  const INDEX array = DIVIDE(to, by_num_indices), j = to - array * (INDEX)num_indices;
  const INDEX index = DIVIDE(array, by_outer) * (INDEX)num_indices + j;
  int any_negative;
  const long row = row_of(index, PASS(indices), depth, dims, &any_negative);
  if (row < 0 && item == 0) FAIL(index);
  const GLOBAL UNIT *from = AT(UNIT, params) + ((ulong)array * rows + (ulong)(row < 0 ? 0 : row)) * units;
  GLOBAL UNIT *there = AT(UNIT, out) + (ulong)to * units;
  const ulong first = (ulong)(work - to * (INDEX)pieces) * (items * EACH) + item;
  UNIT words[EACH];
#pragma unroll
  for (uint k = 0; k < EACH; ++k) {
    words[k] = ZERO;
    if (row >= 0 && first + k * items < units) words[k] = from[first + k * items];
  }
#pragma unroll
  for (uint k = 0; k < EACH; ++k) {
    if (first + k * items < units) there[first + k * items] = words[k];
  }
}

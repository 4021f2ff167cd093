// In front of this stand row_of (indices.h) and UNIT, what elements are made of, and INDEX, which counts items. An item moves one unit of a row, of
// which there are `units` each; of rows without any it judges the index. Batches are [batch, outer] of out's and of
// params' rows, and [batch] of indices.
kernel void run(const ulong items, const ulong units, const ulong num_indices, const ulong outer, const ulong rows,
                const int depth, CONSTANT long *dims, MEMORY(params), MEMORY(indices), MEMORY(out), MEMORY(report)) {
  const INDEX id = get_global_id(0);
  if (id >= items) return;
  const INDEX unit = units == 0 ? 0 : id % (INDEX)units, to = units == 0 ? id : id / (INDEX)units;
  const INDEX j = to % (INDEX)num_indices, array = to / (INDEX)num_indices;
  const INDEX index = array / (INDEX)outer * (INDEX)num_indices + j;
  int any_negative;
  const long row = row_of(index, PASS(indices), depth, dims, &any_negative);
  if (row < 0) FAIL(index);
  if (units != 0) {
    AT(UNIT, out)[id] = row < 0 ? 0 : AT(UNIT, params)[((ulong)array * rows + (ulong)row) * units + unit];
  }
}

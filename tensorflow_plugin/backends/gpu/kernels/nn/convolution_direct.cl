// Convolutions of few channels per group, such as depthwise ones. An item computes one element of the result, or for a
// gradient to the filter a part of one. In front of this stand the geometry of convolution.cl, LOAD_A, LOAD_B, FINISH
// and SUM. `n` is the columns of a group, `k` the positions or the taps.
#if TO_FILTER

kernel void run(const ulong items, const uint n, const uint groups, const uint k, MEMORY(a), MEMORY(b), MEMORY(c),
                MEMORY(partials), const uint parts, const uint step, CONSTANT long *shape EPILOGUE_PARAMETERS) {
  const ulong id = get_global_id(0);
  if (id >= items * parts) return;
  const uint columns = n * groups, part = (uint)(id / items), element = (uint)(id % items);
  const uint column = element % columns, group = column / n;
  const Point tap = tap_at(shape, element / columns);
  const uint length = (uint)POSITIONS(2);
  const uint end = min(k, (part + 1) * step) / length;
  SUM total = 0;
  for (uint s = part * step / length; s < end; ++s) {
    // Positions along the last axis, of which some meet nothing.
    const Point first = position_at(shape, s * length);
    long at_a;
    if (!meets(shape, &first, &tap, 2, &at_a)) continue;
    at_a += (long)(group * CHANNELS) * SOURCE_CHANNEL;
    const long at_b = dense_at(shape, s * length) + (long)column * DENSE_CHANNEL;
    SUM sum = 0;
    for (uint l = 0; l < length; ++l) {
      const int cell = tap.cell[2] + (int)l * SCALE(2);
      if (cell < 0 || cell >= SOURCE(2)) continue;
      const SUM x = LOAD_A(at_a + (long)l * SCALE(2) * SOURCE_STEP(2)), y = LOAD_B(at_b + (long)l * DENSE_CELL);
      sum += x * y;
    }
    total += sum;
  }
  if (parts > 1) {
    AT(SUM, partials)[id] = total;
  } else {
    FINISH(element, total);
  }
}

#else

// The table ends with steps that lead to the filter's element: FILTER_CELL, FILTER_CHANNEL (of the source),
// FILTER_COLUMN (of the group), FILTER_GROUP.
#define FILTER_CELL shape[31]
#define FILTER_CHANNEL shape[32]
#define FILTER_COLUMN shape[33]
#define FILTER_GROUP shape[34]

kernel void run(const ulong items, const uint n, const uint groups, const uint k, MEMORY(a), MEMORY(b), MEMORY(c),
                MEMORY(partials), const uint parts, const uint step, CONSTANT long *shape EPILOGUE_PARAMETERS) {
  const ulong id = get_global_id(0);
  if (id >= items) return;
  // Neighbours among items are neighbours in memory.
  const uint columns = n * groups;
  const int channels_last = DENSE_CHANNEL == 1;
  const uint image = (uint)(id / ((ulong)CELLS * columns)), rest = (uint)(id % ((ulong)CELLS * columns));
  const uint column = channels_last ? rest % columns : rest / CELLS;
  const uint cell = channels_last ? rest / columns : rest % CELLS;
  const uint group = column / n;
  const Point position = position_at(shape, image * CELLS + cell);
  const long at_group = (long)(group * CHANNELS) * SOURCE_CHANNEL;
  const long at_column = (long)(column - group * n) * FILTER_COLUMN + (long)group * FILTER_GROUP;
  SUM total = 0;
  for (uint f = 0; f < k / CHANNELS; ++f) {
    const Point tap = tap_at(shape, f * CHANNELS);
    long at_a;
    if (!meets(shape, &position, &tap, 3, &at_a)) continue;
    for (uint channel = 0; channel < CHANNELS; ++channel) {
      const SUM x = LOAD_A(at_group + at_a + (long)channel * SOURCE_CHANNEL);
      const SUM y = LOAD_B(at_column + (long)f * FILTER_CELL + (long)channel * FILTER_CHANNEL);
      total += x * y;
    }
  }
  FINISH(id, total);
}

#endif

// Pooling: an item computes one element of the result, or a vector of channels that are neighbours, which is an element
// here. These stand before this source. T is a register of an element, and SUM the type in which averages are added.
// CELL is a cell's number for each of a vector, of as many bits as T has where that is one. POSITION is the type of
// positions in the result, and INDEX the type of elements' numbers. LOWEST is the start of a maximum, so that it is
// never less or NaN. AVERAGE says which pooling it is, and STEP the purpose of this kernel. LOAD_X(i), LOAD_DY(i),
// STORE_Y(i, x), LOAD_CELL(i) and STORE_CELL(i, x) move elements.
//
// A gradient of maxima takes two runs: the first finds for each window the cell of its first maximum.
#define STEP_FORWARD 0
#define STEP_POSITIONS 1  // with positions in the image that include the channel
#define STEP_CELLS 2      // the cells alone, for the gradient
#define STEP_GRADIENT 3

#define INPUT(d) ((int)table[d])
#define WINDOW(d) ((int)table[3 + (d)])
#define OUTPUT(d) ((int)table[6 + (d)])
#define STRIDE(d) ((int)table[9 + (d)])
#define PAD(d) ((int)table[12 + (d)])

// The elements [images, cells, channels] or [images, channels, cells].
typedef struct {
  INDEX image;
  uint channel;
  int cell[3];
} MemorySlice;

MemorySlice place_of(INDEX id, uint channels, int channels_last, const int* extents) {
  MemorySlice p;
  const uint cells = (uint)(extents[0] * extents[1] * extents[2]);
  p.image = id / ((INDEX)cells * channels);
  const INDEX rest = id - p.image * cells * channels;
  p.channel = (uint)(channels_last ? rest % channels : rest / cells);
  uint cell = (uint)(channels_last ? rest / channels : rest % cells);
  for (int d = 2; d >= 0; --d) {
    p.cell[d] = (int)(cell % (uint)extents[d]);
    cell /= (uint)extents[d];
  }
  return p;
}

// Where the first cell of a channel of an image lies.
INDEX channel_at(const MemorySlice* p, uint channels, int channels_last, const int* extents) {
  const INDEX cells = (INDEX)(extents[0] * extents[1] * extents[2]);
  return channels_last ? p->image * cells * channels + p->channel : (p->image * channels + p->channel) * cells;
}

// The part of a window that lies inside.
void window_of(CONSTANT long* table, const int* output, int* begin, int* end) {
  for (int d = 0; d < 3; ++d) {
    const int start = output[d] * STRIDE(d) - PAD(d);
    begin[d] = max(start, 0);
    end[d] = min(start + WINDOW(d), INPUT(d));
  }
}

#define FOR_EACH_CELL(at, begin, end, extents) \
  for (int i = begin[0]; i < end[0]; ++i)      \
    for (int j = begin[1]; j < end[1]; ++j)    \
      for (int k = begin[2], at = (i * extents[1] + j) * extents[2] + k; k < end[2]; ++k, ++at)

kernel void run(const ulong items, const uint channels, const int channels_last, MEMORY(x), MEMORY(dy), MEMORY(y),
                MEMORY(positions), CONSTANT long* table) {
  const INDEX id = get_global_id(0);
  if (id >= items) return;
  const int input[] = {INPUT(0), INPUT(1), INPUT(2)}, output[] = {OUTPUT(0), OUTPUT(1), OUTPUT(2)};
  const INDEX step = channels_last ? channels : 1;
  int begin[3], end[3];
#if STEP != STEP_GRADIENT
  const MemorySlice place = place_of(id, channels, channels_last, output);
  const INDEX first = channel_at(&place, channels, channels_last, input);
  window_of(table, place.cell, begin, end);
#if AVERAGE
  SUM sum = SPLAT(SUM, 0);
  int count = 0;
  FOR_EACH_CELL(at, begin, end, input) {
    sum += (SUM)(LOAD_X(first + (INDEX)at * step));
    count += 1;
  }
  const T value = count == 0 ? SPLAT(T, 0) : (T)(sum / SPLAT(SUM, count));
  STORE_Y(id, value);
#elif STEP == STEP_FORWARD
  T best = SPLAT(T, LOWEST);
  FOR_EACH_CELL(at, begin, end, input) {
    const T value = LOAD_X(first + (INDEX)at * step);
    best = SELECT(best < value, value, best);
  }
  STORE_Y(id, best);
#else
  // The element at the position: a NaN where the window starts with it.
  T best = SPLAT(T, LOWEST);
  CELL best_at = SPLAT(CELL, -1);
  FOR_EACH_CELL(at, begin, end, input) {
    const T value = LOAD_X(first + (INDEX)at * step);
    const CELL is_better = (best_at < SPLAT(CELL, 0)) | (best < value);
    best = SELECT(is_better, value, best);
    best_at = SELECT(is_better, SPLAT(CELL, at), best_at);
  }
#if STEP == STEP_CELLS
  STORE_CELL(id, best_at);
#else
  AT(POSITION, positions)[id] = best_at < 0 ? -1 : (POSITION)best_at * (POSITION)channels + (POSITION)place.channel;
  STORE_Y(id, best);
#endif
#endif
#else
  // All windows that have the cell.
  const MemorySlice place = place_of(id, channels, channels_last, input);
  const INDEX first = channel_at(&place, channels, channels_last, output);
  for (int d = 0; d < 3; ++d) {
    const int from = place.cell[d] + PAD(d) - WINDOW(d) + 1;
    begin[d] = from <= 0 ? 0 : (from + STRIDE(d) - 1) / STRIDE(d);
    end[d] = min((place.cell[d] + PAD(d)) / STRIDE(d) + 1, output[d]);
  }
  SUM sum = SPLAT(SUM, 0);
#if !AVERAGE
  const int cell = (place.cell[0] * input[1] + place.cell[1]) * input[2] + place.cell[2];
#endif
  FOR_EACH_CELL(at, begin, end, output) {
    const INDEX window = first + (INDEX)at * step;
#if AVERAGE
    const int here[] = {i, j, k};
    int cells_begin[3], cells_end[3];
    window_of(table, here, cells_begin, cells_end);
    int count = 1;
    for (int d = 0; d < 3; ++d) count *= cells_end[d] - cells_begin[d];
    sum += (SUM)(LOAD_DY(window)) / SPLAT(SUM, count);
#else
    sum += SELECT(LOAD_CELL(window) == SPLAT(CELL, cell), (SUM)(LOAD_DY(window)), SPLAT(SUM, 0));
#endif
  }
  const T value = (T)sum;
  STORE_Y(id, value);
#endif
}

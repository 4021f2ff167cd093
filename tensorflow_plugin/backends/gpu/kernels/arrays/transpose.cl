// One view to another whose neighbours are other elements, through local memory. A group of ITEMS items copies a tile:
// X elements along the axis of the source's neighbours, and Y along that of the destination's. In front of this stand
// ELEMENT, INDEX, which counts tiles, and walk(tile, numbers, places), the places of a tile's first element, with
// walk_TABLE (walk.h).
//
// An item reads IN_EACH neighbours as one number, IN_WORD, and writes OUT_EACH, an OUT_WORD. With more than one, they
// are dense. All that an item reads is on its way at a time.
#define IN_ACROSS (X / IN_EACH)
#define IN_ROWS (ITEMS / IN_ACROSS)
#define OUT_ACROSS (Y / OUT_EACH)
#define OUT_ROWS (ITEMS / OUT_ACROSS)

typedef union {
  IN_WORD word;
  ELEMENT parts[IN_EACH];
} Read;
typedef union {
  OUT_WORD word;
  ELEMENT parts[OUT_EACH];
} Written;

kernel void run(MEMORY(in), MEMORY(out), const ulong columns, const ulong rows, const long from_x, const long from_y,
                const long to_x, const long to_y, CONSTANT long *table) {
  SHARED ELEMENT tile[Y][X + 1];
  const INDEX number = get_group_id(0), across = (INDEX)((columns + X - 1) / X), down = (INDEX)((rows + Y - 1) / Y);
  const uint left_x = (uint)min((ulong)X, columns - (ulong)(number % across) * X);
  const uint left_y = (uint)min((ulong)Y, rows - (ulong)(number / across % down) * Y);
  long places[2];
  walk_TABLE(numbers);
  walk(number, numbers, places);
  const GLOBAL ELEMENT *source = AT(ELEMENT, in) + places[0];
  GLOBAL ELEMENT *destination = AT(ELEMENT, out) + places[1];
  const uint item = get_local_id(0);
  {
    const uint x = item % IN_ACROSS * IN_EACH, first = item / IN_ACROSS;
    Read read[Y / IN_ROWS];
#pragma unroll
    for (uint k = 0; k < Y / IN_ROWS; ++k) {
      const uint y = first + k * IN_ROWS;
      const GLOBAL ELEMENT *here = source + (long)x * from_x + (long)y * from_y;
      if (y < left_y && x + IN_EACH <= left_x) {
        read[k].word = *(const GLOBAL IN_WORD *)here;
      } else if (y < left_y) {
#pragma unroll
        for (uint j = 0; j < IN_EACH; ++j) {
          if (x + j < left_x) read[k].parts[j] = here[j];
        }
      }
    }
#pragma unroll
    for (uint k = 0; k < Y / IN_ROWS; ++k) {
#pragma unroll
      for (uint j = 0; j < IN_EACH; ++j) tile[first + k * IN_ROWS][x + j] = read[k].parts[j];
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  const uint y = item % OUT_ACROSS * OUT_EACH, first = item / OUT_ACROSS;
#pragma unroll
  for (uint k = 0; k < X / OUT_ROWS; ++k) {
    const uint x = first + k * OUT_ROWS;
    GLOBAL ELEMENT *there = destination + (long)y * to_y + (long)x * to_x;
    Written written;
#pragma unroll
    for (uint j = 0; j < OUT_EACH; ++j) written.parts[j] = tile[y + j][x];
    if (x < left_x && y + OUT_EACH <= left_y) {
      *(GLOBAL OUT_WORD *)there = written.word;
    } else if (x < left_x) {
#pragma unroll
      for (uint j = 0; j < OUT_EACH; ++j) {
        if (y + j < left_y) there[j] = written.parts[j];
      }
    }
  }
}

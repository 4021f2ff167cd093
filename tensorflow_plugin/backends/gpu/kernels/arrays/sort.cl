// Rows in order, by keys: unsigned words whose order is the one wanted. These stand before this source. WORD is the
// type that elements and keys are read as, SIGN its highest bit, and INDEX the type of positions. KIND is 0 for
// unsigned integers, 1 for signed ones, 2 for floating ones. INFINITE is the word of infinity for the last.
//
// Short rows: an item counts what is before its element, which is where that goes (STEP_RANKS).
//
// Longer ones are sorted by 8 bits of the keys at a time, the lowest first, each time stably. Some items count a
// stretch of a row each. An item for each digit of a row makes positions of the counts, and one for each row, of the
// digits' sums. Then each of the first items puts its stretch there. Last, the first k elements of each row are
// fetched.
#define STEP_RANKS 0
#define STEP_COUNT 1
#define STEP_STRETCHES 2
#define STEP_DIGITS 3
#define STEP_PLACE 4
#define STEP_FETCH 5
#define DIGITS 256

WORD key_of(WORD bits, int descending) {
#if KIND == 2
  const WORD magnitude = bits & (WORD)~SIGN;
  if (magnitude > INFINITE) return (WORD)~(WORD)0;  // a NaN, after all else either way
  if (magnitude == 0) bits = 0;                     // zeros are equal
  const WORD key = bits & SIGN ? (WORD)~bits : (WORD)(bits | SIGN);
#elif KIND == 1
  const WORD key = bits ^ SIGN;
#else
  const WORD key = bits;
#endif
  return descending ? (WORD)~key : key;
}

kernel void run(const int step, const ulong rows, const ulong n, const ulong k, const int descending, const ulong stretch,
                const ulong stretches, const int shift, MEMORY(x), MEMORY(from), MEMORY(to), MEMORY(counts), MEMORY(sums),
                MEMORY(elements), MEMORY(positions)) {
  const ulong id = get_global_id(0);
  if (step == STEP_RANKS) {
    if (id >= rows * n) return;
    const ulong row = id / n, at = id % n;
    const GLOBAL WORD *of_row = AT(WORD, x) + row * n;
    const WORD key = key_of(of_row[at], descending);
    ulong rank = 0;
    for (ulong i = 0; i < n; ++i) {
      const WORD other = key_of(of_row[i], descending);
      rank += other < key || (other == key && i < at);
    }
    if (rank >= k) return;
    AT(WORD, elements)[row * k + rank] = of_row[at];
    AT(INDEX, positions)[row * k + rank] = (INDEX)at;
  } else if (step == STEP_COUNT || step == STEP_PLACE) {
    const ulong row = id / stretches, part = id % stretches;
    if (row >= rows) return;
    const GLOBAL WORD *of_row = AT(WORD, x) + row * n;
    const GLOBAL uint *order = AT(uint, from) + row * n;
    // [rows, DIGITS, stretches]
    GLOBAL uint *count = AT(uint, counts) + row * DIGITS * stretches + part;
    const GLOBAL uint *sum = AT(uint, sums) + row * DIGITS;
    if (step == STEP_COUNT) {
      for (uint d = 0; d < DIGITS; ++d) count[d * stretches] = 0;
    }
    for (ulong i = part * stretch; i < min(n, (part + 1) * stretch); ++i) {
      const uint at = shift == 0 ? (uint)i : order[i];
      const uint digit = (uint)(key_of(of_row[at], descending) >> shift) & (DIGITS - 1);
      const uint before = count[digit * stretches]++;
      if (step == STEP_PLACE) AT(uint, to)[row * n + sum[digit] + before] = at;
    }
  } else if (step == STEP_STRETCHES) {
    if (id >= rows * DIGITS) return;
    uint before = 0;
    for (ulong i = id * stretches; i < (id + 1) * stretches; ++i) {
      const uint count = AT(uint, counts)[i];
      AT(uint, counts)[i] = before;
      before += count;
    }
    AT(uint, sums)[id] = before;
  } else if (step == STEP_DIGITS) {
    if (id >= rows) return;
    uint before = 0;
    for (ulong i = id * DIGITS; i < (id + 1) * DIGITS; ++i) {
      const uint count = AT(uint, sums)[i];
      AT(uint, sums)[i] = before;
      before += count;
    }
  } else {
    if (id >= rows * k) return;
    const ulong row = id / k;
    const uint at = AT(uint, from)[row * n + id % k];
    AT(WORD, elements)[id] = AT(WORD, x)[row * n + at];
    AT(INDEX, positions)[id] = (INDEX)at;
  }
}

// A table of the rows that differ, open to the next free place. Which of equal rows comes into it first, and where, is
// up to chance; the least number of them, which each leaves there, is not. Then the first of each kind are numbered, as
// compact.cl does it. Each of some items counts a stretch of them, and one makes positions of the counts.
//
// These stand before this source: WORD, the type that elements are read as; WORDS, how many an element has; INDEX, the
// type of numbers. FLOATING comes with SIGN, a word's highest bit, and INFINITE, the word of infinity. Words are
// compared, not numbers: no device's arithmetic takes a denormal one for 0.
#define STEP_CLEAR 0
#define STEP_INSERT 1
#define STEP_COUNT 2
#define STEP_POSITIONS 3
#define STEP_FIRSTS 4
#define STEP_NUMBERS 5
#define NONE 0xffffffffu

// The same for equal numbers, which the two zeros are.
WORD same(WORD word) {
#if FLOATING
  return (word & (WORD)~SIGN) == 0 ? 0 : word;
#else
  return word;
#endif
}

int is_nan(WORD word) {
#if FLOATING
  return (word & (WORD)~SIGN) > INFINITE;
#else
  return 0;
#endif
}

kernel void run(const int step, const ulong n, const ulong inner, const ulong stretch, const ulong stretches,
                const ulong mask, MEMORY(x), MEMORY(rows), MEMORY(leasts), MEMORY(places), MEMORY(counts),
                MEMORY(numbers), MEMORY(firsts), MEMORY(count)) {
  const ulong id = get_global_id(0), words = inner * WORDS;
  // For a place: a row there, the least one that is equal to it, and at last its number. For a row: its place, NONE if
  // it is like no other.
  GLOBAL uint *row_at = AT(uint, rows), *least_at = AT(uint, leasts), *place_of = AT(uint, places);
  GLOBAL uint *positions = AT(uint, counts);  // and the count of all
  if (step == STEP_CLEAR) {
    if (id <= mask) row_at[id] = least_at[id] = NONE;
  } else if (step == STEP_INSERT) {
    if (id >= n) return;
    const GLOBAL WORD *row = AT(WORD, x) + id * words;
    ulong hash = 0;
    int any_nan = 0;
    for (ulong w = 0; w < words; ++w) {
      any_nan |= is_nan(row[w]);
      hash = (hash ^ same(row[w])) * 0x9e3779b97f4a7c15ul;
      hash ^= hash >> 32;
    }
    place_of[id] = NONE;
    if (any_nan) return;
    ulong place = (hash * 0xd6e8feb86659fd93ul >> 32) & mask;
    for (;; place = (place + 1) & mask) {
      const uint there = atomic_cmpxchg(row_at + place, NONE, (uint)id);
      if (there == NONE) break;
      const GLOBAL WORD *other = AT(WORD, x) + there * words;
      ulong w = 0;
      while (w < words && same(row[w]) == same(other[w])) ++w;
      if (w == words) break;
    }
    atomic_min(least_at + place, (uint)id);
    place_of[id] = (uint)place;
  } else if (step == STEP_POSITIONS) {
    if (id != 0) return;
    uint before = 0;
    for (ulong i = 0; i < stretches; ++i) {
      const uint here = positions[i];
      positions[i] = before;
      before += here;
    }
    positions[stretches] = before;
    AT(long, count)[0] = before;
  } else if (step == STEP_NUMBERS) {
    if (id >= n) return;
    if (place_of[id] != NONE) AT(INDEX, numbers)[id] = (INDEX)row_at[place_of[id]];
    if (id >= positions[stretches]) AT(long, firsts)[id] = -1;
  } else {
    if (id >= stretches) return;
    uint number = step == STEP_FIRSTS ? positions[id] : 0;
    for (ulong i = id * stretch; i < min(n, (id + 1) * stretch); ++i) {
      const uint place = place_of[i];
      if (place != NONE && least_at[place] != i) continue;
      if (step == STEP_FIRSTS) {
        AT(long, firsts)[number] = (long)i;
        if (place == NONE) {
          AT(INDEX, numbers)[i] = (INDEX)number;
        } else {
          row_at[place] = number;
        }
      }
      ++number;
    }
    if (step == STEP_COUNT) positions[id] = number;
  }
}

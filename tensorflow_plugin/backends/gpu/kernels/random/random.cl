// An item makes the numbers of a group of words. In front of this stand random/philox.cl, WORD, the unsigned type of
// integers, MANTISSA, that of floating numbers, and STORE(i, x). STORED is the type in memory, TO_STORED(x) a number as
// one, and WIDE a word of a group's numbers. `wide` says that out is aligned to those.
typedef union {
  STORED parts[GROUP];
  WIDE word;
} Numbers;

kernel void run(const ulong n, const int given, const ulong key_value, const ulong low_value, const ulong high_value,
                const ulong range_low, const ulong range, const int wide, MEMORY(key), MEMORY(counter), MEMORY(out)) {
  const ulong group = get_global_id(0), first = group * GROUP;
  if (first >= n) return;
  Generator g;
  g.key = given == 2 ? AT(ulong, key)[0] : key_value;
  g.low = given != 0 ? AT(ulong, counter)[0] : low_value;
  g.high = given != 0 ? AT(ulong, counter)[1] : high_value;
  const uint count = (uint)min((ulong)GROUP, n - first);
#if KIND == 3
  // Redrawn until they are near: each group has a stretch of the sequence of its own, 256 words for each number.
  skip(&g, group * GROUP * 64);
  uint made = 0;
  while (made < count) {
    const uint4 words = next(&g);
    REAL pair[4];
    normal_pair(words, pair);
#if GROUP == 4
    normal_pair(MAKE4(uint4, words.z, words.w, words.x, words.y), pair + 2);
#endif
    for (uint k = 0; k < GROUP && made < count; ++k) {
      if (fabs(pair[k]) < 2) {
        const REAL value = pair[k];
        STORE(first + made, value);
        ++made;
      }
    }
  }
#else
  skip(&g, group);
  const uint4 words = next(&g);
#if KIND == 1
#if GROUP == 2
  const WORD values[] = {(ulong)words.x | (ulong)words.y << 32, (ulong)words.z | (ulong)words.w << 32};
#else
  const WORD values[] = {words.x, words.y, words.z, words.w};
#endif
  Numbers numbers;
#pragma unroll
  for (uint k = 0; k < GROUP; ++k) {
    numbers.parts[k] = (STORED)(range == 0 ? values[k] : (WORD)range_low + values[k] % (WORD)range);
  }
#else
#if KIND == 2
  REAL values[4];
  normal_pair(words, values);
#if GROUP == 4
  normal_pair(MAKE4(uint4, words.z, words.w, words.x, words.y), values + 2);
#endif
#elif GROUP == 2
  const REAL values[] = {UNIT(words.x, words.y), UNIT(words.z, words.w)};
#else
  const REAL values[] = {UNIT_OF(words.x, MANTISSA), UNIT_OF(words.y, MANTISSA), UNIT_OF(words.z, MANTISSA),
                         UNIT_OF(words.w, MANTISSA)};
#endif
  Numbers numbers;
#pragma unroll
  for (uint k = 0; k < GROUP; ++k) numbers.parts[k] = TO_STORED(values[k]);
#endif
  if (wide && count == GROUP) {
    AT(WIDE, out)[group] = numbers.word;
  } else {
#pragma unroll
    for (uint k = 0; k < GROUP; ++k) {
      if (k < count) AT(STORED, out)[first + k] = numbers.parts[k];
    }
  }
#endif
}

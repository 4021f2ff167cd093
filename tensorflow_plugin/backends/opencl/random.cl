// Philox 4x32-10, as primitives/philox.h has it: an item makes the numbers of a group of four words. In front of this
// stand KIND: 0 uniform, 1 integers, 2 normal, 3 truncated normal; GROUP, numbers of a group; WORD, the unsigned type of
// integers; REAL and MANTISSA, those of floating numbers; STORE(i, x); and EXACT, if normal numbers are to be the CPU's to
// the bit, with exact_log and exact_sincos.
typedef struct {
  ulong key, low, high;
} Generator;

void skip(Generator *g, ulong groups) {
  g->low += groups;
  g->high += g->low < groups;
}

uint4 next(Generator *g) {
  uint4 c = (uint4)((uint)g->low, (uint)(g->low >> 32), (uint)g->high, (uint)(g->high >> 32));
  uint k0 = (uint)g->key, k1 = (uint)(g->key >> 32);
  for (int round = 0; round < 10; ++round) {
    c = (uint4)(mul_hi(0xCD9E8D57u, c.z) ^ c.y ^ k0, 0xCD9E8D57u * c.z, mul_hi(0xD2511F53u, c.x) ^ c.w ^ k1,
                0xD2511F53u * c.x);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  skip(g, 1);
  return c;
}

#if KIND != 1
// Bits to [0, 1): the lowest MANTISSA ones over their range, of a double those of two words, the upper one first.
#if GROUP == 2
#define UNIT(first, second) ((double)(long)((ulong)(second) | (ulong)((first) & 0xfffffu) << 32) * 0x1p-52)
#else
#define UNIT_OF(bits, mantissa) ((float)(int)((bits) & ((1u << mantissa) - 1)) / (float)(1u << mantissa))
#endif
#endif

#if KIND >= 2
// Box and Muller's two normal numbers of two words, of doubles of four.
void normal_pair(uint4 words, REAL *pair) {
#if GROUP == 2
  const REAL u = max((REAL)UNIT(words.x, words.y), (REAL)1.0e-7), v = UNIT(words.z, words.w);
#else
  const REAL u = max(UNIT_OF(words.x, 23), 1.0e-7f), v = UNIT_OF(words.y, 23);
#endif
#ifdef EXACT
  // Rounded where TensorFlow rounds. A float's root may be a little off, a double's is not.
  const REAL angle = (REAL)(2.0 * M_PI * (double)v), radius = (REAL)sqrt((double)(-2 * exact_log(u)));
  exact_sincos(angle, &pair[0], &pair[1]);
  pair[0] *= radius;
  pair[1] *= radius;
#else
  const REAL radius = sqrt(-2 * log(u));
  pair[0] = radius * sinpi(2 * v);
  pair[1] = radius * cospi(2 * v);
#endif
}
#endif

kernel void run(const ulong n, const int given, const ulong key_value, const ulong low_value, const ulong high_value,
                const ulong range_low, const ulong range, MEMORY(key), MEMORY(counter), MEMORY(out)) {
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
    normal_pair(words.zwxy, pair + 2);
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
  for (uint k = 0; k < count; ++k) {
    AT(WORD, out)[first + k] = (WORD)(range == 0 ? values[k] : (WORD)range_low + values[k] % (WORD)range);
  }
#else
#if KIND == 2
  REAL values[4];
  normal_pair(words, values);
#if GROUP == 4
  normal_pair(words.zwxy, values + 2);
#endif
#elif GROUP == 2
  const REAL values[] = {UNIT(words.x, words.y), UNIT(words.z, words.w)};
#else
  const REAL values[] = {UNIT_OF(words.x, MANTISSA), UNIT_OF(words.y, MANTISSA), UNIT_OF(words.z, MANTISSA),
                         UNIT_OF(words.w, MANTISSA)};
#endif
  for (uint k = 0; k < count; ++k) {
    const REAL value = values[k];
    STORE(first + k, value);
  }
#endif
#endif
}

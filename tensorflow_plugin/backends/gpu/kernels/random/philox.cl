// Philox 4x32-10, as primitives/philox.h has it, and what becomes of a group of four words. These stand before this
// source: GROUP, the numbers of a group, and REAL, the type of the computation. KIND is 0 for uniform, 1 for integers,
// 2 for normal, 3 for truncated normal, 4 for gamma. EXACT says that normal numbers are to be the CPU's to the bit,
// with exact_log and exact_sincos.
typedef struct {
  ulong key, low, high;
} Generator;

void skip(Generator *g, ulong groups) {
  g->low += groups;
  g->high += g->low < groups;
}

uint4 next(Generator *g) {
  uint4 c = MAKE4(uint4, (uint)g->low, (uint)(g->low >> 32), (uint)g->high, (uint)(g->high >> 32));
  uint k0 = (uint)g->key, k1 = (uint)(g->key >> 32);
  for (int round = 0; round < 10; ++round) {
    c = MAKE4(uint4, mul_hi(0xCD9E8D57u, c.z) ^ c.y ^ k0, 0xCD9E8D57u * c.z, mul_hi(0xD2511F53u, c.x) ^ c.w ^ k1,
                0xD2511F53u * c.x);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  skip(g, 1);
  return c;
}

#if KIND != 1
// Bits to [0, 1): the lowest of a mantissa over their range, of a double those of two words, the upper one first.
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

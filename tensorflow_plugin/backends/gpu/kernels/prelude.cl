// Every kernel begins with this, after the prelude of its language. A kernel is `kernel void run(...)`; see Call
// (machine.h) for its parameters.

// The command fails; the least number that any item gives tells how.
#define FAIL(number) atomic_min(AT(uint, report), (uint)(number))

// 16-bit floats are stored in a ushort and computed in float.
float from_bfloat16(ushort bits) { return as_float((uint)bits << 16); }
ushort to_bfloat16(float value) {
  const uint bits = as_uint(value);
  const uint rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  // A NaN must stay a NaN: rounding could carry it into infinity.
  return (ushort)((bits & 0x7fffffffu) > 0x7f800000u ? ((bits >> 16) | 0x40u) : rounded);
}
float round_to_bfloat16(float value) { return from_bfloat16(to_bfloat16(value)); }
float round_to_half(float value) { return from_half(to_half(value)); }

// Floats cut to integers. Out of range they are what x86 gives: the lowest of 32 or 64 bits, of which unsigned types keep
// the low bits. Narrower types have their nearest number.
#define CUT(T)                                                                                      \
  int T##_to_int(T x) { return x >= (T)-0x1p31f && x < (T)0x1p31f ? (int)x : INT_MIN; }              \
  long T##_to_long(T x) { return x >= (T)-0x1p63f && x < (T)0x1p63f ? (long)x : LONG_MIN; }          \
  ulong T##_to_ulong(T x) { return x >= (T)0x1p63f && x < (T)0x1p64f ? (ulong)x : (ulong)T##_to_long(x); } \
  T T##_floor_mod(T x, T y) {                                                                        \
    const T r = fmod(x, y);                                                                          \
    return r != 0 && (r < 0) != (y < 0) ? r + y : r;                                                 \
  }

// Integers wrap: U is the unsigned type that T is computed in. By zero is 0, and `failed` is set.
#define INTEGER(T, U, BITS)                                                              \
  T T##_truncate_div(T x, T y, int *failed) {                                            \
    if (y == 0) {                                                                        \
      *failed = 1;                                                                       \
      return 0;                                                                          \
    }                                                                                    \
    return (T)-1 < 0 && y == (T)-1 ? (T)(0 - (U)x) : (T)(x / y);                         \
  }                                                                                      \
  T T##_truncate_mod(T x, T y, int *failed) {                                            \
    if (y == 0) {                                                                        \
      *failed = 1;                                                                       \
      return 0;                                                                          \
    }                                                                                    \
    return (T)-1 < 0 && y == (T)-1 ? 0 : (T)(x % y);                                     \
  }                                                                                      \
  T T##_floor_div(T x, T y, int *failed) {                                               \
    const T q = T##_truncate_div(x, y, failed);                                          \
    if (y == 0 || ((T)-1 < 0 && y == (T)-1)) return q;                                   \
    return x % y != 0 && (x < 0) != (y < 0) ? (T)(q - 1) : q;                            \
  }                                                                                      \
  T T##_floor_mod(T x, T y, int *failed) {                                               \
    const T r = T##_truncate_mod(x, y, failed);                                          \
    return r != 0 && (r < 0) != (y < 0) ? (T)(r + y) : r;                                \
  }                                                                                      \
  T T##_power(T x, T y, int *failed) {                                                   \
    if (y < 0) {                                                                         \
      *failed = 1;                                                                       \
      return 0;                                                                          \
    }                                                                                    \
    U result = 1, base = (U)x;                                                           \
    for (U e = (U)y; e != 0; e >>= 1, base *= base) {                                    \
      if (e & 1) result *= base;                                                         \
    }                                                                                    \
    return (T)result;                                                                    \
  }                                                                                      \
  int T##_shift(T y) { return y < 0 ? 0 : y > (T)(BITS - 1) ? BITS - 1 : (int)y; }

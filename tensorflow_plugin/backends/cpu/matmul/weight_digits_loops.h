// The loops of MultiplyDigits (weight_digits.h), once per instruction set that multiplies bytes.
//
// The elements of a row of a are cut into blocks. In a block each is a power of two times an integer of 24 bits,
// rounded to nearest. An integer is 65536 d2 + 256 d1 + d0; its digits have 8 bits and a sign. So a sum is three sums
// of small integers, each exact. An element is off by at most 2^-23 of the largest one in its block, and additions do
// not round within a block. Long sums are about as exact as those of floats (tests/weight_digits_test.cc).
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_MATMUL_WEIGHT_DIGITS_LOOPS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_MATMUL_WEIGHT_DIGITS_LOOPS_H_

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "tensorflow_plugin/backends/cpu/matmul/weight_columns.h"
#include "tensorflow_plugin/backends/cpu/simd/ahead.h"
#include "tensorflow_plugin/backends/cpu/simd/quads.h"
#include "tensorflow_plugin/backends/cpu/simd/vector_math.h"

namespace xpu::cpu {

inline constexpr int kDigits = 3;
inline constexpr int64_t kBlockRows = 128;  // of the weights: terms of a sum

// A block of a row of a.
struct BlockFactor {
  float power;             // of two
  float sum;               // of the integers
  int32_t start[kDigits];  // -8 times the sum of each digit: unpacked halves are 8 more than the weights
};

// A row of a as digits. Those of even and of odd elements are apart if a byte of weights has two rows.
struct DigitsOfRow {
  const int8_t* planes;        // [even or odd][digit][stride]
  int64_t stride;              // bytes of a plane, which ends in zeros
  const BlockFactor* factors;  // by block
};

// m rows of a.
struct DigitRows {
  const DigitsOfRow* rows;
  int64_t m;
};

// Where rows of a product go.
struct ProductRows {
  float* c;
  int64_t ldc;
};

// Blocks [first, last). `is_cold`: no call before has fetched the first one.
struct BlockRange {
  int64_t first, last;
  bool is_cold;
};

// A block's number, and where it begins in each plane. The first one's sums are stored, all others are added.
struct BlockPlace {
  int64_t number, at;
  bool is_first;
};

// Where the blocks of k rows lie: each group begins one, and has one for every kBlockRows rows.
struct Blocks {
  int64_t k, group;

  int64_t PerGroup() const { return (group + kBlockRows - 1) / kBlockRows; }
  int64_t Begin(int64_t block) const { return block / PerGroup() * group + block % PerGroup() * kBlockRows; }
  int64_t End(int64_t block) const {
    const int64_t begin = Begin(block), of_group = (block / PerGroup() + 1) * group;
    const int64_t end = begin + kBlockRows < of_group ? begin + kBlockRows : of_group;
    return end < k ? end : k;
  }
};

}  // namespace xpu::cpu

#define XPU_ISA_WITH_VNNI
#define XPU_ISA_FILE "tensorflow_plugin/backends/cpu/matmul/weight_digits_loops.h"
#define XPU_ISA baseline
#define XPU_VECTOR_BYTES 16
#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_MATMUL_WEIGHT_DIGITS_LOOPS_H_

#if defined(XPU_ISA)
#if XPU_VECTOR_BYTES >= 32
namespace xpu::cpu::XPU_ISA {

static int64_t UnitBytes() { return XPU_VECTOR_BYTES; }

// ---- Digits.

// Largest magnitudes, for which a power is chosen.
inline constexpr float kSmallest = 0x1p-100f, kLargest = 0x1p100f, kMostOfInteger = 127 * 65536 + 127 * 256 + 127;

static inline VI Rounded(VF v) {
#if XPU_VECTOR_BYTES == 64
  return (VI)_mm512_maskz_cvtps_epi32(0xffff, (__m512)v);
#else
  return (VI)_mm256_cvtps_epi32((__m256)v);
#endif
}

// The digits of a vector of integers, each to its plane, and added to the sums.
static inline void WriteLanes(VI integers, int8_t* to, int64_t stride, VI (&sums)[kDigits]) {
#pragma GCC unroll 3
  for (int t = 0; t < kDigits; ++t) {
    const VI digit = t + 1 < kDigits ? integers << 24 >> 24 : integers;
    integers = (integers - digit) >> 8;
    sums[t] += digit;
#if XPU_VECTOR_BYTES == 64
    const __m128i bytes = _mm512_maskz_cvtepi32_epi8(0xffff, (__m512i)digit);
    std::memcpy(to + t * stride, &bytes, sizeof(bytes));
#else
    typedef int8_t Narrow __attribute__((vector_size(kLanes)));
    const Narrow bytes = __builtin_convertvector(digit, Narrow);
    std::memcpy(to + t * stride, &bytes, sizeof(bytes));
#endif
  }
}

// Elements [0, n) of a block, at most kBlockRows, as digits at `to`. `apart`: the even ones, and `odd` bytes further
// the odd ones. Each plane is filled with zeros to the length of a whole block. False if no power will do.
static bool WriteDigits(const float* x, int64_t n, bool apart, int8_t* to, int64_t stride, int64_t odd,
                        BlockFactor* factor) {
  float padded[kBlockRows];
  if (n < kBlockRows) {
    std::memset(padded, 0, sizeof(padded));
    std::memcpy(padded, x, static_cast<size_t>(n) * sizeof(float));
    x = padded;
  }
  VI largest{};
  for (int64_t i = 0; i < kBlockRows; i += kLanes) {
    const VI bits = (VI)Load(x + i) & 0x7fffffff;
    largest = bits > largest ? bits : largest;  // as integers, so that NaN is the largest
  }
  int32_t most = 0;
  for (int i = 0; i < kLanes; ++i) most = largest[i] > most ? largest[i] : most;
  float magnitude;
  std::memcpy(&magnitude, &most, sizeof(magnitude));
  if (!(magnitude == 0 || (magnitude >= kSmallest && magnitude <= kLargest))) return false;
  const uint32_t exponent = magnitude == 0 ? 127 : static_cast<uint32_t>(most) >> 23;
  const uint32_t inverse_bits = (127 + 22 + 127 - exponent) << 23;
  float inverse;
  std::memcpy(&inverse, &inverse_bits, sizeof(inverse));
  if (magnitude * inverse > kMostOfInteger) inverse *= 0.5f;
  factor->power = 1 / inverse;

  VI sums[kDigits] = {};
  for (int64_t i = 0; i < kBlockRows; i += 2 * kLanes) {
    const VI first = Rounded(Load(x + i) * inverse), second = Rounded(Load(x + i + kLanes) * inverse);
    if (apart) {
      WriteLanes(EvenLanes(first, second), to + i / 2, stride, sums);
      WriteLanes(OddLanes(first, second), to + odd + i / 2, stride, sums);
    } else {
      WriteLanes(first, to + i, stride, sums);
      WriteLanes(second, to + i + kLanes, stride, sums);
    }
  }
  float sum = 0;
  for (int t = kDigits - 1; t >= 0; --t) {
    int32_t of_digit = 0;
    for (int i = 0; i < kLanes; ++i) of_digit += sums[t][i];
    factor->start[t] = -8 * of_digit;
    sum = 256 * sum + static_cast<float>(of_digit);
  }
  factor->sum = sum;
  return true;
}

// ---- Weights.

// Both halves of each byte, plus 8.
struct HalfPair {
  VI first, second;
};
static inline HalfPair Halved(VI bytes) {
  const VI flipped = bytes ^ static_cast<int32_t>(0x88888888);
  return {flipped & 0x0f0f0f0f, (flipped >> 4) & 0x0f0f0f0f};
}

// sum + the dot products of quads. Halves are so small that sums of two products fit into 16 bits.
static inline VI AddDots(VI sum, VI halves, VI digits) {
#if defined(XPU_VNNI)
  return (VI)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)halves, (__m512i)digits);
#elif XPU_VECTOR_BYTES == 64
  const __m512i pairs = _mm512_maddubs_epi16((__m512i)halves, (__m512i)digits);
  return sum + (VI)_mm512_madd_epi16(pairs, _mm512_maskz_set1_epi16(0xffffffff, 1));
#else
  const __m256i pairs = _mm256_maddubs_epi16((__m256i)halves, (__m256i)digits);
  return sum + (VI)_mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
#endif
}

static inline VI SplatDigits(const int8_t* quad) {
  int32_t digits;
  std::memcpy(&digits, quad, sizeof(digits));
  return Splat<VI>(digits);
}

// The sums of three digits as a float, in units of the lowest one.
static inline VF Joined(const VI (&sum)[kDigits]) {
  return __builtin_convertvector(sum[2] * 256 + sum[1], VF) * 256.0f + __builtin_convertvector(sum[0], VF);
}

// Lane j of vector i becomes lane i of vector j; lanes have 128 bits.
#if XPU_VECTOR_BYTES == 64
#define XPU_LANES(x, y, a, b, c, d)                                                                                \
  __builtin_shufflevector(x, y, 4 * (a), 4 * (a) + 1, 4 * (a) + 2, 4 * (a) + 3, 4 * (b), 4 * (b) + 1, 4 * (b) + 2, \
                          4 * (b) + 3, 4 * (c), 4 * (c) + 1, 4 * (c) + 2, 4 * (c) + 3, 4 * (d), 4 * (d) + 1,       \
                          4 * (d) + 2, 4 * (d) + 3)
template <typename V>
static inline void TurnLanes(V (&v)[4]) {
  const V low01 = XPU_LANES(v[0], v[1], 0, 4, 1, 5), high01 = XPU_LANES(v[0], v[1], 2, 6, 3, 7);
  const V low23 = XPU_LANES(v[2], v[3], 0, 4, 1, 5), high23 = XPU_LANES(v[2], v[3], 2, 6, 3, 7);
  v[0] = XPU_LANES(low01, low23, 0, 1, 4, 5);
  v[1] = XPU_LANES(low01, low23, 2, 3, 6, 7);
  v[2] = XPU_LANES(high01, high23, 0, 1, 4, 5);
  v[3] = XPU_LANES(high01, high23, 2, 3, 6, 7);
}
#undef XPU_LANES
#else
template <typename V>
static inline void TurnLanes(V (&v)[2]) {
  const V x = v[0], y = v[1];
  v[0] = __builtin_shufflevector(x, y, 0, 1, 2, 3, 8, 9, 10, 11);
  v[1] = __builtin_shufflevector(x, y, 4, 5, 6, 7, 12, 13, 14, 15);
}
#endif

// Vectors in the order of quads become vectors in the order of columns.
static inline void OrderColumns(VF (&v)[4]) {
#if XPU_VECTOR_BYTES == 64
  TurnLanes(v);
#else
  VF first[2] = {v[0], v[1]}, second[2] = {v[2], v[3]};
  TurnLanes(first);
  TurnLanes(second);
  v[0] = first[0], v[1] = second[0], v[2] = first[1], v[3] = second[1];
#endif
}

// c += a block's sums, or c = them if it is the first block. With kHalves == 1 they are of the columns of a vector of
// bytes; with 2 the second ones are of every second column.
template <int kHalves>
static inline void AddBlock(VF (&sums)[kHalves][4], const BlockFactor& factor, const float* scales,
                            const int8_t* zero_points, bool first, float* c) {
  VF ordered[kHalves * 4];
#pragma GCC unroll 2
  for (int h = 0; h < kHalves; ++h) OrderColumns(sums[h]);
#pragma GCC unroll 4
  for (int v = 0; v < 4; ++v) {
    if constexpr (kHalves == 1) {
      ordered[v] = sums[0][v];
    } else {
      ordered[2 * v] = LowerInTurns(sums[0][v], sums[1][v]);
      ordered[2 * v + 1] = UpperInTurns(sums[0][v], sums[1][v]);
    }
  }
#pragma GCC unroll 8
  for (int v = 0; v < kHalves * 4; ++v) {
    const int64_t at = v * kLanes;
    const VF sum = (ordered[v] - LoadSigned(zero_points + at) * factor.sum) * factor.power * Load(scales + at);
    Store(c + at, first ? sum : Load(c + at) + sum);
  }
}

// A block of a unit, the columns of a vector of bytes. It has `rows` rows of bytes.
struct UnitBlock {
  const uint8_t* bytes;
  int64_t row_bytes, rows;
  const float* scales;
  const int8_t* zero_points;
};

// The quads of four rows of bytes from `from` on.
static inline void LoadQuads(const uint8_t* from, int64_t row_bytes, Ints out[4]) {
  const uint8_t* const rows[] = {from, from + row_bytes, from + 2 * row_bytes, from + 3 * row_bytes};
  Interleave(rows, Bytes{}, out);
}
// The same for a block's last rows, of which there may be fewer.
static inline void LoadLastQuads(const UnitBlock& block, int64_t row, Ints out[4]) {
  // Beyond the last row the digits are zeros, so any row will do.
  const uint8_t* rows[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    rows[i] = block.bytes + (row + i < block.rows ? row + i : block.rows - 1) * block.row_bytes;
  }
  Interleave(rows, Bytes{}, out);
}

// step(row, quads) for each four rows of a block. It fetches as many pieces ahead as it reads.
template <typename Step>
__attribute__((always_inline)) static inline void ForEachQuads(const UnitBlock& block, Ahead* ahead, Step step) {
  Ahead next = *ahead;  // in registers
  Ints quads[4];
  int64_t row = 0;
  for (const uint8_t* from = block.bytes; row + 4 <= block.rows; row += 4, from += 4 * block.row_bytes) {
    if (XPU_VECTOR_BYTES >= Ahead::kLine) next.FetchFour(XPU_VECTOR_BYTES);
    LoadQuads(from, block.row_bytes, quads);
    step(row, quads);
  }
  if (row < block.rows) {
    LoadLastQuads(block, row, quads);
    step(row, quads);
  }
  *ahead = next;
}

// One row of a. Quads are unpacked in registers.
template <bool kDown>
static inline void AddRow(const UnitBlock& block, const DigitsOfRow& a, const BlockPlace& place, float* c,
                          Ahead* ahead) {
  constexpr int kHalves = kDown ? 1 : 2;
  const BlockFactor& factor = a.factors[place.number];
  VI sum[kHalves][4][kDigits];
#pragma GCC unroll 2
  for (int h = 0; h < kHalves; ++h) {
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) {
#pragma GCC unroll 3
      for (int t = 0; t < kDigits; ++t) sum[h][v][t] = Splat<VI>(factor.start[t]);
    }
  }
  const int8_t* const planes = a.planes + place.at;
  ForEachQuads(block, ahead, [&](int64_t row, const Ints(&quads)[4]) __attribute__((always_inline)) {
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) {
      const HalfPair pair = Halved(quads[v]);
#pragma GCC unroll 3
      for (int t = 0; t < kDigits; ++t) {
        const VI digits = SplatDigits(planes + t * a.stride + row);
        sum[0][v][t] = AddDots(sum[0][v][t], pair.first, digits);
        VI& of_second = sum[kHalves - 1][v][t];
        of_second =
            AddDots(of_second, pair.second, kDown ? SplatDigits(planes + (kDigits + t) * a.stride + row) : digits);
      }
    }
  });
  VF joined[kHalves][4];
#pragma GCC unroll 2
  for (int h = 0; h < kHalves; ++h) {
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) joined[h][v] = Joined(sum[h][v]);
  }
  AddBlock(joined, factor, block.scales, block.zero_points, place.is_first, c);
}

// The halves of a block's quads: [four rows][half][4 vectors].
static inline void UnpackQuads(const UnitBlock& block, uint8_t* to) {
  for (int64_t row = 0; row < block.rows; row += 4, to += 8 * XPU_VECTOR_BYTES) {
    Ints quads[4];
    LoadLastQuads(block, row, quads);
    HalfPair pairs[4];
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) {
      pairs[v] = Halved(quads[v]);
      std::memcpy(to + v * XPU_VECTOR_BYTES, &pairs[v].first, sizeof(VI));
      std::memcpy(to + (4 + v) * XPU_VECTOR_BYTES, &pairs[v].second, sizeof(VI));
    }
  }
}

// kRows rows of a, and quads that UnpackQuads or UnpackTurned has written.
template <bool kDown, int kRows>
static inline void AddRows(const UnitBlock& block, const uint8_t* quads, const DigitsOfRow* a, const BlockPlace& place,
                           const ProductRows& to) {
  constexpr int kHalves = kDown ? 1 : 2;
  VF joined[kRows][kHalves][4];
#pragma GCC unroll 2
  for (int h = 0; h < kHalves; ++h) {
    VI sum[kRows][4][kDigits];
#pragma GCC unroll 2
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
      for (int v = 0; v < 4; ++v) {
#pragma GCC unroll 3
        for (int t = 0; t < kDigits; ++t) sum[i][v][t] = Splat<VI>(a[i].factors[place.number].start[t]);
      }
    }
    const uint8_t* from = quads + h * 4 * XPU_VECTOR_BYTES;
    for (int64_t row = 0; row < block.rows; row += 4, from += 8 * XPU_VECTOR_BYTES) {
#pragma GCC unroll 2
      for (int second = 0; second < (kDown ? 2 : 1); ++second) {
        const int64_t plane = second * kDigits;
#pragma GCC unroll 4
        for (int v = 0; v < 4; ++v) {
          const VI halves = (VI)LoadBytes(from + (4 * second + v) * XPU_VECTOR_BYTES);
#pragma GCC unroll 2
          for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 3
            for (int t = 0; t < kDigits; ++t) {
              const VI digits = SplatDigits(a[i].planes + (plane + t) * a[i].stride + place.at + row);
              sum[i][v][t] = AddDots(sum[i][v][t], halves, digits);
            }
          }
        }
      }
    }
#pragma GCC unroll 2
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
      for (int v = 0; v < 4; ++v) joined[i][h][v] = Joined(sum[i][v]);
    }
  }
#pragma GCC unroll 2
  for (int i = 0; i < kRows; ++i) {
    AddBlock(joined[i], a[i].factors[place.number], block.scales, block.zero_points, place.is_first, to.c + i * to.ldc);
  }
}

template <bool kDown>
static inline void AddAllRows(const UnitBlock& block, const uint8_t* quads, const DigitRows& a, const BlockPlace& place,
                              const ProductRows& to) {
  constexpr int kRows = XPU_VECTOR_BYTES == 64 ? 2 : 1;  // whose sums fit into registers
  const auto down = [&](int64_t i) { return ProductRows{to.c + i * to.ldc, to.ldc}; };
  int64_t i = 0;
  for (; i + kRows <= a.m; i += kRows) AddRows<kDown, kRows>(block, quads, a.rows + i, place, down(i));
  for (; i < a.m; ++i) AddRows<kDown, 1>(block, quads, a.rows + i, place, down(i));
}

// The sums of some blocks of rows of a times `units` units, for weights whose rows of bytes have many columns.
template <bool kDown>
static void MultiplyUnitsOf(const Blocks& blocks, const BlockRange& range, int64_t units, const DigitRows& a,
                            const WeightColumns& w, uint8_t* unpacked, const ProductRows& to) {
  constexpr int64_t kPerByte = kDown ? 2 : 1;  // rows
  constexpr int64_t kColumns = XPU_VECTOR_BYTES * (kDown ? 1 : 2);
  for (int64_t b = range.first; b < range.last; ++b) {
    const int64_t begin = blocks.Begin(b), scales = begin / blocks.group * w.ld_scales;
    const BlockPlace place{b, begin / kPerByte, b == range.first};
    UnitBlock block{w.bytes + place.at * w.row_bytes, w.row_bytes, (blocks.End(b) - begin + kPerByte - 1) / kPerByte,
                    w.scales + scales, w.zero_points + scales};
    if (place.is_first && a.m == 1 && range.is_cold) {
      Ahead of_first(block.bytes, units * XPU_VECTOR_BYTES, w.row_bytes, XPU_VECTOR_BYTES);
      for (int64_t i = 0; i < block.rows * units; ++i) of_first.Fetch(XPU_VECTOR_BYTES);
    }
    Ahead ahead(block.bytes + block.rows * w.row_bytes, units * XPU_VECTOR_BYTES, w.row_bytes, XPU_VECTOR_BYTES);
    for (int64_t u = 0; u < units; ++u) {
      const ProductRows of_unit{to.c + u * kColumns, to.ldc};
      if (a.m == 1) {
        AddRow<kDown>(block, a.rows[0], place, of_unit.c, &ahead);
      } else {
        UnpackQuads(block, unpacked);
        AddAllRows<kDown>(block, unpacked, a, place, of_unit);
      }
      block.bytes += XPU_VECTOR_BYTES;
      block.scales += kColumns;
      block.zero_points += kColumns;
    }
  }
}

static void MultiplyUnits(bool down, const Blocks& blocks, const BlockRange& range, int64_t units, const DigitRows& a,
                          const WeightColumns& w, uint8_t* unpacked, const ProductRows& to) {
  (down ? MultiplyUnitsOf<true> : MultiplyUnitsOf<false>)(blocks, range, units, a, w, unpacked, to);
}

// The quads of a block of columns that are adjacent in memory (Halves::kTurned), as UnpackQuads has them. `bytes` are
// the block's first ones of column 0. A unit may have more columns than there are: the last one stands for these.
static inline void UnpackTurned(const uint8_t* bytes, int64_t row_bytes, int64_t rows, int64_t columns, uint8_t* to,
                                Ahead* ahead) {
  constexpr int kLanesOf128 = XPU_VECTOR_BYTES / 16;
  for (int64_t l = 0; l < rows; l += XPU_VECTOR_BYTES, to += 8 * XPU_VECTOR_BYTES * kLanes) {
    const int64_t left = rows - l;
    for (int v = 0; v < 4; ++v) {
      Ints turned[4][kLanesOf128];  // [quad, modulo 4][lane]: lane i has the quads from 4 i on
#pragma GCC unroll 4
      for (int g = 0; g < kLanesOf128; ++g) {
        Ints x[4];
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) {
          const int64_t column = 16 * g + 4 * v + i;
          const uint8_t* const from = bytes + (column < columns ? column : columns - 1) * row_bytes + l;
          if (XPU_VECTOR_BYTES >= Ahead::kLine) ahead->Fetch(XPU_VECTOR_BYTES);
          x[i] = (Ints)(left >= XPU_VECTOR_BYTES ? LoadBytes(from) : LoadFirstBytes(from, left));
        }
        const Ints low01 = Low32(x[0], x[1]), high01 = High32(x[0], x[1]);
        const Ints low23 = Low32(x[2], x[3]), high23 = High32(x[2], x[3]);
        turned[0][g] = Low64(low01, low23);
        turned[1][g] = High64(low01, low23);
        turned[2][g] = Low64(high01, high23);
        turned[3][g] = High64(high01, high23);
      }
#pragma GCC unroll 4
      for (int r = 0; r < 4; ++r) {
        TurnLanes(turned[r]);
#pragma GCC unroll 4
        for (int i = 0; i < kLanesOf128; ++i) {
          const HalfPair pair = Halved(turned[r][i]);
          uint8_t* const at = to + ((4 * i + r) * 8 + v) * XPU_VECTOR_BYTES;
          std::memcpy(at, &pair.first, sizeof(VI));
          std::memcpy(at + 4 * XPU_VECTOR_BYTES, &pair.second, sizeof(VI));
        }
      }
    }
  }
}

// ---- One row of a times columns that are adjacent in memory. Lanes have sums of their own until the end.

inline constexpr int64_t kBlockBytes = kBlockRows / 2;
// Columns at a time, which share the loads of digits.
inline constexpr int kTurnedColumns = 4;

static inline VI LoadDigits(const int8_t* digits) { return (VI)LoadBytes(reinterpret_cast<const uint8_t*>(digits)); }

// For each block, where the sums of lanes begin, in units of the lowest digit. That is -8 times the elements that a
// lane multiplies.
static void StartLanes(const DigitsOfRow& a, int64_t num_blocks, int32_t* starts) {
  const VI eights = Splat<VI>(0x08080808);
  for (int64_t b = 0; b < num_blocks; ++b, starts += kLanes) {
    VI sums[kDigits] = {};
    for (int64_t at = b * kBlockBytes; at < (b + 1) * kBlockBytes; at += XPU_VECTOR_BYTES) {
      for (int t = 0; t < kDigits; ++t) {
        sums[t] = AddDots(sums[t], eights, LoadDigits(a.planes + t * a.stride + at));
        sums[t] = AddDots(sums[t], eights, LoadDigits(a.planes + (kDigits + t) * a.stride + at));
      }
    }
    const VI start = -(sums[2] * 65536 + sums[1] * 256 + sums[0]);
    std::memcpy(starts, &start, sizeof(start));
  }
}

// The products of a block of a and of columns, by lane and in units of the lowest digit. The columns' bytes begin at
// `from`. kWhole: all of a block's bytes are multiplied, not just the first `bytes` ones. Each step is one of all
// columns, so that none waits for another.
template <bool kWhole>
__attribute__((always_inline)) static inline void MultiplyTurnedBlock(const uint8_t* const (&from)[kTurnedColumns],
                                                                      int64_t bytes, const int8_t* planes,
                                                                      int64_t stride, VI start,
                                                                      VF (&products)[kTurnedColumns]) {
  VI sums[kDigits][kTurnedColumns] = {};
#pragma GCC unroll 4
  for (int i = 0; i < kTurnedColumns; ++i) sums[0][i] = start;
#pragma GCC unroll 2
  for (int64_t at = 0; at < kBlockBytes && (kWhole || at < bytes); at += XPU_VECTOR_BYTES, planes += XPU_VECTOR_BYTES) {
    HalfPair halves[kTurnedColumns];
#pragma GCC unroll 4
    for (int i = 0; i < kTurnedColumns; ++i) {
      if constexpr (kWhole) {
        halves[i] = Halved((VI)LoadBytes(from[i] + at));
      } else {
        const int64_t left = bytes - at;
        halves[i] =
            Halved((VI)(left >= XPU_VECTOR_BYTES ? LoadBytes(from[i] + at) : LoadFirstBytes(from[i] + at, left)));
      }
    }
#pragma GCC unroll 3
    for (int t = 0; t < kDigits; ++t) {
      const VI digits = LoadDigits(planes + t * stride);
#pragma GCC unroll 4
      for (int i = 0; i < kTurnedColumns; ++i) sums[t][i] = AddDots(sums[t][i], halves[i].first, digits);
    }
#pragma GCC unroll 3
    for (int t = 0; t < kDigits; ++t) {
      const VI digits = LoadDigits(planes + (kDigits + t) * stride);
#pragma GCC unroll 4
      for (int i = 0; i < kTurnedColumns; ++i) sums[t][i] = AddDots(sums[t][i], halves[i].second, digits);
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < kTurnedColumns; ++i) {
    // At most 16 terms of 24 bits, times at most 8. They may exceed 32 bits until the last one is added.
    const VU joined = ((((VU)sums[2][i] << 8) + (VU)sums[1][i]) << 8) + (VU)sums[0][i];
    products[i] = __builtin_convertvector((VI)joined, VF);
  }
}

// The share of a column's zero points: in each group they are multiplied by the sum of a's elements.
static inline float OfZeroPoints(const float* scales, const int8_t* zero_points, const float* elements,
                                 int64_t groups) {
  float sum = 0;
  for (int64_t g = 0; g < groups; ++g) sum += static_cast<float>(zero_points[g]) * scales[g] * elements[g];
  return sum;
}

// `starts` is by StartLanes, `elements` has the sum of a's elements in each group.
static void MultiplyRowTurned(const Blocks& blocks, int64_t columns, const DigitsOfRow& a, const int32_t* starts,
                              const float* elements, const WeightColumns& w, float* c) {
  const int64_t whole = blocks.k / kBlockRows, per_group = blocks.PerGroup();
  const int64_t groups = (blocks.k + blocks.group - 1) / blocks.group;
  for (int64_t j = 0; j < columns; j += kTurnedColumns) {
    const int64_t here = columns - j < kTurnedColumns ? columns - j : kTurnedColumns;
    const uint8_t* from[kTurnedColumns];
    const float* scales[kTurnedColumns];
    float of_zero_points[kTurnedColumns];
#pragma GCC unroll 4
    for (int i = 0; i < kTurnedColumns; ++i) {
      const int64_t column = j + (i < here ? i : here - 1);  // the last one stands for those beyond
      from[i] = w.bytes + column * w.row_bytes;
      scales[i] = w.scales + column * w.ld_scales;
      of_zero_points[i] = OfZeroPoints(scales[i], w.zero_points + column * w.ld_scales, elements, groups);
    }
    VF sum[kTurnedColumns] = {};
    const auto add = [&](int64_t block, int64_t group, auto is_whole) __attribute__((always_inline)) {
      VI start;
      std::memcpy(&start, starts + block * kLanes, sizeof(start));
      VF products[kTurnedColumns];
      const int64_t at = block * kBlockBytes;
      MultiplyTurnedBlock<is_whole.value>(from, w.row_bytes - at, a.planes + at, a.stride, start, products);
#pragma GCC unroll 4
      for (int i = 0; i < kTurnedColumns; ++i) {
        sum[i] += products[i] * a.factors[block].power * scales[i][group];
        from[i] += kBlockBytes;
      }
    };
    int64_t group = 0, of_group = 0;
    for (int64_t block = 0; block < whole; ++block) {
      add(block, group, std::true_type());
      if (++of_group == per_group) ++group, of_group = 0;
    }
    if (whole * kBlockRows < blocks.k) add(whole, group, std::false_type());
    V4 zero_points;
    std::memcpy(&zero_points, of_zero_points, sizeof(zero_points));
    const V4 results = Sums(sum[0], sum[1], sum[2], sum[3]) - zero_points;
    std::memcpy(c + j, &results, static_cast<size_t>(here) * sizeof(float));
  }
}

// ---- Rows of a times columns that are adjacent in memory.

// Rows of a times a unit of columns that are adjacent in memory. It has XPU_VECTOR_BYTES columns; those beyond
// `columns` are of no use.
static void MultiplyTurned(const Blocks& blocks, int64_t num_blocks, int64_t columns, const DigitRows& a,
                           const WeightColumns& w, uint8_t* unpacked, const ProductRows& to) {
  float of_columns[XPU_VECTOR_BYTES] = {};
  int8_t zero_points_of_columns[XPU_VECTOR_BYTES] = {};
  Ahead ahead(w.bytes + columns * w.row_bytes, columns * w.row_bytes, 0, XPU_VECTOR_BYTES);  // the next unit
  for (int64_t b = 0; b < num_blocks; ++b) {
    const int64_t begin = blocks.Begin(b), group = begin / blocks.group, at = begin / 2;
    for (int64_t j = 0; j < columns; ++j) {
      of_columns[j] = w.scales[j * w.ld_scales + group];
      zero_points_of_columns[j] = w.zero_points[j * w.ld_scales + group];
    }
    const UnitBlock block{nullptr, w.row_bytes, (blocks.End(b) - begin + 1) / 2, of_columns, zero_points_of_columns};
    UnpackTurned(w.bytes + at, w.row_bytes, block.rows, columns, unpacked, &ahead);
    AddAllRows<true>(block, unpacked, a, {b, at, b == 0}, to);
  }
}

}  // namespace xpu::cpu::XPU_ISA
#endif  // XPU_VECTOR_BYTES >= 32
#include "tensorflow_plugin/backends/cpu/simd/each_isa.h"
#endif  // XPU_ISA

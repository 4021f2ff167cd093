// The loops of WeightMatMul (weight_matmul.cc), once per instruction set. Weights become floats in registers.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_MATMUL_WEIGHT_MATMUL_LOOPS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_MATMUL_WEIGHT_MATMUL_LOOPS_H_

#include <cstdint>
#include <cstring>

#include "tensorflow_plugin/backends/cpu/simd/ahead.h"
#include "tensorflow_plugin/backends/cpu/simd/vector_math.h"

#define XPU_ISA_FILE "tensorflow_plugin/backends/cpu/matmul/weight_matmul_loops.h"
#define XPU_ISA baseline
#define XPU_VECTOR_BYTES 16
#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_MATMUL_WEIGHT_MATMUL_LOOPS_H_

#if defined(XPU_ISA)
namespace xpu::cpu::XPU_ISA {

// The number of vector registers.
inline constexpr int kRegisters = XPU_VECTOR_BYTES == 64 ? 32 : 16;

static int64_t Lanes() { return kLanes; }

// Both halves of kLanes bytes, as floats.
struct WeightPair {
  VF first, second;
};

// Halves as floats without a conversion. The lower half of a byte is among the bits of a float from 2^23 on whose last
// bit is worth 1. The upper half is among those of a float from 2^19 on, whose fifth bit from the right is worth 1. So
// each float is the half plus a bias, exactly, and to subtract the bias and a zero point at once does not round either.
inline constexpr float kBias[2] = {8388616, 524296};  // 2^23 + 8 and 2^19 + 8: the sign of a half is turned
static inline WeightPair LoadBiased(const uint8_t* p) {
  const VI bytes = LoadUnsigned(p);
  return {(VF)((bytes & 0x0f) ^ 0x4b000008), (VF)((bytes & 0xf0) ^ 0x49000080)};
}

#if XPU_VECTOR_BYTES == 64
static inline VF WeightOfHalf() { return VF{0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1}; }
// table[half] for both halves; a lookup takes the lowest four bits of a lane.
static inline WeightPair LookUp(const uint8_t* p, VF table) {
  const VI bytes = LoadUnsigned(p);
#if defined(__clang__)
  return {(VF)_mm512_permutexvar_ps((__m512i)bytes, (__m512)table),
          (VF)_mm512_permutexvar_ps((__m512i)(bytes >> 4), (__m512)table)};
#else
  return {__builtin_shuffle(table, bytes), __builtin_shuffle(table, bytes >> 4)};
#endif
}
#endif

// The scales of a vector of kLanes bytes, and the zero points plus the bias of each half. With kDown both halves of a
// byte are of one column, which has the scale s[0]. Otherwise they are of neighbours with the scales s[0] and s[1].
template <bool kDown>
static inline void LoadScales(const float* scales, const int8_t* zero_points, VF* s, VF* z) {
  if constexpr (kDown) {
    s[0] = Load(scales);
    z[0] = z[1] = LoadSigned(zero_points);
  } else {
    const VF x = Load(scales), y = Load(scales + kLanes);
    s[0] = EvenLanes(x, y);
    s[1] = OddLanes(x, y);
    VH pairs;
    std::memcpy(&pairs, zero_points, sizeof(pairs));
    const VI both = __builtin_convertvector(pairs, VI);
    z[0] = __builtin_convertvector(both << 24 >> 24, VF);
    z[1] = __builtin_convertvector(both << 16 >> 24, VF);
  }
  z[0] += kBias[0];
  z[1] += kBias[1];
}

// Adds the terms of `deep` rows of bytes, all of one group, to the sums of kRows rows of a. The rows are kUnits vectors
// of bytes wide. A scale multiplies the sum of its rows, not each weight.
template <bool kDown, int kRows, int kUnits>
static inline void AddWeights(int64_t deep, const float* a, int64_t lda, const uint8_t* bytes, int64_t row_bytes,
                              const float* scales, const int8_t* zero_points, float* sums, int64_t ld_sums,
                              Ahead* ahead) {
  constexpr int kSteps = kDown ? 1 : 2;  // vectors of columns of a unit
  constexpr int kBytes = kUnits * kLanes;
  VF s[kUnits * kSteps], z[kUnits * 2], sum[kRows][kUnits * kSteps] = {};
#pragma GCC unroll 4
  for (int u = 0; u < kUnits; ++u) {
    const int64_t column = u * kSteps * kLanes;
    LoadScales<kDown>(scales + column, zero_points + column, s + u * kSteps, z + u * 2);
  }
  for (int64_t l = 0; l < deep; ++l, bytes += row_bytes) {
    if constexpr (2 * kBytes >= Ahead::kLine) {
      ahead->Fetch(kBytes);
    } else {
      __builtin_prefetch(bytes + 512);
    }
#pragma GCC unroll 4
    for (int u = 0; u < kUnits; ++u) {
      const WeightPair pair = LoadBiased(bytes + u * kLanes);
      const int v = u * kSteps, w = v + kSteps - 1;
      const VF first = pair.first - z[2 * u], second = pair.second - z[2 * u + 1];
#pragma GCC unroll 4
      for (int i = 0; i < kRows; ++i) {
        if constexpr (kDown) {
          sum[i][v] += a[i * lda + 2 * l] * first;
          sum[i][v] += a[i * lda + 2 * l + 1] * second;
        } else {
          sum[i][v] += a[i * lda + l] * first;
          sum[i][w] += a[i * lda + l] * second;
        }
      }
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
    for (int v = 0; v < kUnits * kSteps; ++v) {
      float* to = sums + i * ld_sums + v * kLanes;
      Store(to, Load(to) + sum[i][v] * s[v]);
    }
  }
}

// The sums of kRows rows of a and `units` vectors of bytes. Those of row i begin at sums + i * ld_sums. In each unit
// the sums of the first halves come before those of the second ones (StoreUnit). Several rows of bytes at a time are
// read from beginning to end.
template <bool kDown, int kRows>
static void SumUnits(int64_t units, int64_t k, int64_t group, const float* a, int64_t lda, const uint8_t* bytes,
                     int64_t row_bytes, const float* scales, const int8_t* zero_points, int64_t ld_scales, float* sums,
                     int64_t ld_sums) {
  constexpr int kUnits = kRegisters < 32 ? 1 : kRows <= 2 ? 4 : 2;
  constexpr int kPerByte = kDown ? 2 : 1;  // rows
  constexpr int64_t kDeep = 32 / kPerByte;
  constexpr int64_t kColumns = kLanes * (kDown ? 1 : 2);  // of a unit
  std::memset(sums, 0, static_cast<size_t>(kRows * ld_sums) * sizeof(float));
  const int64_t rows = k / kPerByte, in_group = group < k ? group / kPerByte : rows;
  for (int64_t l = 0; l < rows;) {
    const int64_t g = l / in_group, left = (g + 1) * in_group - l, rest = rows - l < left ? rows - l : left;
    const int64_t deep = rest < kDeep ? rest : kDeep;
    const float *x = a + l * kPerByte, *s = scales + g * ld_scales;
    const int8_t* z = zero_points + g * ld_scales;
    const uint8_t* from = bytes + l * row_bytes;
    Ahead ahead(from + kDeep * row_bytes, units * kLanes, row_bytes, kUnits * kLanes);
    int64_t u = 0;
    for (; u + kUnits <= units; u += kUnits) {
      AddWeights<kDown, kRows, kUnits>(deep, x, lda, from + u * kLanes, row_bytes, s + u * kColumns, z + u * kColumns,
                                       sums + u * kColumns, ld_sums, &ahead);
    }
    for (; u < units; ++u) {
      AddWeights<kDown, kRows, 1>(deep, x, lda, from + u * kLanes, row_bytes, s + u * kColumns, z + u * kColumns,
                                  sums + u * kColumns, ld_sums, &ahead);
    }
    l += deep;
  }
  if (kDown && k % 2 != 0) {  // of the last row of bytes only the first halves
    const int64_t g = (k - 1) / group;
    for (int64_t j = 0; j < units * kLanes; ++j) {
      const int half = bytes[rows * row_bytes + j] & 15;
      const float weight =
          static_cast<float>((half ^ 8) - 8 - zero_points[g * ld_scales + j]) * scales[g * ld_scales + j];
      for (int i = 0; i < kRows; ++i) sums[i * ld_sums + j] += a[i * lda + k - 1] * weight;
    }
  }
}

using SumUnitsOf = void (*)(int64_t, int64_t, int64_t, const float*, int64_t, const uint8_t*, int64_t, const float*,
                            const int8_t*, int64_t, float*, int64_t);
static SumUnitsOf SumUnitsFor(bool down, int64_t rows) {
  constexpr SumUnitsOf kernels[2][4] = {
      {SumUnits<false, 1>, SumUnits<false, 2>, SumUnits<false, 3>, SumUnits<false, 4>},
      {SumUnits<true, 1>, SumUnits<true, 2>, SumUnits<true, 3>, SumUnits<true, 4>}};
  return kernels[down][rows - 1];
}

// Stores the sums of one unit in the order of columns.
static void StoreUnit(bool down, const float* sums, float* to) {
  if (down) {
    Store(to, Load(sums));
  } else {
    StoreInterleaved(to, Load(sums), Load(sums + kLanes));
  }
}

// The products of kRows rows of a and kColumns columns of weights with Halves::kTurned: the bytes of a column are
// adjacent. `even` and `odd` have the elements of a for the first and for the second halves.
template <int kRows, int kColumns>
static inline void DotTurned(int64_t k, int64_t group, int64_t groups, const float* even, const float* odd, int64_t lda,
                             const uint8_t* bytes, int64_t row_bytes, const float* scales, const int8_t* zero_points,
                             float* sums, int64_t ld_sums, Ahead* ahead) {
  constexpr int64_t kLongBytes = 512;  // of a row: of shorter ones the processor sees the order
  const bool fetches = row_bytes >= kLongBytes;
  VF sum[kRows][kColumns][2] = {};
  float rest[kRows][4] = {};
  const int64_t pairs = k / 2;
  const auto weight = [&](int half, int64_t at) {
    return static_cast<float>((half ^ 8) - 8 - zero_points[at]) * scales[at];
  };
  for (int64_t g = 0; g < groups; ++g) {
    const int64_t begin = g * group / 2, end = g + 1 < groups ? (g + 1) * group / 2 : pairs;
    VF s[kColumns];
#if XPU_VECTOR_BYTES != 64
    VF z[kColumns][2];
#endif
#pragma GCC unroll 4
    for (int j = 0; j < kColumns; ++j) {
      s[j] = Splat<VF>(scales[j * groups + g]);
#if XPU_VECTOR_BYTES == 64
      s[j] = (WeightOfHalf() - static_cast<float>(zero_points[j * groups + g])) * s[j];
#else
      for (int i = 0; i < 2; ++i) z[j][i] = Splat<VF>(static_cast<float>(zero_points[j * groups + g]) + kBias[i]);
#endif
    }
    int64_t l = begin;
    for (; l + kLanes <= end; l += kLanes) {
      if (kColumns * kLanes >= Ahead::kLine && fetches) ahead->Fetch(kColumns * kLanes);
#pragma GCC unroll 4
      for (int j = 0; j < kColumns; ++j) {
#if XPU_VECTOR_BYTES == 64
        const WeightPair w = LookUp(bytes + j * row_bytes + l, s[j]);
#else
        const WeightPair q = LoadBiased(bytes + j * row_bytes + l);
        const WeightPair w = {(q.first - z[j][0]) * s[j], (q.second - z[j][1]) * s[j]};
#endif
#pragma GCC unroll 4
        for (int i = 0; i < kRows; ++i) {
          sum[i][j][0] += Load(even + i * lda + l) * w.first;
          sum[i][j][1] += Load(odd + i * lda + l) * w.second;
        }
      }
    }
    for (; l < end; ++l) {
      for (int j = 0; j < kColumns; ++j) {
        const int byte = bytes[j * row_bytes + l];
        const float first = weight(byte & 15, j * groups + g), second = weight(byte >> 4, j * groups + g);
        for (int i = 0; i < kRows; ++i) rest[i][j] += even[i * lda + l] * first + odd[i * lda + l] * second;
      }
    }
  }
  for (int j = 0; j < kColumns && k % 2 != 0; ++j) {
    const float last = weight(bytes[j * row_bytes + pairs] & 15, j * groups + groups - 1);
    for (int i = 0; i < kRows; ++i) rest[i][j] += even[i * lda + pairs] * last;
  }
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i) {
    VF total[4] = {};
#pragma GCC unroll 4
    for (int j = 0; j < kColumns; ++j) total[j] = sum[i][j][0] + sum[i][j][1];
    V4 of_rest;
    std::memcpy(&of_rest, rest[i], sizeof(of_rest));
    const V4 found = Sums(total[0], total[1], total[2], total[3]) + of_rest;
    std::memcpy(sums + i * ld_sums, &found, kColumns * sizeof(float));
  }
}

template <int kRows>
static void SumTurned(int64_t n, int64_t k, int64_t group, int64_t groups, const float* even, const float* odd,
                      int64_t lda, const uint8_t* bytes, int64_t row_bytes, const float* scales,
                      const int8_t* zero_points, float* sums, int64_t ld_sums) {
  Ahead ahead(bytes + n * row_bytes, row_bytes, row_bytes, 4 * kLanes);
  int64_t j = 0;
  for (; j + 4 <= n; j += 4) {
    DotTurned<kRows, 4>(k, group, groups, even, odd, lda, bytes + j * row_bytes, row_bytes, scales + j * groups,
                        zero_points + j * groups, sums + j, ld_sums, &ahead);
  }
  for (; j < n; ++j) {
    DotTurned<kRows, 1>(k, group, groups, even, odd, lda, bytes + j * row_bytes, row_bytes, scales + j * groups,
                        zero_points + j * groups, sums + j, ld_sums, &ahead);
  }
}

using SumTurnedOf = void (*)(int64_t, int64_t, int64_t, int64_t, const float*, const float*, int64_t, const uint8_t*,
                             int64_t, const float*, const int8_t*, float*, int64_t);
static SumTurnedOf SumTurnedFor(int64_t rows) {
  constexpr SumTurnedOf kernels[4] = {SumTurned<1>, SumTurned<2>, SumTurned<3>, SumTurned<4>};
  return kernels[rows - 1];
}

// Writes the floats that n adjacent bytes stand for. With `in_turns` both halves of each byte go to `first`, one after
// the other; otherwise the second halves go to `second`. With `same` there is one scale and one zero point for all.
static void UnpackBytes(bool in_turns, bool same, int64_t n, const uint8_t* bytes, const float* scales,
                        const int8_t* zero_points, float* first, float* second) {
  int64_t l = 0;
  for (; l + kLanes <= n; l += kLanes) {
    const WeightPair pair = LoadBiased(bytes + l);
    VF s[2], z[2];
    if (same) {
      s[0] = s[1] = Splat<VF>(scales[0]);
      for (int i = 0; i < 2; ++i) z[i] = Splat<VF>(static_cast<float>(zero_points[0]) + kBias[i]);
    } else if (in_turns) {
      LoadScales<false>(scales + 2 * l, zero_points + 2 * l, s, z);
    } else {
      LoadScales<true>(scales + l, zero_points + l, s, z);
      s[1] = s[0];
    }
    const VF x = (pair.first - z[0]) * s[0], y = (pair.second - z[1]) * s[1];
    if (in_turns) {
      StoreInterleaved(first + 2 * l, x, y);
    } else {
      Store(first + l, x);
      Store(second + l, y);
    }
  }
  for (; l < n; ++l) {
    for (int half = 0; half < 2; ++half) {
      const int64_t at = same ? 0 : in_turns ? 2 * l + half : l;
      const int bits = (bytes[l] >> (4 * half)) & 15;
      const float w = static_cast<float>((bits ^ 8) - 8 - zero_points[at]) * scales[at];
      (in_turns ? first[2 * l + half] : half == 0 ? first[l] : second[l]) = w;
    }
  }
}

}  // namespace xpu::cpu::XPU_ISA
#include "tensorflow_plugin/backends/cpu/simd/each_isa.h"
#endif  // XPU_ISA

// The begin and the end of sums of bytes in registers: kRows rows of kVectors vectors, by AVX-512 VNNI. kFinishes: an
// epilogue finishes them. Otherwise they are stored.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_BYTES_BYTE_SUMS_IN_REGISTERS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_BYTES_BYTE_SUMS_IN_REGISTERS_H_

#include <immintrin.h>

#include <cstdint>

#include "tensorflow_plugin/backends/cpu/convolution/bytes/byte_sums.h"
#include "tensorflow_plugin/backends/cpu/elementwise/quantized_chain_loops.h"
#include "tensorflow_plugin/backends/cpu/simd/target.h"

namespace xpu::cpu {
namespace {

XPU_BEGIN_TARGET(XPU_AVX512_VNNI)

template <int kRows, int kVectors, bool kFinishes>
static inline __attribute__((always_inline)) void BeginSums(const ByteEpilogue& epilogue,
                                                            __m512i (&sum)[kRows][kVectors]) {
  const int32_t* const compensation = kFinishes ? epilogue.compensation : nullptr;
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    const __m512i first =
        compensation == nullptr ? _mm512_setzero_si512() : _mm512_loadu_si512(compensation + v * avx512::kLanes);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) sum[i][v] = first;
  }
}

// Rows of stored sums are `ld` apart.
template <int kRows, int kVectors, bool kFinishes>
static inline __attribute__((always_inline)) void EndSums(const ByteEpilogue& epilogue,
                                                          const __m512i (&sum)[kRows][kVectors], int32_t* to,
                                                          int64_t ld) {
  if constexpr (kFinishes) {
    avx512::VF values[kRows][kVectors];
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        // By hand: the compiler then chooses the sums' registers for the loop before, whatever follows.
        asm("vcvtdq2ps %1, %0" : "=v"(values[i][v]) : "v"(sum[i][v]));
      }
    }
    avx512::FinishTile<kRows, kVectors, true>(*epilogue.chain, values,
                                              {epilogue.ld, epilogue.offset, epilogue.col, avx512::kLanes});
  } else {
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) _mm512_storeu_si512(to + i * ld + v * avx512::kLanes, sum[i][v]);
    }
  }
}

XPU_END_TARGET

}  // namespace
}  // namespace xpu::cpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_BYTES_BYTE_SUMS_IN_REGISTERS_H_

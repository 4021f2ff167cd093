// Products of weights of 4 bits by dot products of bytes. Elements of a become integers of 24 bits.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_MATMUL_WEIGHT_DIGITS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_MATMUL_WEIGHT_DIGITS_H_

#include <cstdint>

#include "tensorflow_plugin/backends/host_runtime/thread_team.h"
#include "tensorflow_plugin/backends/plain/weights.h"

namespace xpu::cpu {

// True if the rows of a group are a multiple of what one step reads. Each block then lies in one group. A step reads 4
// rows, or 8 if a byte holds two rows, or kBlockRows of transposed weights.
bool DigitsFit(const plain::Weights& weights);

// c [m,n] = a [m,k], in rows of lda elements, * weights that DigitsFit takes. False if elements of a must stay floats.
// Then one is not finite or exceeds 2^100, or the largest of a block is below 2^-100 and not 0. Parts of c may be
// written.
bool MultiplyDigits(const plain::Weights& weights, int64_t m, const float* a, int64_t lda, float* c,
                    const host_runtime::ThreadTeam& team);

}  // namespace xpu::cpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_MATMUL_WEIGHT_DIGITS_H_

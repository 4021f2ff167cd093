// Products of weights of 4 bits by dot products of bytes. Elements of a become integers of 24 bits.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_MATMUL_WEIGHT_DIGITS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_MATMUL_WEIGHT_DIGITS_H_

#include <cstdint>

#include "tensorflow_plugin/backends/host_runtime/thread_team.h"
#include "tensorflow_plugin/backends/plain/weights.h"

namespace xpu::cpu {

// True if the blocks of such weights hold whole quads of each half. `k` is then cut into blocks of one group each.
bool DigitsFit(const plain::Weights& weights);

// c [m,n] = a [m,k], in rows of lda elements, * weights. False if floats hold elements of a better: one is not finite
// or exceeds 2^100, or those of a block are all below 2^-100. Parts of c may be written then.
bool MultiplyDigits(const plain::Weights& weights, int64_t m, const float* a, int64_t lda, float* c,
                    const host_runtime::ThreadTeam& team);

}  // namespace xpu::cpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_MATMUL_WEIGHT_DIGITS_H_

// Philox a block of groups at a time, once per instruction set (isa.h).
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_RANDOM_RANDOM_LOOPS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_RANDOM_RANDOM_LOOPS_H_

#include <cstdint>

#include "tensorflow_plugin/primitives/philox.h"

namespace xpu::cpu {

// Groups generated at a time: the words of one block stay in the L1 cache until they are numbers.
inline constexpr int kPhiloxBlock = 64;

}  // namespace xpu::cpu

#define XPU_ISA_FILE "tensorflow_plugin/backends/cpu/random/random_loops.h"
#define XPU_ISA baseline
#define XPU_VECTOR_BYTES 16
#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_RANDOM_RANDOM_LOOPS_H_

#if defined(XPU_ISA)
namespace xpu::cpu::XPU_ISA {

inline constexpr int kCounters = 16;  // at a time

// kPhiloxBlock groups from the generator's place on. Integer arithmetic: every instruction set gives the same words.
static inline void GenerateBlock(uint64_t low, uint64_t high, uint64_t key, uint32_t* out) {
  for (int b = 0; b < kPhiloxBlock; b += kCounters) {
    uint32_t c0[kCounters], c1[kCounters], c2[kCounters], c3[kCounters];
    for (int i = 0; i < kCounters; ++i) {
      const uint64_t l = low + static_cast<uint64_t>(b + i);
      const uint64_t h = high + (l < low);
      c0[i] = static_cast<uint32_t>(l);
      c1[i] = static_cast<uint32_t>(l >> 32);
      c2[i] = static_cast<uint32_t>(h);
      c3[i] = static_cast<uint32_t>(h >> 32);
    }
    uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
    for (int round = 0; round < Philox::kRounds; ++round) {
      for (int i = 0; i < kCounters; ++i) {
        const uint64_t p0 = static_cast<uint64_t>(Philox::kMultiplier0) * c0[i];
        const uint64_t p1 = static_cast<uint64_t>(Philox::kMultiplier1) * c2[i];
        c0[i] = static_cast<uint32_t>(p1 >> 32) ^ c1[i] ^ k0;
        c1[i] = static_cast<uint32_t>(p1);
        c2[i] = static_cast<uint32_t>(p0 >> 32) ^ c3[i] ^ k1;
        c3[i] = static_cast<uint32_t>(p0);
      }
      k0 += Philox::kWeyl0;
      k1 += Philox::kWeyl1;
    }
    for (int i = 0; i < kCounters; ++i) {
      out[4 * (b + i)] = c0[i];
      out[4 * (b + i) + 1] = c1[i];
      out[4 * (b + i) + 2] = c2[i];
      out[4 * (b + i) + 3] = c3[i];
    }
  }
}

}  // namespace xpu::cpu::XPU_ISA
#include "tensorflow_plugin/backends/cpu/simd/each_isa.h"
#endif  // XPU_ISA

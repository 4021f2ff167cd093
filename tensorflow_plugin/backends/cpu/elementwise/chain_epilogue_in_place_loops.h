// The loops of ApplyChainInPlace (chain_epilogue.h), once per instruction set.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_CHAIN_EPILOGUE_IN_PLACE_LOOPS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_CHAIN_EPILOGUE_IN_PLACE_LOOPS_H_

#include <cstdint>

#include "tensorflow_plugin/backends/cpu/elementwise/chain_epilogue.h"
#include "tensorflow_plugin/backends/cpu/elementwise/chain_epilogue_loops.h"
#include "tensorflow_plugin/backends/cpu/simd/vector_math.h"

#define XPU_ISA_FILE "tensorflow_plugin/backends/cpu/elementwise/chain_epilogue_in_place_loops.h"
#define XPU_ISA baseline
#define XPU_VECTOR_BYTES 16
#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_CHAIN_EPILOGUE_IN_PLACE_LOOPS_H_

#if defined(XPU_ISA)
namespace xpu::cpu::XPU_ISA {

// For adjacent rows of so many columns, from element `offset` of `out` on.
static inline void ApplyChainToRows(const ChainEpilogue& chain, int64_t count, int64_t columns, int64_t offset,
                                    float* out) {
  constexpr int kWide = XPU_VECTOR_BYTES == 64 ? 4 : 2;
  float* const rows = out + offset;
  int64_t col = 0;
  for (; col + kWide * kLanes <= columns; col += kWide * kLanes) {
    ApplyChainToTile<kWide>(chain, count, rows + col, columns, rows + col, columns, offset + col, col, kLanes);
  }
  for (; col < columns; col += kLanes) {
    const int tail = static_cast<int>(columns - col < kLanes ? columns - col : kLanes);
    ApplyChainToTile<1>(chain, count, rows + col, columns, rows + col, columns, offset + col, col, tail);
  }
}

}  // namespace xpu::cpu::XPU_ISA
#include "tensorflow_plugin/backends/cpu/simd/each_isa.h"
#endif  // XPU_ISA

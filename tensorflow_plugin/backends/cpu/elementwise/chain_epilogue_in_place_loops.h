// The loops of ApplyChainInPlace (chain_epilogue.h), once per instruction set.
#include "tensorflow_plugin/backends/cpu/simd/vector_math.h"

// Apart, so that a formatter leaves the order.
#include "tensorflow_plugin/backends/cpu/elementwise/chain_epilogue_loops.inc"

static inline void ApplyChainToRows(const ChainEpilogue& chain, int64_t first, int64_t count, float* out) {
  constexpr int kWide = XPU_VECTOR_BYTES == 64 ? 4 : 2;
  const int64_t columns = chain.columns, offset = first * columns;
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

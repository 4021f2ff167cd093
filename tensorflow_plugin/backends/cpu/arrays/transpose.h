// Transposes of tiles, for every element size.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_ARRAYS_TRANSPOSE_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_ARRAYS_TRANSPOSE_H_

#include <cstdint>

namespace xpu::cpu {

// The side of a full tile: long runs on both sides for the memory, and the tile still fits in the L2 cache.
inline constexpr int64_t kTransposeTileBytes = 512;

// Strides in bytes. The element (r, c), for r < rows and c < columns, goes
//   from src + r * size + c * src_column   to   dst + r * dst_row + c * dst_column.
using TransposeFunction = void (*)(const char* src, int64_t src_column, char* dst, int64_t dst_row, int64_t dst_column,
                                   int64_t rows, int64_t columns);

// For elements of 1, 2, 4, 8 or 16 bytes.
TransposeFunction TransposeFunctionFor(int64_t size);

}  // namespace xpu::cpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_ARRAYS_TRANSPOSE_H_

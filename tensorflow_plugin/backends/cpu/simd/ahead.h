// Memory that a loop reads soon. A loop that reads a little of each of several rows has no order that a processor sees.
// So the processor fetches nothing in advance. The loop names what comes next, in the order of addresses.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_SIMD_AHEAD_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_SIMD_AHEAD_H_

#include <cstdint>

namespace xpu::cpu {

struct Ahead {
  static constexpr int kLine = 64;  // bytes of a line of the caches

  // The rows begin at `from`. Each has `row_bytes` bytes and begins `row_stride` bytes behind the one before it.
  __attribute__((always_inline)) Ahead(const void* from, int64_t row_bytes, int64_t row_stride, int64_t piece)
      : next(static_cast<const char*>(from)), pieces((row_bytes + piece - 1) / piece), left(pieces) {
    skip = row_stride - pieces * piece;
  }

  // Brings the next piece to the second cache. A piece beyond all memory does no harm.
  __attribute__((always_inline)) void Fetch(int piece) {
#pragma GCC unroll 8
    for (int i = 0; i < piece; i += kLine) __builtin_prefetch(next + i, 0, 2);
    next += piece;
    if (--left == 0) {
      left = pieces;
      next += skip;
    }
  }

  // The next four pieces.
  __attribute__((always_inline)) void FetchFour(int piece) {
    if (left <= 4) {
      for (int i = 0; i < 4; ++i) Fetch(piece);
      return;
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4 * piece; i += kLine) __builtin_prefetch(next + i, 0, 2);
    next += 4 * piece;
    left -= 4;
  }

  const char* next;
  int64_t pieces, left;  // pieces of a row, and those of this row that are left
  int64_t skip;          // bytes from the end of a row's last piece to the next row
};

}  // namespace xpu::cpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_SIMD_AHEAD_H_

// Columns of weights of 4 bits (plain/weights.h), as the loops of products read them.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_MATMUL_WEIGHT_COLUMNS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_MATMUL_WEIGHT_COLUMNS_H_

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "tensorflow_plugin/backends/cpu/cost.h"
#include "tensorflow_plugin/backends/cpu/scratch.h"
#include "tensorflow_plugin/backends/plain/weights.h"

namespace xpu::cpu {

// The parts of the columns of a product that each thread has.
inline constexpr int64_t kPartsPerThread = 2;

// Some columns of weights: bytes, scales and zero points in rows. A row is a column of the weights for Halves::kTurned.
struct WeightColumns {
  const uint8_t* bytes;
  const float* scales;
  const int8_t* zero_points;
  int64_t row_bytes, ld_scales;  // from row to row
};

// The columns from `column` on. It begins a byte.
inline WeightColumns ColumnsFrom(const plain::Weights& w, int64_t column) {
  const int64_t scale = w.ScaleAt(0, column);
  return {w.bytes + w.ByteAt(0, column), w.scales + scale, w.zero_points + scale, w.row_bytes(),
          w.halves == Halves::kTurned ? w.groups : w.n};
}

// The same with zeros in place of columns that are missing to `columns`, for weights that are not turned.
inline WeightColumns PadColumns(const plain::Weights& w, int64_t column, int64_t columns, ScratchFrame* frame) {
  const bool down = w.halves == Halves::kDown;
  const int64_t here = std::min(columns, w.n - column), rows = down ? Count(w.k, 2) : w.k;
  const int64_t used = down ? here : Count(here, 2), width = down ? columns : columns / 2;
  auto* const bytes = frame->Get<uint8_t>(rows * width);
  auto* const scales = frame->Get<float>(w.groups * columns);
  auto* const zero_points = frame->Get<int8_t>(w.groups * columns);
  std::memset(bytes, 0, static_cast<size_t>(rows * width));
  std::fill_n(scales, w.groups * columns, 0.0f);
  std::fill_n(zero_points, w.groups * columns, int8_t{0});
  const uint8_t* const from = w.bytes + (down ? column : column / 2);
  for (int64_t i = 0; i < rows; ++i) std::copy_n(from + i * w.row_bytes(), used, bytes + i * width);
  for (int64_t g = 0; g < w.groups; ++g) {
    std::copy_n(w.scales + g * w.n + column, here, scales + g * columns);
    std::copy_n(w.zero_points + g * w.n + column, here, zero_points + g * columns);
  }
  return {bytes, scales, zero_points, width, columns};
}

}  // namespace xpu::cpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_MATMUL_WEIGHT_COLUMNS_H_

// Weights of 4 bits (FindWeightsDesc, WeightMatMulDesc), element by element.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_PLAIN_WEIGHTS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_PLAIN_WEIGHTS_H_

#include <cstdint>

#include "tensorflow_plugin/primitives/backend.h"

namespace xpu::plain {

struct Weights {
  Halves halves = Halves::kAcross;
  int64_t k = 0, n = 0, group = 1, groups = 1;
  const uint8_t* bytes = nullptr;
  const float* scales = nullptr;
  const int8_t* zero_points = nullptr;

  // From one row of bytes to the next.
  int64_t row_bytes() const {
    return halves == Halves::kAcross ? (n + 1) / 2 : halves == Halves::kDown ? n : (k + 1) / 2;
  }
  int64_t ByteAt(int64_t row, int64_t column) const {
    if (halves == Halves::kAcross) return row * row_bytes() + column / 2;
    return halves == Halves::kDown ? row / 2 * n + column : column * row_bytes() + row / 2;
  }
  // Where the scale and the zero point of a group of a column lie.
  int64_t ScaleAt(int64_t of_group, int64_t column) const {
    return halves == Halves::kTurned ? column * groups + of_group : of_group * n + column;
  }
  int WeightAt(int64_t row, int64_t column) const {
    const bool second = (halves == Halves::kAcross ? column : row) % 2 != 0;
    const int half = (bytes[ByteAt(row, column)] >> (second ? 4 : 0)) & 15;
    return half < 8 ? half : half - 16;
  }
  // The element that they stand for.
  float At(int64_t row, int64_t column) const {
    const int64_t scale = ScaleAt(row / group, column);
    return static_cast<float>(WeightAt(row, column) - zero_points[scale]) * scales[scale];
  }
  // True if so many bytes can hold such weights.
  bool AreWeights(int64_t num_bytes) const;
};

// Those of a product, as the form says; fails if that is no form of theirs.
Status WeightsOf(const WeightMatMulDesc& desc, const Args& args, Weights* weights);

}  // namespace xpu::plain

#endif  // TENSORFLOW_PLUGIN_BACKENDS_PLAIN_WEIGHTS_H_

// A TensorShape by its bytes.
#ifndef TENSORFLOW_PLUGIN_TF_INTERNALS_SHAPE_LAYOUT_H_
#define TENSORFLOW_PLUGIN_TF_INTERNALS_SHAPE_LAYOUT_H_

#include <array>
#include <cstdint>
#include <cstring>

#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow_plugin/tf_internals/check.h"

namespace xpu::tf_internals {

// TensorShape's first 16 bytes: dimensions of 2 or 4 bytes, then the data type of its tensor at 13, and the rank at 14.
// At 15 is which of the two (2: the dimensions are elsewhere).
struct PackedShape {
  uint64_t low, high;
};
inline constexpr int kRankByte = 14, kTagByte = 15;
enum ShapeTag { kTwoByteDims = 0, kFourByteDims = 1, kElsewhere = 2 };

inline int Byte(const PackedShape& packed, int i) { return packed.high >> (8 * (i - 8)) & 0xff; }

inline PackedShape Load(const tensorflow::TensorShape& shape) {
  PackedShape packed;
  static_assert(sizeof(tensorflow::TensorShape) >= sizeof(PackedShape));
  std::memcpy(&packed, static_cast<const void*>(&shape), sizeof packed);
  return packed;
}

// The bytes that identify a shape, by tag and rank: the data type and unused dimensions may hold anything.
inline constexpr int kMaxPackedRank = 6;
constexpr std::array<std::array<PackedShape, kMaxPackedRank + 1>, 2> MasksOfShapes() {
  std::array<std::array<PackedShape, kMaxPackedRank + 1>, 2> masks{};
  for (int tag = 0; tag < 2; ++tag) {
    for (int rank = 0; rank <= kMaxPackedRank; ++rank) {
      const int bytes = rank * (tag == kTwoByteDims ? 2 : 4);
      PackedShape mask{0, 0xffffull << 48};
      for (int i = 0; i < bytes && i < 12; ++i) (i < 8 ? mask.low : mask.high) |= 0xffull << (8 * (i % 8));
      masks[tag][rank] = mask;
    }
  }
  return masks;
}
inline constexpr auto kShapeMasks = MasksOfShapes();

// The bytes that identify the shape; false if its dimensions are elsewhere.
inline bool Pack(const tensorflow::TensorShape& shape, PackedShape* packed) {
  *packed = Load(shape);
  const int tag = Byte(*packed, kTagByte);
  if (tag == kElsewhere) return false;
  const PackedShape& mask = kShapeMasks[tag][Byte(*packed, kRankByte)];
  packed->low &= mask.low;
  packed->high &= mask.high;
  return true;
}

// If it fails, Pack must not be called.
void CheckShapes(Check& check);

}  // namespace xpu::tf_internals

#endif  // TENSORFLOW_PLUGIN_TF_INTERNALS_SHAPE_LAYOUT_H_

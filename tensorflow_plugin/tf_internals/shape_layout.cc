#include "tensorflow_plugin/tf_internals/shape_layout.h"

namespace xpu::tf_internals {

void CheckShapes(Check& check) {
  using tensorflow::TensorShape;
  struct Case {
    TensorShape shape;
    int tag;
    uint64_t low, high;
  };
  const Case cases[] = {
      {TensorShape({}), kTwoByteDims, 0, 0},
      {TensorShape({2, 3, 4, 5, 6, 7}), kTwoByteDims, 0x0005000400030002ull, 0x00070006ull},
      {TensorShape({1 << 20, 3, 5}), kFourByteDims, 0x0000000300100000ull, 5},
  };
  for (const Case& c : cases) {
    const PackedShape packed = Load(c.shape);
    const int rank = Byte(packed, kRankByte);
    if (!check.Is("the rank in a TensorShape's bytes", rank, c.shape.dims()) ||
        !check.Is("the kind of dimensions in a TensorShape's bytes", Byte(packed, kTagByte), c.tag)) {
      return;
    }
    const PackedShape& mask = kShapeMasks[c.tag][rank];
    if (!check.Is("a TensorShape's first dimensions", packed.low & mask.low, c.low) ||
        !check.Is("a TensorShape's last dimensions", packed.high & mask.high & 0xffffffffull, c.high)) {
      return;
    }
  }
  check.Is("the kind of seven dimensions", Byte(Load(TensorShape({1, 1, 1, 1, 1, 1, 1})), kTagByte),
           static_cast<int>(kElsewhere));
}

}  // namespace xpu::tf_internals

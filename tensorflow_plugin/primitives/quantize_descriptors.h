// The descriptors of quantization that need no program (descriptors.h has all others, and the conventions).
#ifndef TENSORFLOW_PLUGIN_PRIMITIVES_QUANTIZE_DESCRIPTORS_H_
#define TENSORFLOW_PLUGIN_PRIMITIVES_QUANTIZE_DESCRIPTORS_H_

#include <cstdint>

#include "tensorflow_plugin/primitives/types.h"

namespace xpu {

// Makes 8-bit integers of the elements of each row, by the largest magnitude in it:
//   scale = levels / (max |x| + epsilon)    q = max(min(rint(x * scale), most), least)
// Each operation is rounded, and what it does with a NaN is what the instruction of its name does. A q beyond int8 is
// cast as Cast does.
//   in:  x dense [rows, cols]; epsilon, levels, most, least: one element each
//   out: q dense [rows, cols] int8, scale dense [rows]
struct QuantizeRowsDesc {
  DType type = DType::kFloat;
  int64_t rows = 0, cols = 0;

  template <typename Visit>
  void ForEachExtent(Visit&& visit) {
    for (int64_t* extent : {&rows, &cols}) visit(*extent);
  }
};

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_PRIMITIVES_QUANTIZE_DESCRIPTORS_H_

// DType <-> TensorFlow's type numbers (TF_DataType and tensorflow::DataType share them).
#ifndef TENSORFLOW_PLUGIN_TF_INTERNALS_TF_TYPES_H_
#define TENSORFLOW_PLUGIN_TF_INTERNALS_TF_TYPES_H_

#include "tensorflow_plugin/primitives/types.h"

namespace xpu {

// The TensorFlow number of each DType, by DType order (tensorflow/c/tf_datatype.h).
constexpr int ToTf(DType t) {
  constexpr int codes[kNumDTypes] = {0, 10, 6, 5, 3, 9, 4, 17, 22, 23, 19, 14, 1, 2, 8, 18};
  return codes[static_cast<int>(t)];
}

// kInvalid for types that have no arithmetic here (string, resource, variant, quantized, float8 ...).
constexpr DType FromTf(int code) {
  for (int i = 1; i < kNumDTypes; ++i) {
    if (ToTf(static_cast<DType>(i)) == code) return static_cast<DType>(i);
  }
  return DType::kInvalid;
}

// The same by table: FromTf is a loop, and this is asked for every argument of every op.
struct FromTfTable {
  DType types[128];
  constexpr FromTfTable() : types() {
    for (int i = 0; i < 128; ++i) types[i] = FromTf(i);
  }
};
inline constexpr FromTfTable kFromTf;
inline DType FastFromTf(int code) { return static_cast<unsigned>(code) < 128u ? kFromTf.types[code] : DType::kInvalid; }

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_TF_INTERNALS_TF_TYPES_H_

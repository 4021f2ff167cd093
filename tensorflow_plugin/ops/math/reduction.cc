#include "tensorflow_plugin/ops/math/reduction.h"

namespace xpu {

void SetReduced(const AxisSet& reduced, ReduceDesc* desc) {
  Dims& shape = desc->source.shape;
  Dims* const strides = desc->source.in_strides;
  const int num_inputs = desc->source.program->num_inputs();
  desc->axes = 0;
  int last = -1;  // the axis that was written last
  bool last_reduced = false;
  for (int i = 0; i < shape.rank(); ++i) {
    const int64_t extent = shape[i];
    if (extent == 1) continue;
    bool merges = last >= 0 && reduced[i] == last_reduced;
    for (int k = 0; merges && k < num_inputs; ++k) merges = strides[k][last] == strides[k][i] * extent;
    if (merges) {
      shape[last] *= extent;
    } else {
      shape[++last] = extent;
      // The primitive refuses more axes than these.
      if (reduced[i] && last < ReduceDesc::kMaxRank) desc->axes |= 1u << last;
    }
    for (int k = 0; k < num_inputs; ++k) strides[k][last] = strides[k][i];
    last_reduced = reduced[i];
  }
  if (last < 0) {
    shape = Dims(1, 1);
    for (int k = 0; k < num_inputs; ++k) strides[k] = Dims(1, 1);
    return;
  }
  shape.resize(last + 1);
  for (int k = 0; k < num_inputs; ++k) strides[k].resize(last + 1);
}

void SetDenseSource(const Dims& dims, const AxisSet& reduced, ReduceDesc* desc) {
  desc->source.shape = dims;
  desc->source.in_strides[0] = DenseStrides(dims);
  SetReduced(reduced, desc);
}

}  // namespace xpu

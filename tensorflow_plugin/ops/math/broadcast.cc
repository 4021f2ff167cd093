#include "tensorflow_plugin/ops/math/broadcast.h"

#include <algorithm>

namespace xpu {

bool BroadcastStrides(const Dims& from, const Dims& to, Dims* strides) {
  const int lead = to.rank() - from.rank();
  if (lead < 0) return false;
  *strides = Dims(to.rank(), 0);
  int64_t stride = 1;
  for (int i = from.rank() - 1; i >= 0; --i) {
    if (from[i] != 1) {
      if (from[i] != to[lead + i]) return false;
      (*strides)[lead + i] = stride;
    }
    stride *= from[i];
  }
  return true;
}

bool BroadcastAny(const Tensor* operands, int num_operands, ElementwiseDesc* desc, Dims* result) {
  int rank = 0;
  for (int k = 0; k < num_operands; ++k) rank = std::max(rank, operands[k].rank());
  *result = Dims(rank, 1);
  for (int k = 0; k < num_operands; ++k) {
    const Dims& dims = operands[k].dims();
    const int lead = rank - dims.rank();
    for (int i = 0; i < dims.rank(); ++i) {
      if (dims[i] == 1) continue;
      int64_t& extent = (*result)[lead + i];
      if (extent != 1 && extent != dims[i]) return false;
      extent = dims[i];
    }
  }
  desc->shape = *result;
  Dims* strides[Program::kMaxInputs];
  for (int k = 0; k < num_operands; ++k) {
    strides[k] = &desc->in_strides[k];
    if (!BroadcastStrides(operands[k].dims(), *result, strides[k])) return false;
  }
  if (rank == 0) {
    SetFlat(1, num_operands, desc);
  } else {
    MergeDims(&desc->shape, strides, num_operands);
  }
  return true;
}

}  // namespace xpu

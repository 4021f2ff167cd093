// Descriptors in one form, once for all backends. In a descriptor a stride of 0, or none, may stand for a dense matrix.
// A batch may be no more than further rows of one matrix.
#ifndef TENSORFLOW_PLUGIN_PRIMITIVES_CANONICAL_H_
#define TENSORFLOW_PLUGIN_PRIMITIVES_CANONICAL_H_

#include <cstdint>

#include "tensorflow_plugin/primitives/descriptors.h"

namespace xpu {

// Where the matrices of a matmul lie: every stride in numbers. Batch dimensions that all operands walk as one are one.
struct MatMulLayout {
  explicit MatMulLayout(const MatMulDesc& desc);

  Dims batch;
  Dims a_strides, b_strides, c_strides;  // from matrix to matrix
  int64_t lda, ldb, ldc;                 // from row to row
};

// Gives a matmul that layout. A batch that only stacks rows of `a` and `c` becomes rows.
void Canonicalize(MatMulDesc* desc);

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_PRIMITIVES_CANONICAL_H_

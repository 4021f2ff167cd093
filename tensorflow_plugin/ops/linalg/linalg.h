// The common part of the ops on batches of matrices.
#ifndef TENSORFLOW_PLUGIN_OPS_LINALG_LINALG_H_
#define TENSORFLOW_PLUGIN_OPS_LINALG_LINALG_H_

#include <cstdint>
#include <vector>

#include "tensorflow_plugin/framework/registry.h"
#include "tensorflow_plugin/ops/arrays/util.h"

namespace xpu {

// float, double, complex64, complex128.
extern const TypeList kMatrixTypes;

// A tensor as a batch of matrices.
struct Matrices {
  Dims batch_shape;
  int64_t batch = 0, rows = 0, cols = 0;

  // The batch's shape with more extents behind.
  Dims Shape(std::initializer_list<int64_t> extents) const;
};

// Reads inputs 0 to count - 1, as TensorFlow's linear algebra does: ranks of 2 at least, and all the same outer
// extents.
Status ReadMatrices(Context& ctx, int count, Matrices* m);
// The same of one input, a batch of square matrices.
Status ReadSquare(Context& ctx, Matrices* m);

// Launches a command that fails with InvalidArgument on matrices that it cannot do; the error has these words.
template <typename Desc>
Status LaunchOrSay(Context& ctx, const Desc& desc, std::initializer_list<const void*> in,
                   std::initializer_list<void*> out, const char* words) {
  const DescribeError explain = [words](const Status&, const std::vector<int64_t>&) {
    return errors::InvalidArgument(words);
  };
  const Status status = ctx.LaunchChecked(desc, in, out, &explain);
  return status.code() == Code::kInvalidArgument ? explain(status, {}) : status;
}

namespace needs {
Need Factorize(FactorizeKind kind, TypeRef type);
Need Solve(SolveKind kind, TypeRef type, bool adjoint = false, bool perturb = false);
}  // namespace needs

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_OPS_LINALG_LINALG_H_

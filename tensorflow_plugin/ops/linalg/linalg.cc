#include "tensorflow_plugin/ops/linalg/linalg.h"

namespace xpu {

const TypeList kMatrixTypes = {DType::kFloat, DType::kDouble, DType::kComplex64, DType::kComplex128};

Dims Matrices::Shape(std::initializer_list<int64_t> extents) const {
  Dims shape = batch_shape;
  for (int64_t extent : extents) shape.push_back(extent);
  return shape;
}

Status ReadMatrices(Context& ctx, int count, Matrices* m) {
  const Tensor first = ctx.input(0);
  XPU_REQUIRE(first.rank() >= 2, errors::InvalidArgument("Input tensor 0 must have rank >= 2, got ", first.rank()));
  for (int i = 1; i < count; ++i) {
    const Tensor other = ctx.input(i);
    XPU_REQUIRE(other.rank() == first.rank(), errors::InvalidArgument("All input tensors must have the same rank."));
    for (int axis = 0; axis < first.rank() - 2; ++axis) {
      XPU_REQUIRE(other.dim(axis) == first.dim(axis),
                  errors::InvalidArgument("All input tensors must have the same outer dimensions."));
    }
  }
  m->batch_shape = {};
  Append(first.dims(), 0, first.rank() - 2, &m->batch_shape);
  m->batch = m->batch_shape.num_elements();
  m->rows = first.dim(first.rank() - 2);
  m->cols = first.dim(first.rank() - 1);
  return OkStatus();
}

Status ReadSquare(Context& ctx, Matrices* m) {
  XPU_RETURN_IF_ERROR(ReadMatrices(ctx, 1, m));
  XPU_REQUIRE(m->rows == m->cols, errors::InvalidArgument("Input matrix must be square."));
  return OkStatus();
}

namespace needs {

Need Factorize(FactorizeKind kind, TypeRef type) {
  return [=](Needs& n) {
    FactorizeDesc desc;
    desc.kind = kind;
    desc.type = type.In(n);
    n.Ask(desc);
  };
}

Need Solve(SolveKind kind, TypeRef type, bool adjoint, bool perturb) {
  return [=](Needs& n) {
    SolveDesc desc;
    desc.kind = kind;
    desc.type = type.In(n);
    desc.adjoint = adjoint;
    desc.perturb = perturb;
    n.Ask(desc);
  };
}

}  // namespace needs
}  // namespace xpu

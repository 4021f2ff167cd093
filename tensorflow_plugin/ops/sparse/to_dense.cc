// SparseToDense: a scatter of values over a default.
#include "tensorflow_plugin/ops/arrays/indexing.h"
#include "tensorflow_plugin/ops/math/elementwise.h"
#include "tensorflow_plugin/ops/ops.h"

namespace xpu {
namespace {

// One more coordinate of a row-major position.
const Program* PositionProgram(DType type) {
  ProgramBuilder b;
  const FormulaValue position{&b, b.Input(DType::kInt64)}, extent{&b, b.Input(DType::kInt64)};
  b.Output((position * extent + Cast({&b, b.Input(type)}, DType::kInt64)).reg);
  return b.Build();
}

// 0 for a position that is beyond the one before it. Otherwise a number that says which it is and the mistake: below 0,
// and odd where the two are not equal.
const Program* OrderProgram() {
  ProgramBuilder b;
  const FormulaValue position{&b, b.Input(DType::kInt64)}, before{&b, b.Input(DType::kInt64)};
  const FormulaValue wrong = position.Const(-2) - position - position;
  const FormulaValue code = Select(position < before, wrong + position.Const(1), wrong);
  b.Output(Select(before < position, position.Const(0), code).reg);
  return b.Build();
}

class SparseToDenseKernel : public OpKernel {
 public:
  explicit SparseToDenseKernel(Construction& c)
      : validate_(c.Attr<bool>("validate_indices")), position_(PositionProgram(c.Attr<DType>("Tindices"))) {}

  Status Compute(Context& ctx) override {
    const Tensor indices = ctx.input(0), shape_arg = ctx.input(1), values = ctx.input(2), missing = ctx.input(3);
    XPU_REQUIRE(indices.rank() <= 2,
                errors::InvalidArgument("sparse_indices should be a scalar, vector, or matrix, got shape ",
                                        indices.ShapeString()));
    const int64_t n = indices.rank() > 0 ? indices.dim(0) : 1, depth = indices.rank() > 1 ? indices.dim(1) : 1;
    XPU_REQUIRE(shape_arg.IsVector(),
                errors::InvalidArgument("output_shape must be rank 1, got shape ", shape_arg.ShapeString()));
    XPU_REQUIRE(shape_arg.num_elements() == depth,
                errors::InvalidArgument("output_shape has incorrect number of elements: ", shape_arg.num_elements(),
                                        " should be: ", depth));
    XPU_REQUIRE(values.IsScalar() || (values.IsVector() && values.num_elements() == n),
                errors::InvalidArgument("sparse_values has incorrect shape ", values.ShapeString(),
                                        ", should be [] or [", n, "]"));
    XPU_REQUIRE(missing.IsScalar(), errors::InvalidArgument("default_value should be a scalar."));
    Dims shape;
    XPU_RETURN_IF_ERROR(HostShape(shape_arg, "output_shape", &shape));
    Tensor out;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &out));
    if (validate_ && n > 0) {
      if (depth > 0) XPU_RETURN_IF_ERROR(CheckBounds(ctx, indices, n, shape));
      if (n > 1) XPU_RETURN_IF_ERROR(CheckOrder(ctx, indices, n, shape));
    }
    if (out.num_elements() > 0) XPU_RETURN_IF_ERROR(Fill(ctx, missing.data(), out));
    if (n == 0) return OkStatus();
    ScatterDesc desc;
    desc.type = out.dtype();
    desc.index_type = indices.dtype();
    desc.num_indices = n;
    desc.scalar_update = values.IsScalar();
    desc.dims = shape;
    const DescribeError outside = [shape](const Status&, const std::vector<int64_t>&) {
      return errors::InvalidArgument("Indices are not valid (out of bounds).  Shape: ", shape.ToString());
    };
    return LaunchExplained(ctx, desc, {indices.data(), values.data()}, out.mutable_data(), outside);
  }

 private:
  static Status CheckBounds(Context& ctx, const Tensor& indices, int64_t n, const Dims& shape) {
    GatherDesc check;
    check.element_size = 1;
    check.index_type = indices.dtype();
    check.inner = 0;
    check.num_indices = n;
    check.dims = shape;
    const DescribeError explain = [shape](const Status& failure, const std::vector<int64_t>& values) -> Status {
      const int depth = shape.rank();
      for (size_t i = 0; i < values.size(); i += depth) {
        Dims index;
        bool bad = false;
        for (int d = 0; d < depth; ++d) {
          index.push_back(values[i + d]);
          bad |= index[d] < 0 || index[d] >= shape[d];
        }
        if (!bad) continue;
        return errors::InvalidArgument("indices[", i / depth, "] = ", index.ToString(),
                                       " is out of bounds: need 0 <= index < ", shape.ToString());
      }
      return failure;
    };
    return LaunchExplained(ctx, check, {nullptr, indices.data()}, nullptr, explain);
  }

  // That each index comes after the one before it.
  Status CheckOrder(Context& ctx, const Tensor& indices, int64_t n, const Dims& shape) const {
    Temporary extents, position, codes;
    XPU_RETURN_IF_ERROR(Upload(ctx, {shape.begin(), shape.end()}, DType::kInt64, &extents));
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kInt64, {n}, &position));
    XPU_RETURN_IF_ERROR(FillZero(ctx, position.tensor()));
    int64_t* const p = static_cast<int64_t*>(position.data());
    const int depth = shape.rank();
    ElementwiseDesc step;
    step.program = position_;
    SetFlat(n, 3, &step);
    step.in_strides[1] = {0};
    step.in_strides[2] = {depth};
    for (int d = 0; d < depth; ++d) {
      const char* column = static_cast<const char*>(indices.data()) + d * SizeOf(indices.dtype());
      XPU_RETURN_IF_ERROR(ctx.Launch(step, {p, static_cast<const int64_t*>(extents.data()) + d, column}, {p}));
    }
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kInt64, {n - 1}, &codes));
    ElementwiseDesc order;
    order.program = OrderProgram();
    SetFlat(n - 1, 2, &order);
    XPU_RETURN_IF_ERROR(ctx.Launch(order, {p + 1, p}, {codes.data()}));
    GatherDesc check;
    check.element_size = 1;
    check.inner = 0;
    check.num_indices = n - 1;
    check.dims = {1};
    const DescribeError explain = [shape](const Status& failure, const std::vector<int64_t>& values) -> Status {
      for (size_t i = 0; i < values.size(); ++i) {
        if (values[i] == 0) continue;
        const bool repeated = values[i] % 2 == 0;
        int64_t rest = (-1 - values[i]) / 2;
        Dims index(shape.rank(), 0);
        for (int d = shape.rank() - 1; d >= 0; --d) {
          index[d] = rest % shape[d];
          rest /= shape[d];
        }
        return errors::InvalidArgument("indices[", i + 1, "] = ", index.ToString(),
                                       repeated
                                           ? " is repeated"
                                           : " is out of order. Many sparse ops require sorted indices.\n"
                                             "    Use `tf.sparse.reorder` to create a correctly ordered copy.\n\n");
      }
      return failure;
    };
    return LaunchExplained(ctx, check, {nullptr, codes.data()}, nullptr, explain);
  }

  const bool validate_;
  const Program* const position_;
};

}  // namespace

void RegisterSparseToDense(Registry& registry) {
  registry.Op("SparseToDense")
      .Types("T", Union(Union(kRealTypes, {DType::kBool}), {DType::kInt32}))  // int32 in device memory, as on GPUs
      .Types("Tindices", {DType::kInt32, DType::kInt64})
      .Host({"output_shape", "default_value"})
      .Requires(needs::Scatter(ScatterKind::kUpdate, "T", "Tindices"))
      .Requires(needs::Copy("T"))
      .Requires([](Needs& n) {
        n.AskProgram(PositionProgram(n.type("Tindices")));
        n.AskProgram(OrderProgram());
        GatherDesc check;
        check.element_size = 1;
        for (DType type : {n.type("Tindices"), DType::kInt64}) {
          check.index_type = type;
          n.Ask(check);
        }
      })
      .Kernel<SparseToDenseKernel>();
}

}  // namespace xpu

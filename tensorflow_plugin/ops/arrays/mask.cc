// Ops whose elements depend on their position: MatrixBandPart and OneHot. Positions reach the device as a short row of
// integers that a program works with.
#include <numeric>

#include "tensorflow_plugin/ops/arrays/util.h"
#include "tensorflow_plugin/ops/ops.h"

namespace xpu {
namespace {

// Keeps x[..., m, n] where m - num_lower <= n <= m + num_upper; zeros elsewhere. The limits of a row are known on the
// host, so that an element costs one comparison per limit and one selection.
class MatrixBandPartKernel : public OpKernel {
 public:
  explicit MatrixBandPartKernel(Construction& c) {
    const DType type = c.Attr<DType>("T");
    for (int limits = 1; limits <= 3; ++limits) {
      ProgramBuilder b;
      const auto x = b.Input(type);
      const auto col = b.Input(DType::kInt32), first = b.Input(DType::kInt32), last = b.Input(DType::kInt32);
      const auto right = b.Apply(Opcode::kGreaterEqual, col, first), left = b.Apply(Opcode::kLessEqual, col, last);
      const auto keep = limits == 1 ? right : limits == 2 ? left : b.Apply(Opcode::kLogicalAnd, right, left);
      b.Output(b.Apply(Opcode::kSelect, keep, x, b.Const(type, 0)));
      programs_[limits] = b.Build();
    }
  }

  Status Compute(Context& ctx) override {
    const Tensor x = ctx.input(0);
    XPU_REQUIRE(x.rank() >= 2,
                errors::InvalidArgument("input must be at least 2-dim, received shape: ", x.ShapeString()));
    const int64_t rows = x.dim(x.rank() - 2), cols = x.dim(x.rank() - 1);
    int64_t lower, upper;
    for (int i : {1, 2}) {
      XPU_REQUIRE(ctx.input(i).IsScalar(),
                  errors::InvalidArgument(i == 1 ? "num_lower" : "num_upper", " must be scalar, got shape ",
                                          ctx.input(i).ShapeString()));
    }
    XPU_RETURN_IF_ERROR(HostInteger(ctx.input(1), "num_lower", &lower));
    XPU_RETURN_IF_ERROR(HostInteger(ctx.input(2), "num_upper", &upper));
    XPU_REQUIRE(lower <= rows,
                errors::InvalidArgument("num_lower must be negative or less or equal to number of rows (", rows,
                                        ") got: ", lower));
    XPU_REQUIRE(upper <= cols,
                errors::InvalidArgument("num_upper must be negative or less or equal to number of columns (", cols,
                                        ") got: ", upper));
    XPU_REQUIRE(rows + cols <= INT32_MAX, errors::Unimplemented("MatrixBandPart of a matrix of ", rows, " x ", cols));
    const bool limit_left = lower >= 0 && lower < rows - 1, limit_right = upper >= 0 && upper < cols - 1;
    if (!limit_left && !limit_right) return ctx.ShareOutput(0, x, x.dims());
    Tensor y;
    XPU_RETURN_IF_ERROR(ctx.ForwardOrAllocateLike({0}, 0, x, &y));
    if (y.num_elements() == 0) return OkStatus();
    // The numbers of the columns, then each row's first and last column.
    std::vector<int64_t> limits(cols + 2 * rows);
    std::iota(limits.begin(), limits.begin() + cols, 0);
    std::iota(limits.begin() + cols, limits.begin() + cols + rows, -lower);
    std::iota(limits.begin() + cols + rows, limits.end(), upper);
    Temporary device;
    XPU_RETURN_IF_ERROR(Upload(ctx, limits, DType::kInt32, &device));
    const int32_t* columns = static_cast<const int32_t*>(device.data());

    ElementwiseDesc desc;
    desc.program = programs_[limit_left + 2 * limit_right];
    desc.shape = {x.num_elements() / (rows * cols), rows, cols};
    desc.in_strides[0] = DenseStrides(desc.shape);
    desc.in_strides[1] = {0, 0, 1};
    desc.in_strides[2] = desc.in_strides[3] = {0, 1, 0};
    return ctx.Launch(desc, {x.data(), columns, columns + cols, columns + cols + rows}, {y.mutable_data()});
  }

 private:
  const Program* programs_[4] = {};  // by limits: 1 to the left, 2 to the right, 3 both
};

// off_value everywhere, then on_value where an index says so. Indices become positions in the output (-1 for those that
// are out of range), which Scatter writes.
class OneHotKernel : public OpKernel {
 public:
  explicit OneHotKernel(Construction& c) : axis_(c.Attr<int64_t>("axis")) {
    ProgramBuilder b;
    const auto index = b.Cast(b.Input(c.Attr<DType>("TI")), DType::kInt64);
    const auto base = b.Input(DType::kInt64), offset = b.Input(DType::kInt64);
    const auto depth = b.Input(DType::kInt64), suffix = b.Input(DType::kInt64);
    const auto position =
        b.Apply(Opcode::kAdd, b.Apply(Opcode::kAdd, base, offset), b.Apply(Opcode::kMul, index, suffix));
    const auto valid = b.Apply(Opcode::kLogicalAnd, b.Apply(Opcode::kGreaterEqual, index, b.ConstInt(DType::kInt64, 0)),
                               b.Apply(Opcode::kLess, index, depth));
    b.Output(b.Apply(Opcode::kSelect, valid, position, b.ConstInt(DType::kInt64, -1)));
    program_ = b.Build();
  }

  Status Compute(Context& ctx) override {
    const Tensor indices = ctx.input(0), depth_arg = ctx.input(1), on = ctx.input(2), off = ctx.input(3);
    XPU_REQUIRE(axis_ == -1 || (axis_ >= 0 && axis_ <= indices.rank()),
                errors::InvalidArgument("Expected axis to be -1 or between [0, ", indices.rank() + 1,
                                        ").  But received: ", axis_));
    XPU_REQUIRE(depth_arg.IsScalar(),
                errors::InvalidArgument("depth must be a scalar, but got: ", depth_arg.ShapeString()));
    XPU_REQUIRE(on.IsScalar(), errors::InvalidArgument("on_value must be a scalar, but got: ", on.ShapeString()));
    XPU_REQUIRE(off.IsScalar(), errors::InvalidArgument("off_value must be a scalar, but got: ", off.ShapeString()));
    int64_t depth;
    XPU_RETURN_IF_ERROR(HostInteger(depth_arg, "depth", &depth));
    XPU_REQUIRE(depth >= 0, errors::InvalidArgument("depth must be non-negative, got: ", depth));
    const int axis = axis_ == -1 ? indices.rank() : static_cast<int>(axis_);
    Dims shape;
    Append(indices.dims(), 0, axis, &shape);
    shape.push_back(depth);
    Append(indices.dims(), axis, indices.rank(), &shape);
    Tensor y;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &y));
    const int64_t n = y.num_elements();
    if (n == 0) return OkStatus();
    XPU_RETURN_IF_ERROR(CopyView(ctx, SizeOf(y.dtype()), {n}, off.data(), {{0}, 0}, y.mutable_data(), {{1}, 0}));

    // Element (p, s) of the indices, seen as [prefix, suffix], goes to p * depth * suffix + index * suffix + s.
    const int64_t prefix = Product(shape, 0, axis), suffix = Product(shape, axis + 1, shape.rank());
    std::vector<int64_t> parts(prefix + suffix + 2);
    for (int64_t p = 0; p < prefix; ++p) parts[p] = p * depth * suffix;
    std::iota(parts.begin() + prefix, parts.begin() + prefix + suffix, 0);
    parts[prefix + suffix] = depth;
    parts[prefix + suffix + 1] = suffix;
    Temporary part, positions;
    XPU_RETURN_IF_ERROR(Upload(ctx, parts, DType::kInt64, &part));
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kInt64, {prefix * suffix}, &positions));
    const int64_t* base = static_cast<const int64_t*>(part.data());

    ElementwiseDesc desc;
    desc.program = program_;
    desc.shape = {prefix, suffix};
    desc.in_strides[0] = {suffix, 1};
    desc.in_strides[1] = {1, 0};
    desc.in_strides[2] = {0, 1};
    desc.in_strides[3] = desc.in_strides[4] = {0, 0};
    const int64_t* scalars = base + prefix + suffix;
    XPU_RETURN_IF_ERROR(
        ctx.Launch(desc, {indices.data(), base, base + prefix, scalars, scalars + 1}, {positions.data()}));
    ScatterDesc scatter;
    scatter.type = y.dtype();
    scatter.num_indices = prefix * suffix;
    scatter.scalar_update = true;
    scatter.skip_negative = true;
    scatter.dims = {n};
    return ctx.Launch(scatter, {positions.data(), on.data()}, {y.mutable_data()});
  }

 private:
  const int64_t axis_;
  const Program* program_;
};

}  // namespace

void RegisterArrayMask(Registry& registry) {
  registry.Op("MatrixBandPart")
      .Types("T", kAllTypes)
      .Host({"num_lower", "num_upper"})
      .AllHostFor(DType::kInt32, {"input", "band"})
      .Requires(Opcode::kSelect)
      .Kernel<MatrixBandPartKernel>();
  registry.Op("OneHot")
      .Types("T", kAllTypes)
      .Types("TI", {DType::kUint8, DType::kInt8, DType::kInt32, DType::kInt64})
      .Host({"depth"})
      .AllHostFor(DType::kInt32, {"indices", "on_value", "off_value", "output"})
      .Requires(needs::Op(Opcode::kSelect, DType::kInt64))
      .Requires(needs::Cast("TI", DType::kInt64))
      .Requires(needs::Copy("T"))
      .Requires(needs::Scatter(ScatterKind::kUpdate, "T", DType::kInt64))
      .Kernel<OneHotKernel>();
}

}  // namespace xpu

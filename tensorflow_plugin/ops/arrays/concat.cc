// Concat, Split, Pack, Unpack: several tensors side by side in one.
#include "tensorflow_plugin/ops/arrays/util.h"
#include "tensorflow_plugin/ops/ops.h"

namespace xpu {
namespace {

// A dense array seen as [outer, middle, inner] around an axis. A part of it that is `extent` thick copies between
// `whole` (offset and pitch along the axis) and a dense tensor of its own.
struct Around {
  int64_t outer = 1, inner = 1;
  Around(const Dims& dims, int axis)
      : outer(Product(dims, 0, axis)), inner(axis < dims.rank() ? Product(dims, axis + 1, dims.rank()) : 1) {}

  Dims PartShape(int64_t extent) const { return {outer, extent * inner}; }
  View PartView(int64_t extent) const { return {{extent * inner, 1}, 0}; }
  View WholeView(int64_t offset, int64_t total) const { return {{total * inner, 1}, offset * inner}; }
};

// Concat (axis first) and ConcatV2 (axis last).
class ConcatKernel : public OpKernel {
 public:
  ConcatKernel(Construction&, bool axis_first) : axis_first_(axis_first) {}

  Status Compute(Context& ctx) override {
    const int n = ctx.num_inputs() - 1, first = axis_first_ ? 1 : 0;
    const Tensor axis_arg = ctx.input(axis_first_ ? 0 : n);
    int64_t axis;
    XPU_REQUIRE(axis_arg.num_elements() == 1,
                errors::InvalidArgument(axis_first_ ? "concat_dim" : "axis",
                                        " tensor should be a scalar integer, but got shape ", axis_arg.ShapeString()));
    XPU_RETURN_IF_ERROR(HostInteger(axis_arg, "axis", &axis));
    const Tensor x0 = ctx.input(first);
    const int rank = x0.rank();
    const int64_t given = axis;
    if (axis < 0) axis += rank;
    // Scalars join to a vector.
    XPU_REQUIRE((axis >= 0 && axis < rank) || (rank == 0 && axis == 0),
                errors::InvalidArgument("ConcatOp : Expected concatenating dimensions in the range [", -rank, ", ",
                                        rank, "), but got ", given));
    int64_t total = 0;
    int nonempty = -1;
    for (int i = 0; i < n; ++i) {
      const Tensor x = ctx.input(first + i);
      XPU_REQUIRE(x.rank() == rank,
                  errors::InvalidArgument("ConcatOp : Ranks of all input tensors should match: "
                                          "shape[0] = ",
                                          x0.ShapeString(), " vs. shape[", i, "] = ", x.ShapeString()));
      for (int d = 0; d < rank; ++d) {
        XPU_REQUIRE(d == axis || x.dim(d) == x0.dim(d),
                    errors::InvalidArgument("ConcatOp : Dimension ", d, " in both shapes must be equal: shape[0] = ",
                                            x0.ShapeString(), " vs. shape[", i, "] = ", x.ShapeString()));
      }
      total += rank == 0 ? 1 : x.dim(axis);
      if (x.num_elements() > 0) nonempty = nonempty == -1 ? i : n;
    }
    Dims shape = x0.dims();
    if (rank == 0) {
      shape.push_back(total);
    } else {
      shape[axis] = total;
    }
    // One input holds everything.
    if (nonempty >= 0 && nonempty < n) return ctx.ShareOutput(0, ctx.input(first + nonempty), shape);

    Tensor y;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &y));
    const Around around(shape, axis);
    int64_t offset = 0;
    for (int i = 0; i < n; ++i) {
      const Tensor x = ctx.input(first + i);
      const int64_t extent = rank == 0 ? 1 : x.dim(axis);
      XPU_RETURN_IF_ERROR(CopyView(ctx, SizeOf(x.dtype()), around.PartShape(extent), x.data(), around.PartView(extent),
                                   y.mutable_data(), around.WholeView(offset, total)));
      offset += extent;
    }
    return OkStatus();
  }

 private:
  const bool axis_first_;
};

// Writes x[..., begin : begin + extent, ...] to output i, where extents sum up to x.dim(axis).
Status SplitInto(Context& ctx, const Tensor& x, int axis, const std::vector<int64_t>& extents) {
  const Around around(x.dims(), axis);
  Dims shape = x.dims();
  int64_t offset = 0;
  for (size_t i = 0; i < extents.size(); ++i) {
    shape[axis] = extents[i];
    if (extents[i] == x.dim(axis)) {
      XPU_RETURN_IF_ERROR(ctx.ShareOutput(i, x, shape));
    } else {
      Tensor y;
      XPU_RETURN_IF_ERROR(ctx.AllocateOutput(i, shape, &y));
      XPU_RETURN_IF_ERROR(CopyView(ctx, SizeOf(x.dtype()), around.PartShape(extents[i]), x.data(),
                                   around.WholeView(offset, x.dim(axis)), y.mutable_data(),
                                   around.PartView(extents[i])));
    }
    offset += extents[i];
  }
  return OkStatus();
}

Status SplitAxis(const Tensor& axis_arg, const Tensor& x, int* axis) {
  int64_t given;
  XPU_RETURN_IF_ERROR(HostInteger(axis_arg, "split_dim", &given));
  const int64_t a = given < 0 ? given + x.rank() : given;
  XPU_REQUIRE(a >= 0 && a < x.rank(),
              errors::InvalidArgument("-input rank(-", x.rank(), ") <= split_dim < input rank (", x.rank(),
                                      "), but got ", given));
  *axis = static_cast<int>(a);
  return OkStatus();
}

class SplitKernel : public OpKernel {
 public:
  explicit SplitKernel(Construction& c) : num_split_(c.Attr<int64_t>("num_split")) {}

  Status Compute(Context& ctx) override {
    const Tensor x = ctx.input(1);
    int axis;
    XPU_REQUIRE(ctx.input(0).IsScalar(),
                errors::InvalidArgument("split_dim must be a scalar but has rank ", ctx.input(0).rank()));
    XPU_RETURN_IF_ERROR(SplitAxis(ctx.input(0), x, &axis));
    XPU_REQUIRE(num_split_ > 0 && x.dim(axis) % num_split_ == 0,
                errors::InvalidArgument("Number of ways to split should evenly divide the split dimension, but got "
                                        "split_dim ",
                                        axis, " (size = ", x.dim(axis), ") and num_split ", num_split_));
    return SplitInto(ctx, x, axis, std::vector<int64_t>(num_split_, x.dim(axis) / num_split_));
  }

 private:
  const int64_t num_split_;
};

class SplitVKernel : public OpKernel {
 public:
  explicit SplitVKernel(Construction& c) : num_split_(c.Attr<int64_t>("num_split")) {}

  Status Compute(Context& ctx) override {
    const Tensor x = ctx.input(0), sizes_arg = ctx.input(1);
    int axis;
    XPU_REQUIRE(ctx.input(2).num_elements() == 1,
                errors::InvalidArgument("split_dim_tensor must have exactly one element."));
    XPU_RETURN_IF_ERROR(SplitAxis(ctx.input(2), x, &axis));
    std::vector<int64_t> sizes;
    XPU_RETURN_IF_ERROR(HostIntegers(sizes_arg, "size_splits", &sizes));
    XPU_REQUIRE(sizes_arg.IsVector() && static_cast<int64_t>(sizes.size()) == num_split_,
                errors::InvalidArgument(
                    "size of the split_tensor must be 1-D and have the same elements as outputs got ", sizes_arg.rank(),
                    " -D and ", sizes_arg.num_elements(), " elements, expected ", num_split_));
    int64_t known = 0;
    int unknown = -1;
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (sizes[i] == -1) {
        XPU_REQUIRE(unknown < 0, errors::InvalidArgument("There can only be one -1 in the input."));
        unknown = static_cast<int>(i);
        continue;
      }
      XPU_REQUIRE(sizes[i] >= 0, errors::InvalidArgument("Split size at index ", i, " must be >= 0. Got: ", sizes[i]));
      XPU_REQUIRE(!__builtin_add_overflow(known, sizes[i], &known),
                  errors::InvalidArgument("size_splits sums up to more than 64 bits hold"));
    }
    XPU_REQUIRE(unknown < 0 ? known == x.dim(axis) : known <= x.dim(axis),
                errors::InvalidArgument("Determined shape must either match input shape along split_dim exactly if "
                                        "fully specified, or be less than the size of the input along split_dim if not "
                                        "fully specified.  Got: ",
                                        known));
    if (unknown >= 0) sizes[unknown] = x.dim(axis) - known;
    return SplitInto(ctx, x, axis, sizes);
  }

 private:
  const int64_t num_split_;
};

// Where a new (Pack) or vanishing (Unpack) axis stands among `rank` dimensions.
Status PackAxis(int64_t given, int rank, int* axis) {
  const int64_t a = given < 0 ? given + rank : given;
  XPU_REQUIRE(a >= 0 && a < rank, errors::InvalidArgument("axis = ", given, " not in [", -rank, ", ", rank, ")"));
  *axis = static_cast<int>(a);
  return OkStatus();
}

class PackKernel : public OpKernel {
 public:
  explicit PackKernel(Construction& c) : axis_(c.Attr<int64_t>("axis")) {}

  Status Compute(Context& ctx) override {
    const int n = ctx.num_inputs();
    const Tensor x0 = ctx.input(0);
    int axis;
    XPU_RETURN_IF_ERROR(PackAxis(axis_, x0.rank() + 1, &axis));
    for (int i = 1; i < n; ++i) {
      const Tensor x = ctx.input(i);
      XPU_REQUIRE(x.dims() == x0.dims(),
                  errors::InvalidArgument("Shapes of all inputs must match: values[0].shape = ", x0.ShapeString(),
                                          " != values[", i, "].shape = ", x.ShapeString()));
    }
    Dims shape;
    Append(x0.dims(), 0, axis, &shape);
    shape.push_back(n);
    Append(x0.dims(), axis, x0.rank(), &shape);
    if (n == 1) return ctx.ShareOutput(0, x0, shape);
    Tensor y;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &y));
    const Around around(shape, axis);
    for (int i = 0; i < n; ++i) {
      XPU_RETURN_IF_ERROR(CopyView(ctx, SizeOf(x0.dtype()), around.PartShape(1), ctx.input(i).data(),
                                   around.PartView(1), y.mutable_data(), around.WholeView(i, n)));
    }
    return OkStatus();
  }

 private:
  const int64_t axis_;
};

class UnpackKernel : public OpKernel {
 public:
  explicit UnpackKernel(Construction& c) : num_(c.Attr<int64_t>("num")), axis_(c.Attr<int64_t>("axis")) {}

  Status Compute(Context& ctx) override {
    const Tensor x = ctx.input(0);
    int axis;
    XPU_RETURN_IF_ERROR(PackAxis(axis_, x.rank(), &axis));
    XPU_REQUIRE(x.dim(axis) == num_, errors::InvalidArgument("Input shape axis ", axis, " must equal ", num_,
                                                             ", got shape ", x.ShapeString()));
    Dims shape;
    Append(x.dims(), 0, axis, &shape);
    Append(x.dims(), axis + 1, x.rank(), &shape);
    if (num_ == 1) return ctx.ShareOutput(0, x, shape);
    const Around around(x.dims(), axis);
    for (int i = 0; i < num_; ++i) {
      Tensor y;
      XPU_RETURN_IF_ERROR(ctx.AllocateOutput(i, shape, &y));
      XPU_RETURN_IF_ERROR(CopyView(ctx, SizeOf(x.dtype()), around.PartShape(1), x.data(), around.WholeView(i, num_),
                                   y.mutable_data(), around.PartView(1)));
    }
    return OkStatus();
  }

 private:
  const int64_t num_, axis_;
};

}  // namespace

void RegisterArrayConcat(Registry& registry) {
  // int32 Concat, ConcatV2 and Unpack (and int64 Unpack) are TensorFlow's own, in host memory.
  for (bool axis_first : {true, false}) {
    registry.Op(axis_first ? "Concat" : "ConcatV2")
        .Types("T", kAllTypes)
        .LabelledFor(DType::kInt32)
        .Host({axis_first ? "concat_dim" : "axis"})
        .Requires(needs::Copy("T"))
        .Kernel<ConcatKernel>(axis_first);
  }
  registry.Op("Split")
      .Types("T", kAllTypes)
      .Host({"split_dim"})
      .AllHostFor(DType::kInt32, {"value", "output"})
      .Requires(needs::Copy("T"))
      .Kernel<SplitKernel>();
  registry.Op("SplitV")
      .Types("T", kAllTypes)
      .Types("Tlen", {DType::kInt32, DType::kInt64})
      .Host({"size_splits", "split_dim"})
      .AllHostFor(DType::kInt32, {"value", "output"})
      .Requires(needs::Copy("T"))
      .Kernel<SplitVKernel>();
  registry.Op("Pack")
      .Types("T", kAllTypes)
      .AllHostFor(DType::kInt32, {"values", "output"})
      .Requires(needs::Copy("T"))
      .Traits(OpTrait::kCounts)
      .Kernel<PackKernel>();
  registry.Op("Unpack")
      .Types("T", Without(kAllTypes, DType::kInt64))
      .LabelledFor(DType::kInt32)
      .Requires(needs::Copy("T"))
      .Kernel<UnpackKernel>();
}

}  // namespace xpu

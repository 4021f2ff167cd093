// Slice and StridedSlice, their gradient, and assignment to slices.
#include <utility>

#include "tensorflow_plugin/framework/variables.h"
#include "tensorflow_plugin/ops/arrays/strided_slice.h"
#include "tensorflow_plugin/ops/arrays/util.h"
#include "tensorflow_plugin/ops/ops.h"

namespace xpu {
namespace {

class SliceKernel : public OpKernel {
 public:
  explicit SliceKernel(Construction&) {}

  Status Compute(Context& ctx) override {
    const Tensor x = ctx.input(0), begin_arg = ctx.input(1), size_arg = ctx.input(2);
    XPU_RETURN_IF_ERROR(CheckSliceArguments(x, begin_arg, size_arg));
    std::vector<int64_t> begin, size;
    XPU_RETURN_IF_ERROR(HostIntegers(begin_arg, "begin", &begin));
    XPU_RETURN_IF_ERROR(HostIntegers(size_arg, "size", &size));
    return CopySlice(ctx, x, begin, std::move(size));
  }
};

class StridedSliceKernel : public OpKernel {
 public:
  explicit StridedSliceKernel(Construction& c) : masks_(c) {}

  Status Compute(Context& ctx) override {
    const Tensor x = ctx.input(0);
    StridedSlice slice;
    XPU_RETURN_IF_ERROR(ParseStridedSlice(x.dims(), ctx.input(1), ctx.input(2), ctx.input(3), masks_, &slice));
    if (slice.identity) return ctx.ShareOutput(0, x, slice.shape);
    Tensor y;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, slice.shape, &y));
    return CopyView(ctx, SizeOf(x.dtype()), slice.shape, x.data(), slice.view, y.mutable_data(),
                    DenseView(slice.shape));
  }

 private:
  const SliceMasks masks_;
};

class StridedSliceGradKernel : public OpKernel {
 public:
  explicit StridedSliceGradKernel(Construction& c) : masks_(c) {}

  Status Compute(Context& ctx) override {
    const Tensor dy = ctx.input(4);
    Dims shape;
    XPU_RETURN_IF_ERROR(HostShape(ctx.input(0), "shape", &shape));
    StridedSlice slice;
    XPU_RETURN_IF_ERROR(ParseStridedSlice(shape, ctx.input(1), ctx.input(2), ctx.input(3), masks_, &slice));
    XPU_REQUIRE(slice.shape == dy.dims(),
                errors::InvalidArgument("shape of dy was ", dy.ShapeString(), " instead of ", slice.shape.ToString()));
    if (slice.identity) return ctx.ShareOutput(0, dy, shape);
    Tensor dx;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &dx));
    XPU_RETURN_IF_ERROR(FillZero(ctx, dx));
    return CopyView(ctx, SizeOf(dy.dtype()), slice.shape, dy.data(), DenseView(slice.shape), dx.mutable_data(),
                    slice.view);
  }

 private:
  const SliceMasks masks_;
};

// dst[slice] = value, broadcast to the slice's shape, which may leave out leading axes of one element. TensorFlow takes
// a value of any shape for a slice of nothing.
Status AssignSlice(Context& ctx, const StridedSlice& slice, const Tensor& value, const Tensor& dst) {
  if (slice.shape.num_elements() == 0) return OkStatus();
  const int skip = slice.shape.rank() - value.rank();
  bool fits = true;
  View from;
  from.strides = Dims(slice.shape.rank(), 0);
  const Dims dense = DenseStrides(value.dims());
  for (int i = 0; fits && i < value.rank(); ++i) {
    fits = value.dim(i) == 1 || (i + skip >= 0 && value.dim(i) == slice.shape[i + skip]);
    if (fits && value.dim(i) != 1) from.strides[i + skip] = dense[i];
  }
  XPU_REQUIRE(fits, errors::InvalidArgument("Cannot broadcast input shape ", value.ShapeString(), " into final shape ",
                                            slice.shape.ToString()));
  return CopyView(ctx, SizeOf(dst.dtype()), slice.shape, value.data(), from, dst.mutable_data(), slice.view);
}

class TensorStridedSliceUpdateKernel : public OpKernel {
 public:
  explicit TensorStridedSliceUpdateKernel(Construction& c) : masks_(c) {}

  Status Compute(Context& ctx) override {
    StridedSlice slice;
    XPU_RETURN_IF_ERROR(
        ParseStridedSlice(ctx.input(0).dims(), ctx.input(1), ctx.input(2), ctx.input(3), masks_, &slice));
    Tensor y;
    XPU_RETURN_IF_ERROR(ForwardOrCopy(ctx, 0, &y));
    return AssignSlice(ctx, slice, ctx.input(4), y);
  }

 private:
  const SliceMasks masks_;
};

class ResourceStridedSliceAssignKernel : public OpKernel {
 public:
  explicit ResourceStridedSliceAssignKernel(Construction& c) : masks_(c) {}

  Status Compute(Context& ctx) override {
    ctx.ForwardReference(0, 0);
    LockedVariable variable;
    XPU_RETURN_IF_ERROR(LockedVariable::Lock(ctx, 0, LockMode::kExclusive, &variable));
    const Tensor value = ctx.input(4);
    XPU_REQUIRE(variable.dtype() == value.dtype(),
                errors::InvalidArgument("l-value dtype ", Name(variable.dtype()), " does not match r-value dtype ",
                                        Name(value.dtype())));
    StridedSlice slice;
    XPU_RETURN_IF_ERROR(
        ParseStridedSlice(variable.value().dims(), ctx.input(1), ctx.input(2), ctx.input(3), masks_, &slice));
    Tensor dst;
    XPU_RETURN_IF_ERROR(variable.BeginUpdate(ctx, &dst));
    XPU_RETURN_IF_ERROR(AssignSlice(ctx, slice, value, dst));
    variable.Commit();
    return OkStatus();
  }

 private:
  const SliceMasks masks_;
};

}  // namespace

void RegisterArraySlice(Registry& registry) {
  // int32 Slice is TensorFlow's own, in host memory.
  registry.Op("Slice")
      .Types("T", kAllTypes)
      .LabelledFor(DType::kInt32)
      .Host({"begin", "size"})
      .Requires(needs::Copy("T"))
      .Kernel<SliceKernel>();
  registry.Op("StridedSlice")
      .Types("T", kAllTypes)
      .Types("Index", {DType::kInt32, DType::kInt64})
      .Host({"begin", "end", "strides"})
      .AllHostFor(DType::kInt32, {"input", "output"})
      .Requires(needs::Copy("T"))
      .Kernel<StridedSliceKernel>();
  registry.Op("StridedSliceGrad")
      .Types("T", kAllTypes)
      .Host({"shape", "begin", "end", "strides"})
      .AllHostFor(DType::kInt32, {"dy", "output"})
      .Requires(needs::Copy("T"))
      .Kernel<StridedSliceGradKernel>();
  registry.Op("TensorStridedSliceUpdate")
      .Types("T", kAllTypes)
      .Host({"begin", "end", "strides"})
      .AllHostFor(DType::kInt32, {"input", "value", "output"})
      .Requires(needs::Copy("T"))
      .Kernel<TensorStridedSliceUpdateKernel>();
  registry.Op("ResourceStridedSliceAssign")
      .Types("T", kAllTypes)
      .Host({"ref", "begin", "end", "strides"})
      .Requires(needs::Copy("T"))
      .Kernel<ResourceStridedSliceAssignKernel>();
  registry.Op("StridedSliceAssign")
      .Types("T", kAllTypes)
      .Host({"begin", "end", "strides"})
      .Requires(needs::Copy("T"))
      .Kernel<ResourceStridedSliceAssignKernel>();
}

}  // namespace xpu

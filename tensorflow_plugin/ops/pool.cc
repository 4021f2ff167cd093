// Maximum and average pooling and their gradients: attributes, sizes and checks; the work is one Pool primitive.
#include <algorithm>

#include "tensorflow_plugin/ops/ops.h"
#include "tensorflow_plugin/ops/windows.h"

namespace xpu {
namespace {

struct PoolOp {
  const char* name;
  PoolKind kind;
  bool gradient;
  int spatial_rank;
  bool host_windows;  // ksize and strides are inputs
};

constexpr PoolOp kOps[] = {
    {"AvgPool", PoolKind::kAverage, false, 2, false},   {"AvgPoolGrad", PoolKind::kAverage, true, 2, false},
    {"AvgPool3D", PoolKind::kAverage, false, 3, false}, {"AvgPool3DGrad", PoolKind::kAverage, true, 3, false},
    {"MaxPool", PoolKind::kMax, false, 2, false},       {"MaxPoolGrad", PoolKind::kMax, true, 2, false},
    {"MaxPoolV2", PoolKind::kMax, false, 2, true},      {"MaxPoolGradV2", PoolKind::kMax, true, 2, true},
    {"MaxPool3D", PoolKind::kMax, false, 3, false},     {"MaxPool3DGrad", PoolKind::kMax, true, 3, false},
};

struct Windows {
  int64_t size[kMaxSpatial] = {1, 1, 1}, stride[kMaxSpatial] = {1, 1, 1};
};

Status PoolValues(const std::vector<int64_t>& values, const char* what, const Layout& layout,
                  int64_t spatial[kMaxSpatial]) {
  XPU_REQUIRE(static_cast<int>(values.size()) == layout.rank(),
              errors::InvalidArgument("Sliding window ", what, " field must specify ", layout.rank(),
                                      " dimensions, but got ", values.size()));
  XPU_REQUIRE(values[0] == 1, errors::Unimplemented("Pooling is not yet supported on the batch dimension."));
  XPU_REQUIRE(values[layout.channel_axis()] == 1,
              errors::Unimplemented("Pooling across depth is currently only implemented for CPU devices."));
  for (int i = 0; i < layout.spatial_rank; ++i) {
    spatial[i] = values[layout.spatial_axis(i)];
    XPU_REQUIRE(spatial[i] > 0,
                errors::InvalidArgument("Sliding window ", what, " must be positive, but got ", spatial[i]));
  }
  return OkStatus();
}

class PoolKernel : public OpKernel {
 public:
  PoolKernel(Construction& c, const PoolOp* op) : op_(*op), type_(c.Attr<DType>("T")) {
    c.Fail(ParseLayout(c.Attr<std::string>("data_format"), op->spatial_rank, &layout_));
    padding_ = PaddingAttr(c, layout_);
    if (op->host_windows) return;
    c.Fail(PoolValues(c.Attr<std::vector<int64_t>>("ksize"), "ksize", layout_, windows_.size));
    c.Fail(PoolValues(c.Attr<std::vector<int64_t>>("strides"), "strides", layout_, windows_.stride));
    for (int i = 0; i < layout_.spatial_rank; ++i) {
      const int64_t pad = std::max(padding_.before[i], padding_.after[i]);
      if (pad >= windows_.size[i]) {
        c.Fail(
            errors::InvalidArgument("Padding ", pad, " needs to be smaller than the window size ", windows_.size[i]));
      }
    }
  }

  Status Compute(Context& ctx) override {
    Windows windows = windows_;
    if (op_.host_windows) XPU_RETURN_IF_ERROR(ReadWindows(ctx, &windows));
    if (op_.gradient) return op_.kind == PoolKind::kMax ? MaxGradient(ctx, windows) : AverageGradient(ctx, windows);

    const Tensor x = ctx.input(0);
    PoolDesc desc;
    XPU_RETURN_IF_ERROR(Resolve(x.dims(), windows, &desc));
    Tensor y;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, layout_.Shape(desc.batch, desc.output, desc.channels), &y));
    if (y.num_elements() == 0) return OkStatus();
    return ctx.Launch(desc, {x.data()}, {y.mutable_data()});
  }

 private:
  Status ReadWindows(Context& ctx, Windows* windows) const {
    const int first = op_.gradient ? 3 : 1;
    std::vector<int64_t> values;
    XPU_RETURN_IF_ERROR(HostIntegers(ctx.input(first), "ksize", &values));
    XPU_RETURN_IF_ERROR(PoolValues(values, "ksize", layout_, windows->size));
    XPU_RETURN_IF_ERROR(HostIntegers(ctx.input(first + 1), "strides", &values));
    return PoolValues(values, "stride", layout_, windows->stride);
  }

  // Everything about the pooling that follows from the shape of its input.
  Status Resolve(const Dims& input, const Windows& windows, PoolDesc* d) const {
    XPU_REQUIRE(input.rank() == layout_.rank(),
                errors::InvalidArgument("tensor_in must be ", layout_.rank(), "-dimensional, got ", input.ToString()));
    d->kind = op_.kind;
    d->gradient = op_.gradient;
    d->type = type_;
    d->order = layout_.order;
    d->spatial_rank = layout_.spatial_rank;
    d->batch = input[0];
    d->channels = input[layout_.channel_axis()];
    for (int i = 0; i < layout_.spatial_rank; ++i) {
      d->input[i] = input[layout_.spatial_axis(i)];
      d->window[i] = windows.size[i];
      d->stride[i] = windows.stride[i];
      WindowAxis axis;
      XPU_RETURN_IF_ERROR(ResolveWindow(padding_, i, d->input[i], d->window[i], 1, d->stride[i], &axis));
      d->output[i] = axis.output;
      d->pad_before[i] = axis.pad_before;
      d->pad_after[i] = axis.pad_after;
    }
    return OkStatus();
  }

  Status CheckShape(const Tensor& t, const char* what, const PoolDesc& d) const {
    XPU_REQUIRE(t.rank() == layout_.rank(),
                errors::InvalidArgument(what, " must be ", layout_.rank(), "-dimensional, got ", t.ShapeString()));
    const Dims expected = layout_.Shape(d.batch, d.output, d.channels);
    XPU_REQUIRE(t.dims() == expected, errors::InvalidArgument("Expected ", what, " shape to be ", expected.ToString(),
                                                              ", but got ", t.ShapeString()));
    return OkStatus();
  }

  Status MaxGradient(Context& ctx, const Windows& windows) const {
    const Tensor x = ctx.input(0), y = ctx.input(1), dy = ctx.input(2);
    PoolDesc desc;
    XPU_RETURN_IF_ERROR(Resolve(x.dims(), windows, &desc));
    XPU_RETURN_IF_ERROR(CheckShape(y, "orig_output", desc));
    XPU_RETURN_IF_ERROR(CheckShape(dy, "grad", desc));
    Tensor dx;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutputLike(0, x, &dx));
    if (dx.num_elements() == 0) return OkStatus();
    if (dy.num_elements() == 0) return ctx.Zero(dx.mutable_data(), dx.bytes());
    return ctx.Launch(desc, {x.data(), y.data(), dy.data()}, {dx.mutable_data()});
  }

  Status AverageGradient(Context& ctx, const Windows& windows) const {
    const Tensor shape = ctx.input(0), dy = ctx.input(1);
    XPU_REQUIRE(shape.IsVector() && shape.num_elements() == layout_.rank(),
                errors::InvalidArgument("orig_input_shape must be 1-dimensional and ", layout_.rank(),
                                        " elements, got shape ", shape.ShapeString()));
    Dims input;
    XPU_RETURN_IF_ERROR(HostShape(shape, "orig_input_shape", &input));
    PoolDesc desc;
    XPU_RETURN_IF_ERROR(Resolve(input, windows, &desc));
    XPU_RETURN_IF_ERROR(CheckShape(dy, "grad", desc));
    Tensor dx;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, input, &dx));
    if (dx.num_elements() == 0) return OkStatus();
    if (dy.num_elements() == 0) return ctx.Zero(dx.mutable_data(), dx.bytes());
    return ctx.Launch(desc, {dy.data()}, {dx.mutable_data()});
  }

  const PoolOp op_;
  const DType type_;
  Layout layout_;
  Padding padding_;
  Windows windows_;
};

// In whichever order of channels data_format will choose.
Need Pools(const PoolOp& op) {
  return [&op](Needs& n) {
    PoolDesc desc;
    desc.kind = op.kind;
    desc.gradient = op.gradient;
    desc.type = n.type("T");
    desc.spatial_rank = op.spatial_rank;
    for (const ChannelOrder order : {ChannelOrder::kLast, ChannelOrder::kFirst}) {
      desc.order = order;
      n.Ask(desc);
    }
  };
}

}  // namespace

void RegisterPool(Registry& registry) {
  for (const PoolOp& op : kOps) {
    const bool max = op.kind == PoolKind::kMax;
    // TensorFlow has no 3-D maximum pooling of doubles.
    TypeList types = kFloatTypes;
    if (max && op.spatial_rank == 3) types.erase(std::remove(types.begin(), types.end(), DType::kDouble), types.end());
    // MaxPool3DGrad names the type of its gradient and of its input apart; both are always the same.
    const bool two_types = max && op.gradient && op.spatial_rank == 3;
    for (DType type : types) {
      auto entry = registry.Op(op.name);
      entry.Types("T", {type}).Requires(Pools(op));
      if (two_types) entry.Types("TInput", {type});
      if (op.host_windows) entry.Host({"ksize", "strides"});
      if (op.gradient && !max) entry.Host({"orig_input_shape"});
      entry.Kernel<PoolKernel>(&op);
    }
  }
}

}  // namespace xpu

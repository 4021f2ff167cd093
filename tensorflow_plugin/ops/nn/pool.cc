// Maximum and average pooling and their gradients: attributes, sizes and checks; the work is one Pool primitive.
#include <algorithm>
#include <cstdint>

#include "tensorflow_plugin/ops/arrays/util.h"
#include "tensorflow_plugin/ops/math/formula.h"
#include "tensorflow_plugin/ops/nn/windows.h"
#include "tensorflow_plugin/ops/ops.h"

namespace xpu {
namespace {

struct PoolOp {
  const char* name;
  PoolKind kind;
  bool gradient;
  int spatial_rank;
  bool host_windows;                   // ksize and strides are inputs
  const char* over_depth = "Pooling";  // what has no windows over the channels, in messages
};

constexpr char kMaxPoolingGrad[] = "MaxPoolingGrad";

constexpr PoolOp kOps[] = {
    {"AvgPool", PoolKind::kAverage, false, 2, false},
    {"AvgPoolGrad", PoolKind::kAverage, true, 2, false},
    {"AvgPool3D", PoolKind::kAverage, false, 3, false},
    {"AvgPool3DGrad", PoolKind::kAverage, true, 3, false},
    {"MaxPool", PoolKind::kMax, false, 2, false},
    {"MaxPoolGrad", PoolKind::kMax, true, 2, false, kMaxPoolingGrad},
    {"MaxPoolV2", PoolKind::kMax, false, 2, true},
    {"MaxPoolGradV2", PoolKind::kMax, true, 2, true, kMaxPoolingGrad},
    {"MaxPool3D", PoolKind::kMax, false, 3, false},
    {"MaxPool3DGrad", PoolKind::kMax, true, 3, false},
};

constexpr PoolOp kSecondGradients[] = {
    {"MaxPoolGradGrad", PoolKind::kMax, true, 2, false, "MaxPoolingGradGrad"},
    {"MaxPoolGradGradV2", PoolKind::kMax, true, 2, true, kMaxPoolingGrad},
    {"MaxPool3DGradGrad", PoolKind::kMax, true, 3, false, "MaxPooling3dGradGrad"},
};

struct PoolWindows {
  int64_t size[kMaxSpatial] = {1, 1, 1}, stride[kMaxSpatial] = {1, 1, 1};
  int64_t depth = 1;  // the window over the channels; 1: over spatial dimensions alone
};

std::string Join(const std::vector<int64_t>& values) {
  std::string s;
  for (int64_t v : values) s += (s.empty() ? "" : ",") + std::to_string(v);
  return s;
}

// Windows that reach over the channels: TensorFlow has them in maximum pooling of 2 dimensions, instead of spatial
// ones.
Status ReadDepth(const PoolOp& op, int64_t window, int64_t stride, PoolWindows* out) {
  if (op.spatial_rank == 3 || op.gradient) {
    XPU_REQUIRE(window == 1 && stride == 1,
                errors::Unimplemented(op.over_depth, " is not yet supported on the depth dimension."));
    return OkStatus();
  }
  if (window == 1) return OkStatus();
  XPU_REQUIRE(
      out->size[0] == 1 && out->size[1] == 1,
      errors::Unimplemented("MaxPooling supports exactly one of pooling across depth or pooling across width/height."));
  XPU_REQUIRE(window == stride,
              errors::Unimplemented("Depthwise max pooling requires the depth window to equal the depth stride"));
  XPU_REQUIRE(op.kind == PoolKind::kMax, errors::Unimplemented("Non-spatial pooling is not yet supported."));
  out->depth = window;
  return OkStatus();
}

Status ReadWindows(const PoolOp& op, const Layout& layout, const std::vector<int64_t>& ksize,
                   const std::vector<int64_t>& strides, PoolWindows* out) {
  const size_t rank = layout.rank();
  XPU_REQUIRE(ksize.size() == rank, errors::InvalidArgument("Sliding window ksize field must specify ", rank,
                                                            " dimensions, but got ", ksize.size()));
  XPU_REQUIRE(strides.size() == rank, errors::InvalidArgument("Sliding window stride field must specify ", rank,
                                                              " dimensions, but got ", strides.size()));
  // Which axes windows may reach over is asked of windows that are there.
  const char* const not_positive = op.spatial_rank == 3
                                       ? "Sliding window ksize field must have non-negative dimensions: "
                                       : "Sliding window ksize must be positive. The specified or inferred ksize is: ";
  XPU_REQUIRE(std::all_of(ksize.begin(), ksize.end(), [](int64_t size) { return size > 0; }),
              errors::InvalidArgument(not_positive, Join(ksize)));
  XPU_REQUIRE(ksize[0] == 1 && strides[0] == 1,
              errors::Unimplemented("Pooling is not yet supported on the batch dimension."));
  for (int i = 0; i < layout.spatial_rank; ++i) {
    out->size[i] = ksize[layout.spatial_axis(i)];
    out->stride[i] = strides[layout.spatial_axis(i)];
    XPU_REQUIRE(out->stride[i] > 0, errors::InvalidArgument("Stride must be > 0, but got ", out->stride[i]));
  }
  return ReadDepth(op, ksize[layout.channel_axis()], strides[layout.channel_axis()], out);
}

class PoolKernel : public OpKernel {
 public:
  PoolKernel(Construction& c, const PoolOp* op) : op_(*op), type_(c.Attr<DType>("T")) {
    // Ops on positions have their channels last.
    const std::string format = c.HasAttr("data_format") ? c.Attr<std::string>("data_format") : "NHWC";
    c.Fail(ParseLayout(format, op->spatial_rank, &layout_));
    padding_ = PaddingAttr(c, layout_, /*ignore_unused=*/true);
    if (op->host_windows) return;
    c.Fail(ReadWindows(*op, layout_, WindowAttr(c, "ksize"), WindowAttr(c, "strides"), &windows_));
    // Explicit paddings are an attribute of two-dimensional pooling alone.
    const char* const sides[2][2] = {{"Top", "Bottom"}, {"Left", "Right"}};
    for (int i = 0; i < 2; ++i) {
      for (int side = 0; side < 2; ++side) {
        const int64_t pad = side == 0 ? padding_.before[i] : padding_.after[i];
        if (pad == 0 || pad < windows_.size[i]) continue;
        c.Fail(errors::InvalidArgument(sides[i][side], " padding ", pad, " needs to be smaller than the window size ",
                                       windows_.size[i]));
      }
    }
  }

  Status Compute(Context& ctx) override {
    PoolWindows windows = windows_;
    if (op_.host_windows) XPU_RETURN_IF_ERROR(ReadWindowInputs(ctx, &windows));
    if (op_.gradient) return op_.kind == PoolKind::kMax ? MaxGradient(ctx, windows) : AverageGradient(ctx, windows);

    const Tensor x = ctx.input(0);
    PoolDesc desc;
    if (windows.depth > 1) return PoolChannels(ctx, x, windows.depth);
    XPU_RETURN_IF_ERROR(Resolve(x.dims(), windows, &desc));
    Tensor y;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, layout_.Shape(desc.batch, desc.output, desc.channels), &y));
    if (y.num_elements() == 0) return OkStatus();
    return ctx.Launch(desc, {x.data()}, {y.mutable_data()});
  }

 protected:
  Status ReadWindowInputs(Context& ctx, PoolWindows* windows) const {
    const int first = op_.gradient ? 3 : 1;
    std::vector<int64_t> ksize, strides;
    XPU_RETURN_IF_ERROR(HostIntegers(ctx.input(first), "ksize", &ksize));
    XPU_RETURN_IF_ERROR(HostIntegers(ctx.input(first + 1), "strides", &strides));
    return ReadWindows(op_, layout_, ksize, strides, windows);
  }

  Status CheckInputRank(const Dims& input) const {
    XPU_REQUIRE(
        input.rank() == layout_.rank(),
        errors::InvalidArgument(
            layout_.spatial_rank == 2 && !op_.gradient ? "tensor_in_shape must have 2 spatial dimensions. " : "",
            "tensor_in must be ", layout_.rank(), "-dimensional, got ", input.ToString()));
    return OkStatus();
  }

  // Everything about the pooling that follows from the shape of its input.
  Status Resolve(const Dims& input, const PoolWindows& windows, PoolDesc* d) const {
    XPU_RETURN_IF_ERROR(CheckInputRank(input));
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

  // TensorFlow calls an argument otherwise where its rank is wrong.
  Status CheckShape(const Tensor& t, const char* what, const char* of_rank, const PoolDesc& d) const {
    XPU_REQUIRE(t.rank() == layout_.rank(),
                errors::InvalidArgument(of_rank, " must be ", layout_.rank(), "-dimensional, got ", t.ShapeString()));
    const Dims expected = layout_.Shape(d.batch, d.output, d.channels);
    XPU_REQUIRE(t.dims() == expected, errors::InvalidArgument("Expected ", what, " shape to be ", expected.ToString(),
                                                              ", but got ", t.ShapeString()));
    return OkStatus();
  }

  const PoolOp op_;
  const DType type_;
  Layout layout_;
  Padding padding_;
  PoolWindows windows_;

 private:
  // Each `window` channels give one; the windows do not overlap. The channels are the one spatial dimension of a
  // pooling whose batch, or channels where they come first, are the pixels.
  Status PoolChannels(Context& ctx, const Tensor& x, int64_t window) const {
    XPU_RETURN_IF_ERROR(CheckInputRank(x.dims()));
    const int axis = layout_.channel_axis();
    XPU_REQUIRE(
        x.dim(axis) % window == 0,
        errors::Unimplemented("Depthwise max pooling requires the depth window to evenly divide the input depth"));
    Dims shape = x.dims();
    shape[axis] /= window;
    Tensor y;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &y));
    if (y.num_elements() == 0) return OkStatus();
    PoolDesc desc;
    desc.kind = op_.kind;
    desc.type = type_;
    desc.spatial_rank = 1;
    desc.batch = Product(x.dims(), 0, axis);
    desc.channels = Product(x.dims(), axis + 1, x.rank());
    desc.input[0] = x.dim(axis);
    desc.output[0] = shape[axis];
    desc.window[0] = desc.stride[0] = window;
    return ctx.Launch(desc, {x.data()}, {y.mutable_data()});
  }

  Status MaxGradient(Context& ctx, const PoolWindows& windows) const {
    const Tensor x = ctx.input(0), y = ctx.input(1), dy = ctx.input(2);
    PoolDesc desc;
    XPU_RETURN_IF_ERROR(Resolve(x.dims(), windows, &desc));
    XPU_RETURN_IF_ERROR(CheckShape(y, "orig_output", "tensor_out", desc));
    XPU_RETURN_IF_ERROR(CheckShape(dy, "grad", "out_backprop", desc));
    Tensor dx;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutputLike(0, x, &dx));
    if (dx.num_elements() == 0) return OkStatus();
    if (dy.num_elements() == 0) return ctx.Zero(dx.mutable_data(), dx.bytes());
    return ctx.Launch(desc, {x.data(), y.data(), dy.data()}, {dx.mutable_data()});
  }

  Status AverageGradient(Context& ctx, const PoolWindows& windows) const {
    const Tensor shape = ctx.input(0), dy = ctx.input(1);
    XPU_REQUIRE(shape.IsVector() && shape.num_elements() == layout_.rank(),
                errors::InvalidArgument("orig_input_shape must be 1-dimensional and ", layout_.rank(),
                                        " elements, got shape ", shape.ShapeString()));
    Dims input;
    XPU_RETURN_IF_ERROR(HostShape(shape, "orig_input_shape", &input));
    PoolDesc desc;
    XPU_RETURN_IF_ERROR(Resolve(input, windows, &desc));
    XPU_RETURN_IF_ERROR(CheckShape(dy, "grad", "out_backprop", desc));
    Tensor dx;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, input, &dx));
    if (dx.num_elements() == 0) return OkStatus();
    if (dy.num_elements() == 0) return ctx.Zero(dx.mutable_data(), dx.bytes());
    return ctx.Launch(desc, {dy.data()}, {dx.mutable_data()});
  }
};

// How positions are launched: those in an image of an array whose channels are last.
PoolDesc Maxima(PoolDesc d, DType positions_type) {
  d.kind = PoolKind::kMax;
  d.gradient = false;
  d.positions_type = positions_type;
  return d;
}

// The gradient of a gradient: of each window, what its first maximum gets. As in MaxPoolGrad that is a NaN where the
// window starts with it; TensorFlow's CPU kernel looks for orig_output instead, which is no NaN.
class SecondGradientKernel : public PoolKernel {
 public:
  using PoolKernel::PoolKernel;

  Status Compute(Context& ctx) override {
    const Tensor x = ctx.input(0), y = ctx.input(1), g = ctx.input(2);
    PoolWindows windows = windows_;
    if (op_.host_windows) XPU_RETURN_IF_ERROR(ReadWindowInputs(ctx, &windows));
    PoolDesc desc;
    XPU_RETURN_IF_ERROR(Resolve(x.dims(), windows, &desc));
    XPU_RETURN_IF_ERROR(CheckShape(y, "orig_output", "tensor_out", desc));
    XPU_REQUIRE(g.rank() == layout_.rank(), errors::InvalidArgument("out_grad_backprop must be ", layout_.rank(),
                                                                    "-dimensional, got ", g.ShapeString()));
    XPU_REQUIRE(g.dims() == x.dims(),
                errors::InvalidArgument("Expected grad shape to be ", x.ShapeString(), ", but got ", g.ShapeString()));
    Tensor out;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutputLike(0, y, &out));
    if (out.num_elements() == 0) return OkStatus();
    if (x.num_elements() == 0) return ctx.Zero(out.mutable_data(), out.bytes());
    if (desc.order == ChannelOrder::kFirst) {  // each channel is an image of one
      desc.order = ChannelOrder::kLast;
      desc.batch *= desc.channels;
      desc.channels = 1;
    }
    GatherDesc gather;
    gather.element_size = SizeOf(type_);
    gather.batch = desc.batch;
    gather.dims = {x.num_elements() / desc.batch};
    gather.num_indices = out.num_elements() / desc.batch;
    gather.index_type = gather.dims[0] <= INT32_MAX ? DType::kInt32 : DType::kInt64;
    Temporary maxima, positions;
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(type_, y.dims(), &maxima));
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(gather.index_type, y.dims(), &positions));
    XPU_RETURN_IF_ERROR(ctx.Launch(Maxima(desc, gather.index_type), {x.data()}, {maxima.data(), positions.data()}));
    return ctx.Launch(gather, {g.data(), positions.data()}, {out.mutable_data()});
  }
};

// Maxima and where they are, and the ops that take those positions: in the whole batch or, unless
// include_batch_in_index, in their image.
class PositionsKernel : public PoolKernel {
 public:
  PositionsKernel(Construction& c, const PoolOp* op)
      : PoolKernel(c, op), in_batch_(c.Attr<bool>("include_batch_in_index")) {}

 protected:
  Status Resolve(const Tensor& x, PoolDesc* desc) const {
    XPU_RETURN_IF_ERROR(PoolKernel::Resolve(x.dims(), windows_, desc));
    XPU_REQUIRE(windows_.depth == 1, errors::Unimplemented("Pooling is not yet supported on the depth dimension."));
    return OkStatus();
  }

  Status CheckPositions(const Tensor& grad, const Dims& shape, const Tensor& positions, const PoolDesc& desc) const {
    XPU_REQUIRE(grad.dims() == shape, errors::InvalidArgument("Expected grad shape to be ", shape.ToString(),
                                                              ", but got ", grad.ShapeString()));
    const Dims windows = layout_.Shape(desc.batch, desc.output, desc.channels);
    XPU_REQUIRE(positions.dims() == windows, errors::InvalidArgument("Expected argmax shape to be ", windows.ToString(),
                                                                     ", but got ", positions.ShapeString()));
    return OkStatus();
  }

  const bool in_batch_;
};

class MaximaKernel : public PositionsKernel {
 public:
  using PositionsKernel::PositionsKernel;

  Status Compute(Context& ctx) override {
    const Tensor x = ctx.input(0);
    PoolDesc desc;
    XPU_RETURN_IF_ERROR(Resolve(x, &desc));
    XPU_REQUIRE(x.num_elements() > 0, errors::InvalidArgument("tensor_in must not be empty, got ", x.ShapeString()));
    const Dims shape = layout_.Shape(desc.batch, desc.output, desc.channels);
    Tensor y, positions;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &y));
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(1, shape, &positions));
    if (y.num_elements() == 0) return OkStatus();
    if (in_batch_) {  // the batch is one image more
      PoolDesc whole = desc;
      whole.spatial_rank = 3;
      whole.batch = 1;
      whole.input[0] = whole.output[0] = desc.batch;
      whole.window[0] = whole.stride[0] = 1;
      whole.pad_before[0] = whole.pad_after[0] = 0;
      for (int i = 0; i < 2; ++i) {
        whole.input[i + 1] = desc.input[i];
        whole.output[i + 1] = desc.output[i];
        whole.window[i + 1] = desc.window[i];
        whole.stride[i + 1] = desc.stride[i];
        whole.pad_before[i + 1] = desc.pad_before[i];
        whole.pad_after[i + 1] = desc.pad_after[i];
      }
      desc = whole;
    }
    return ctx.Launch(Maxima(desc, positions.dtype()), {x.data()}, {y.mutable_data(), positions.mutable_data()});
  }
};

// The failure of a position that is none.
Status NoPosition(const Status& failure, int64_t size) {
  if (failure.code() != Code::kInvalidArgument) return failure;
  return errors::InvalidArgument("Invalid output gradient index: argmax has elements outside of [0, ", size, ")");
}

template <typename Desc>
Status LaunchAt(Context& ctx, const Desc& desc, int64_t size, std::initializer_list<const void*> in, void* out) {
  const DescribeError explain = [size](const Status& failure, const std::vector<int64_t>&) {
    return NoPosition(failure, size);
  };
  const Status status = ctx.LaunchChecked(desc, in, {out}, &explain);
  return status.ok() ? status : NoPosition(status, size);
}

// Each window's gradient is added up where its maximum was.
class GradientAtPositionsKernel : public PositionsKernel {
 public:
  GradientAtPositionsKernel(Construction& c, const PoolOp* op) : PositionsKernel(c, op), in_batch_of_(MakeInBatch()) {}

  static const Program* MakeInBatch() {
    ProgramBuilder builder;
    const FormulaValue position = {&builder, builder.Input(DType::kInt64)},
                       image = {&builder, builder.Input(DType::kInt64)},
                       size = {&builder, builder.Input(DType::kInt64)};
    builder.Output(Select(position < 0.0 || size <= position, position.Const(-1), position + image * size).reg);
    return builder.Build();
  }

  Status Compute(Context& ctx) override {
    const Tensor x = ctx.input(0), dy = ctx.input(1), given = ctx.input(2);
    PoolDesc desc;
    XPU_RETURN_IF_ERROR(Resolve(x, &desc));
    XPU_RETURN_IF_ERROR(CheckPositions(dy, layout_.Shape(desc.batch, desc.output, desc.channels), given, desc));
    Tensor dx;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutputLike(0, x, &dx));
    if (dx.num_elements() == 0) return OkStatus();
    XPU_RETURN_IF_ERROR(ctx.Zero(dx.mutable_data(), dx.bytes()));
    if (dy.num_elements() == 0) return OkStatus();

    const int64_t size = in_batch_ ? x.num_elements() : x.num_elements() / desc.batch;
    Temporary shifted;
    const void* positions = given.data();
    if (!in_batch_ && desc.batch > 1) {
      XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kInt64, given.dims(), &shifted));
      XPU_RETURN_IF_ERROR(PositionsInBatch(ctx, given, size, desc.batch, shifted.data()));
      positions = shifted.data();
    }
    ScatterDesc scatter;
    scatter.kind = ScatterKind::kAdd;
    scatter.type = type_;
    scatter.num_indices = dy.num_elements();
    scatter.dims = {x.num_elements()};
    return LaunchAt(ctx, scatter, size, {positions, dy.data()}, dx.mutable_data());
  }

 private:
  // -1 for what is not in its image.
  Status PositionsInBatch(Context& ctx, const Tensor& given, int64_t size, int64_t batch, void* out) const {
    std::vector<int64_t> numbers(batch + 1, size);
    for (int64_t i = 0; i < batch; ++i) numbers[i] = i;
    Temporary uploaded;
    XPU_RETURN_IF_ERROR(Upload(ctx, numbers, DType::kInt64, &uploaded));
    ElementwiseDesc desc;
    desc.program = in_batch_of_;
    desc.shape = {batch, given.num_elements() / batch};
    desc.in_strides[0] = DenseStrides(desc.shape);
    desc.in_strides[1] = {1, 0};
    desc.in_strides[2] = {0, 0};
    return ctx.Launch(desc, {given.data(), uploaded.data(), static_cast<const int64_t*>(uploaded.data()) + batch},
                      {out});
  }

  const Program* const in_batch_of_;
};

// The gradient of that: what is at the positions.
class SecondGradientAtPositionsKernel : public PositionsKernel {
 public:
  using PositionsKernel::PositionsKernel;

  Status Compute(Context& ctx) override {
    const Tensor x = ctx.input(0), g = ctx.input(1), positions = ctx.input(2);
    PoolDesc desc;
    XPU_RETURN_IF_ERROR(Resolve(x, &desc));
    XPU_RETURN_IF_ERROR(CheckPositions(g, x.dims(), positions, desc));
    Tensor out;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutputLike(0, positions, &out));
    if (out.num_elements() == 0) return OkStatus();
    GatherDesc gather;
    gather.element_size = SizeOf(type_);
    gather.batch = in_batch_ ? 1 : desc.batch;
    gather.dims = {x.num_elements() / gather.batch};
    gather.num_indices = out.num_elements() / gather.batch;
    return LaunchAt(ctx, gather, gather.dims[0], {g.data(), positions.data()}, out.mutable_data());
  }
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
    // Windows over the channels (PoolChannels).
    if (op.kind == PoolKind::kMax && op.spatial_rank == 2 && !op.gradient) {
      desc.order = ChannelOrder::kLast;
      desc.spatial_rank = 1;
      n.Ask(desc);
    }
  };
}

// The command that makes positions, for the images of `rank` dimensions.
Need Positions(int rank, DType type) {
  return [=](Needs& n) {
    PoolDesc desc;
    desc.type = n.type("T");
    desc.spatial_rank = rank;
    n.Ask(Maxima(desc, type));
  };
}

void RegisterPositions(Registry& registry) {
  static constexpr PoolOp kMaxima = {"MaxPoolWithArgmax", PoolKind::kMax, false, 2, false};
  static constexpr PoolOp kGradient = {"MaxPoolGradWithArgmax", PoolKind::kMax, false, 2, false};
  static constexpr PoolOp kSecond = {"MaxPoolGradGradWithArgmax", PoolKind::kMax, false, 2, false};
  const auto entry = [&registry](const PoolOp& op) {
    Registry::Entry e = registry.Op(op.name);
    e.Types("T", kFloatTypes).Types("Targmax", {DType::kInt64});
    return e;
  };
  entry(kMaxima)
      .Requires(Positions(2, DType::kInt64))
      .Requires(Positions(3, DType::kInt64))
      .Kernel<MaximaKernel>(&kMaxima);
  entry(kGradient)
      .Requires(needs::Scatter(ScatterKind::kAdd, "T", DType::kInt64))
      .Requires([](Needs& n) { n.AskProgram(GradientAtPositionsKernel::MakeInBatch()); })
      .Kernel<GradientAtPositionsKernel>(&kGradient);
  entry(kSecond).Requires(needs::Gather("T", DType::kInt64)).Kernel<SecondGradientAtPositionsKernel>(&kSecond);
  for (const PoolOp& op : kSecondGradients) {
    Registry::Entry e = registry.Op(op.name);
    e.Types("T", op.spatial_rank == 3 ? Without(kFloatTypes, DType::kDouble) : kFloatTypes)
        .Requires(Positions(op.spatial_rank, DType::kInt32))
        .Requires(Positions(op.spatial_rank, DType::kInt64))
        .Requires(needs::Gather("T"));
    if (op.host_windows) e.Host({"ksize", "strides"});
    e.Kernel<SecondGradientKernel>(&op);
  }
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
  RegisterPositions(registry);
}

}  // namespace xpu

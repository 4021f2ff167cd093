// FusedBatchNorm, with what is fused into it, and its gradients.
#include <algorithm>
#include <limits>

#include "tensorflow_plugin/ops/math/elementwise.h"
#include "tensorflow_plugin/ops/nn/windows.h"
#include "tensorflow_plugin/ops/ops.h"

namespace xpu {
namespace {

// Resolves the layout of x, as the primitive sees it. All spatial dimensions are one to it.
Status ResolveInput(const Tensor& x, ChannelOrder order, NormalizeDesc* desc, Layout* layout) {
  XPU_REQUIRE(x.rank() == 4 || x.rank() == 5,
              errors::InvalidArgument("input must be 4 or 5-dimensional", x.ShapeString()));
  layout->order = order;
  layout->spatial_rank = x.rank() - 2;
  desc->order = order;
  desc->batch = x.dim(0);
  desc->channels = x.dim(layout->channel_axis());
  desc->spatial = 1;
  for (int i = 0; i < layout->spatial_rank; ++i) desc->spatial *= x.dim(layout->spatial_axis(i));
  return OkStatus();
}

Status CheckVector(const Tensor& t, const char* what, int64_t channels) {
  XPU_REQUIRE(t.rank() == 1, errors::InvalidArgument(what, " must be 1-dimensional", t.ShapeString()));
  XPU_REQUIRE(t.num_elements() == channels,
              errors::InvalidArgument(what, " must have the same number of elements as the channels of x, got ",
                                      t.num_elements(), " and ", channels));
  return OkStatus();
}

class BatchNormBase : public OpKernel {
 protected:
  BatchNormBase(Construction& c, int version) : version_(version) {
    base_.type = c.Attr<DType>("T");
    base_.epsilon = c.Attr<float>("epsilon");
    base_.training = c.Attr<bool>("is_training");
    Layout layout;
    c.Fail(ParseLayout(c.Attr<std::string>("data_format"), 2, &layout));
    base_.order = layout.order;
  }

  const int version_;
  NormalizeDesc base_;
};

class BatchNormKernel : public BatchNormBase {
 public:
  BatchNormKernel(Construction& c, int version) : BatchNormBase(c, version) {
    base_.factor = c.Attr<float>("exponential_avg_factor");
    ProgramBuilder builder;
    builder.Output(builder.Const(DType::kFloat, std::numeric_limits<double>::quiet_NaN()));
    nan_ = builder.Build();
  }

  Status Compute(Context& ctx) override {
    Tensor y;
    return Normalize(ctx, &y);
  }

 protected:
  Status Normalize(Context& ctx, Tensor* y) {
    const Tensor x = ctx.input(0), scale = ctx.input(1), offset = ctx.input(2), mean = ctx.input(3),
                 variance = ctx.input(4);
    NormalizeDesc desc = base_;
    Layout layout;
    XPU_RETURN_IF_ERROR(ResolveInput(x, base_.order, &desc, &layout));
    XPU_RETURN_IF_ERROR(CheckVector(scale, "scale", desc.channels));
    XPU_RETURN_IF_ERROR(CheckVector(offset, "offset", desc.channels));
    XPU_RETURN_IF_ERROR(CheckRunning(mean, "mean", desc));
    XPU_RETURN_IF_ERROR(CheckRunning(variance, "variance", desc));

    XPU_RETURN_IF_ERROR(ctx.AllocateOutputLike(0, x, y));
    if (version_ >= 3) {
      // reserve_space_3 is for devices that keep more than the statistics from one pass to the other.
      Tensor reserve;
      XPU_RETURN_IF_ERROR(ctx.AllocateOutput(5, {0}, &reserve));
    }
    if (x.num_elements() == 0) return EmptyBatch(ctx, scale);
    if (!desc.training) {
      // The statistics that were used are the ones that came in.
      for (int i = 1; i <= 3; i += 2) {
        XPU_RETURN_IF_ERROR(ctx.ShareOutput(i, mean, mean.dims()));
        XPU_RETURN_IF_ERROR(ctx.ShareOutput(i + 1, variance, variance.dims()));
      }
      return ctx.Launch(desc, {x.data(), scale.data(), offset.data(), mean.data(), variance.data()},
                        {y->mutable_data()});
    }
    Tensor statistics[4];
    for (int i = 0; i < 4; ++i) XPU_RETURN_IF_ERROR(ctx.AllocateOutputLike(i + 1, scale, &statistics[i]));
    return ctx.Launch(desc, {x.data(), scale.data(), offset.data(), mean.data(), variance.data()},
                      {y->mutable_data(), statistics[0].mutable_data(), statistics[1].mutable_data(),
                       statistics[2].mutable_data(), statistics[3].mutable_data()});
  }

 private:
  // The running statistics are read for inference and for averaging; else they may be anything.
  static Status CheckRunning(const Tensor& t, const char* what, const NormalizeDesc& desc) {
    XPU_REQUIRE(t.rank() == 1, errors::InvalidArgument(what, " must be 1-dimensional", t.ShapeString()));
    if (desc.training && desc.factor == 1.0f) return OkStatus();
    XPU_REQUIRE(
        t.num_elements() == desc.channels,
        errors::InvalidArgument(desc.training ? "When exponential_avg_factor != 1, " : "When is_training=false, ", what,
                                " must have the same number of elements as the channels of x, got ", t.num_elements(),
                                " and ", desc.channels));
    return OkStatus();
  }

  // There is no mean of nothing: NaN for the batch statistics, as TensorFlow gives; zeros for the saved ones.
  Status EmptyBatch(Context& ctx, const Tensor& scale) const {
    for (int i = 1; i <= 4; ++i) {
      Tensor out;
      XPU_RETURN_IF_ERROR(ctx.AllocateOutputLike(i, scale, &out));
      if (out.num_elements() == 0) continue;
      if (i > 2) {
        XPU_RETURN_IF_ERROR(ctx.Zero(out.mutable_data(), out.bytes()));
        continue;
      }
      ElementwiseDesc fill;
      fill.program = nan_;
      fill.shape = out.dims();
      XPU_RETURN_IF_ERROR(ctx.Launch(fill, {}, {out.mutable_data()}));
    }
    return OkStatus();
  }

  const Program* nan_;
};

// TensorFlow's remapper makes this of a normalisation and the ops after it: a residual's addition, a Relu.
class BatchNormExKernel : public BatchNormKernel {
 public:
  explicit BatchNormExKernel(Construction& c) : BatchNormKernel(c, 3) {
    const int64_t side_inputs = c.Attr<int64_t>("num_side_inputs");
    const std::string activation = c.Attr<std::string>("activation_mode");
    if (!c.status().ok()) return;
    if (side_inputs > 1 || (activation != "Identity" && activation != "Relu")) {
      c.Fail(errors::Unimplemented("_FusedBatchNormEx with ", side_inputs, " side inputs and activation_mode ",
                                   activation, ": XPU kernels take at most one, and Identity or Relu"));
      return;
    }
    has_side_input_ = side_inputs == 1;
    if (!has_side_input_ && activation == "Identity") return;
    ProgramBuilder builder;
    FormulaValue y = {&builder, builder.Input(base_.type)};
    if (has_side_input_) {
      const FormulaValue side = {&builder, builder.Input(base_.type)};
      y = Cast(y, ComputedIn(base_.type)) + Cast(side, ComputedIn(base_.type));
    }
    if (activation == "Relu") y = Maximum(y, 0.0);
    builder.Output(Cast(y, base_.type).reg);
    then_ = builder.Build();
  }

  Status Compute(Context& ctx) override {
    Tensor y;
    XPU_RETURN_IF_ERROR(Normalize(ctx, &y));
    if (then_ == nullptr) return OkStatus();
    Args args;
    args.in[0] = y.data();
    args.out[0] = y.mutable_data();
    if (has_side_input_) {
      const Tensor side = ctx.input(5);
      XPU_REQUIRE(side.dims() == y.dims(), errors::InvalidArgument("side_input shape must be equal to input shape: ",
                                                                   side.ShapeString(), " != ", y.ShapeString()));
      args.in[1] = side.data();
    }
    ElementwiseDesc desc;
    desc.program = then_;
    SetFlat(y.num_elements(), then_->num_inputs(), &desc);
    return ctx.LaunchElementwise(desc, args);
  }

 private:
  bool has_side_input_ = false;
  const Program* then_ = nullptr;
};

class BatchNormGradientKernel : public BatchNormBase {
 public:
  BatchNormGradientKernel(Construction& c, int version) : BatchNormBase(c, version) { base_.gradient = true; }

  Status Compute(Context& ctx) override {
    const Tensor dy = ctx.input(0), x = ctx.input(1), scale = ctx.input(2), mean = ctx.input(3),
                 variance = ctx.input(4);
    NormalizeDesc desc = base_;
    Layout layout;
    XPU_RETURN_IF_ERROR(ResolveInput(x, base_.order, &desc, &layout));
    XPU_REQUIRE(dy.dims() == x.dims(),
                errors::InvalidArgument("x and y_backprop must have same shape, but x has shape ", x.ShapeString(),
                                        " and y_backprop has shape ", dy.ShapeString()));
    XPU_RETURN_IF_ERROR(CheckVector(scale, "scale", desc.channels));
    XPU_RETURN_IF_ERROR(CheckVector(mean, "reserve_space_1", desc.channels));
    XPU_RETURN_IF_ERROR(CheckVector(variance, "reserve_space_2", desc.channels));

    Tensor dx, dscale, doffset, unused;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutputLike(0, x, &dx));
    XPU_RETURN_IF_ERROR(ctx.AllocateOutputLike(1, scale, &dscale));
    XPU_RETURN_IF_ERROR(ctx.AllocateOutputLike(2, scale, &doffset));
    // The running statistics have no gradient.
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(3, {0}, &unused));
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(4, {0}, &unused));
    if (x.num_elements() == 0) {
      XPU_RETURN_IF_ERROR(ctx.Zero(dscale.mutable_data(), dscale.bytes()));
      return ctx.Zero(doffset.mutable_data(), doffset.bytes());
    }
    return ctx.Launch(desc, {dy.data(), x.data(), scale.data(), mean.data(), variance.data()},
                      {dx.mutable_data(), dscale.mutable_data(), doffset.mutable_data()});
  }
};

// is_training and data_format are known when a kernel is made: whatever they will be.
Need Normalizes(bool gradient) {
  return [=](Needs& n) {
    NormalizeDesc desc;
    desc.gradient = gradient;
    desc.type = n.type("T");
    for (const bool training : {false, true}) {
      for (const ChannelOrder order : {ChannelOrder::kLast, ChannelOrder::kFirst}) {
        desc.training = training;
        desc.order = order;
        n.Ask(desc);
      }
    }
  };
}

template <typename Kernel>
void RegisterVersions(Registry& registry, const char* const (&names)[3]) {
  const TypeList types = {DType::kHalf, DType::kBFloat16, DType::kFloat};
  for (int version = 1; version <= 3; ++version) {
    auto entry = registry.Op(names[version - 1]);
    entry.Types("T", version == 1 ? TypeList{DType::kFloat} : types)
        .Requires(Normalizes(std::is_same_v<Kernel, BatchNormGradientKernel>));
    if (version > 1) entry.Types("U", {DType::kFloat});
    entry.template Kernel<Kernel>(version);
  }
}

}  // namespace

void RegisterNormalize(Registry& registry) {
  RegisterVersions<BatchNormKernel>(registry, {"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"});
  registry.Op("_FusedBatchNormEx")
      .Types("T", {DType::kHalf, DType::kBFloat16, DType::kFloat})
      .Types("U", {DType::kFloat})
      .Requires(Normalizes(false))
      .Requires(Opcode::kMaximum)
      .Requires(Opcode::kAdd)
      .Kernel<BatchNormExKernel>();
  RegisterVersions<BatchNormGradientKernel>(registry,
                                            {"FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3"});
}

}  // namespace xpu

// Constants: Fill, ZerosLike, OnesLike.
#include "tensorflow_plugin/ops/math/elementwise.h"
#include "tensorflow_plugin/ops/ops.h"

namespace xpu {
namespace {

class FillKernel : public OpKernel {
 public:
  explicit FillKernel(Construction& c) {
    const DType type = c.Attr<DType>("T");
    if (c.status().ok()) program_ = IdentityProgram(type);
  }

  Status Compute(Context& ctx) override {
    const Tensor dims = ctx.input(0), value = ctx.input(1);
    Dims shape;
    if (dims.IsScalar()) {
      int64_t extent;
      XPU_RETURN_IF_ERROR(HostInteger(dims, "dims", &extent));
      XPU_REQUIRE(extent >= 0, errors::InvalidArgument("Dimension ", extent, " must be >= 0"));
      shape.push_back(extent);
    } else {
      XPU_REQUIRE(dims.IsVector(),
                  errors::InvalidArgument("dims must represent a vector, got shape ", dims.ShapeString()));
      XPU_RETURN_IF_ERROR(HostShape(dims, "dims", &shape));
    }
    XPU_REQUIRE(value.num_elements() == 1 && value.rank() <= 1,
                errors::InvalidArgument("value must represent a scalar, got shape ", value.ShapeString()));
    Tensor out;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &out));
    ElementwiseDesc desc;
    desc.program = program_;
    SetFlat(out.num_elements(), 1, &desc);
    desc.in_strides[0][0] = 0;
    return ctx.Launch(desc, {value.data()}, {out.mutable_data()});
  }

 private:
  const Program* program_ = nullptr;
};

class ZerosLikeKernel : public OpKernel {
 public:
  explicit ZerosLikeKernel(Construction&) {}

  Status Compute(Context& ctx) override {
    Tensor out;
    XPU_RETURN_IF_ERROR(ctx.ForwardOrAllocateLike({0}, 0, ctx.input(0), &out));
    return ctx.Zero(out.mutable_data(), out.bytes());
  }
};

const Program* Ones(DType type) {
  ProgramBuilder builder;
  builder.Output(builder.Const(type, 1.0));
  return builder.Build();
}

class OnesLikeKernel : public OpKernel {
 public:
  explicit OnesLikeKernel(Construction& c) {
    const DType type = c.Attr<DType>("T");
    if (!c.status().ok()) return;
    program_ = Ones(type);
  }

  Status Compute(Context& ctx) override {
    Tensor out;
    XPU_RETURN_IF_ERROR(ctx.ForwardOrAllocateLike({0}, 0, ctx.input(0), &out));
    ElementwiseDesc desc;
    desc.program = program_;
    SetFlat(out.num_elements(), 0, &desc);
    return ctx.Launch(desc, {}, {out.mutable_data()});
  }

 private:
  const Program* program_ = nullptr;
};

}  // namespace

void RegisterFill(Registry& registry) {
  // TensorFlow itself fills int32 when dims are int32.
  registry.Op("Fill")
      .Types("T", kAllTypes)
      .Types("index_type", {DType::kInt32, DType::kInt64})
      .Host({"dims"})
      .Requires(needs::Identity("T"))
      .Kernel<FillKernel>();
  registry.Op("Fill")
      .Types("T", {})
      .Types("index_type", {DType::kInt64})
      .Host({"dims"})
      .AllHostFor(DType::kInt32, {"value", "output"})
      .Kernel<FillKernel>();
  registry.Op("ZerosLike").Types("T", kAllTypes).LabelledFor(DType::kInt32).Kernel<ZerosLikeKernel>();
  registry.Op("OnesLike")
      .Types("T", kAllTypes)
      .LabelledFor(DType::kInt32)
      .Requires([](Needs& n) { n.AskProgram(Ones(n.type("T"))); })
      .Kernel<OnesLikeKernel>();
}

}  // namespace xpu

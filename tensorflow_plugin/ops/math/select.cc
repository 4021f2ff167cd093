// Choosing between operands: Select, SelectV2, ClipByValue.
#include "tensorflow_plugin/ops/math/elementwise.h"
#include "tensorflow_plugin/ops/ops.h"

namespace xpu {
namespace {

constexpr TypeMask kEverything = kFloatMask | kComplexMask | kSignedMask | kUnsignedMask | kBoolMask | kHostInt32Mask;

class SelectKernelBase : public OpKernel {
 public:
  explicit SelectKernelBase(Construction& c) : node_(c.NodeName()) {
    const DType type = c.Attr<DType>("T");
    if (c.status().ok()) program_ = SingleOpProgram(Opcode::kSelect, type);
  }

  Status Compute(Context& ctx) override {
    const Tensor in[3] = {ctx.input(0), ctx.input(1), ctx.input(2)};
    ElementwiseDesc desc;
    Dims shape;
    if (in[0].dims() == in[1].dims() && in[1].dims() == in[2].dims()) {
      SetFlat(in[0].num_elements(), 3, &desc);
      shape = in[0].dims();
    } else {
      XPU_RETURN_IF_ERROR(Resolve(in, &desc, &shape));
    }
    Tensor out;
    XPU_RETURN_IF_ERROR(ctx.ForwardOrAllocate({1, 2}, 0, shape, &out));
    desc.program = program_;
    return ctx.Launch(desc, {in[0].data(), in[1].data(), in[2].data()}, {out.mutable_data()});
  }

 protected:
  const std::string node_;
  // Operands that are not all of one shape.
  virtual Status Resolve(const Tensor* in, ElementwiseDesc* desc, Dims* shape) const = 0;

 private:
  const Program* program_ = nullptr;
};

// The condition is of the operands' shape, or a scalar, or a vector that chooses whole rows.
class SelectKernel : public SelectKernelBase {
 public:
  using SelectKernelBase::SelectKernelBase;

 protected:
  Status Resolve(const Tensor* in, ElementwiseDesc* desc, Dims* shape) const override {
    const Tensor &condition = in[0], &then = in[1], &otherwise = in[2];
    *shape = then.dims();
    if (condition.IsVector() && then.rank() != 1) {
      XPU_REQUIRE(then.rank() > 0,
                  errors::InvalidArgument("'then' must be at least a vector, but saw shape: ", then.ShapeString()));
      XPU_REQUIRE(then.dim(0) == condition.num_elements(),
                  errors::InvalidArgument("Number of batches of 'then' must match size of 'cond', but saw: ",
                                          then.dim(0), " vs. ", condition.num_elements()));
    }
    XPU_REQUIRE(then.dims() == otherwise.dims(),
                errors::InvalidArgument("'then' and 'else' must have the same size.  but received: ",
                                        then.ShapeString(), " vs. ", otherwise.ShapeString()));
    SetFlat(then.num_elements(), 3, desc);
    if (condition.IsScalar()) {
      desc->in_strides[0][0] = 0;
      return OkStatus();
    }
    XPU_REQUIRE(condition.IsVector() && then.rank() > 1,
                errors::InvalidArgument("Inputs to operation ", node_,
                                        " of type Select must have the same size and shape.  Input 0: ",
                                        condition.ShapeString(), " != input 1: ", then.ShapeString()));
    const int64_t rows = then.dim(0), row = rows == 0 ? 0 : then.num_elements() / rows;
    desc->shape = {rows, row};
    desc->in_strides[0] = {1, 0};
    desc->in_strides[1] = desc->in_strides[2] = {row, 1};
    return OkStatus();
  }
};

// All three broadcast.
class SelectV2Kernel : public SelectKernelBase {
 public:
  using SelectKernelBase::SelectKernelBase;

 protected:
  Status Resolve(const Tensor* in, ElementwiseDesc* desc, Dims* shape) const override {
    XPU_REQUIRE(BroadcastAny(in, 3, desc, shape),
                errors::InvalidArgument("condition ", in[0].ShapeString(), ", then ", in[1].ShapeString(),
                                        ", and else ", in[2].ShapeString(), " must be broadcastable"));
    return OkStatus();
  }
};

// Bounds that are NaN bind nothing, and the lower one wins where they cross: not Minimum and Maximum.
FormulaValue Clip(const FormulaValue* x, double) {
  const FormulaValue below = Select(x[2] < x[0], x[2], x[0]);
  return Select(below < x[1], x[1], below);
}
constexpr ElementwiseOp kClip[] = {
    {"ClipByValue", kFloatMask | kSignedMask | Mask(DType::kUint8) | Mask(DType::kUint16) | kHostInt32Mask, Clip},
};

class ClipKernel : public ProgramKernel {
 public:
  ClipKernel(Construction& c, const ElementwiseOp* op) : ProgramKernel(c, *op, 3) {}

  Status Compute(Context& ctx) override {
    const Tensor x = ctx.input(0), low = ctx.input(1), high = ctx.input(2);
    ElementwiseDesc desc;
    desc.program = program_;
    SetFlat(x.num_elements(), 3, &desc);
    for (int i = 1; i <= 2; ++i) {
      const Tensor& bound = i == 1 ? low : high;
      if (bound.dims() == x.dims()) continue;
      XPU_REQUIRE(bound.IsScalar(),
                  errors::InvalidArgument(
                      "clip_value_min and clip_value_max must be either of the same shape as input, or a scalar. ",
                      "input shape: ", x.ShapeString(), "clip_value_min shape: ", low.ShapeString(),
                      "clip_value_max shape: ", high.ShapeString()));
      desc.in_strides[i][0] = 0;
    }
    Tensor out;
    XPU_RETURN_IF_ERROR(ctx.ForwardOrAllocateLike({0}, 0, x, &out));
    return ctx.Launch(desc, {x.data(), low.data(), high.data()}, {out.mutable_data()});
  }
};

template <typename K>
void RegisterSelectOp(Registry& registry, const char* name) {
  registry.Op(name)
      .Types("T", DeviceTypes(kEverything))
      .AllHostFor(DType::kInt32, {"condition", "t", "e", "output"})
      .Requires(Opcode::kSelect)
      .Kernel<K>();
}

}  // namespace

void RegisterSelect(Registry& registry) {
  RegisterSelectOp<SelectKernel>(registry, "Select");
  RegisterSelectOp<SelectV2Kernel>(registry, "SelectV2");
  RegisterTable<ClipKernel>(registry, kClip, {"t", "clip_value_min", "clip_value_max", "output"});
}

}  // namespace xpu

// Reductions along axes.
#include <string>
#include <vector>

#include "tensorflow_plugin/framework/kernel_labels.h"
#include "tensorflow_plugin/ops/math/elementwise.h"
#include "tensorflow_plugin/ops/math/reduction.h"
#include "tensorflow_plugin/ops/ops.h"

namespace xpu {
namespace {

// The axes of a reduction of so many dimensions.
Status ReadAxes(const Tensor& axes, int rank, AxisSet* reduced) {
  std::vector<int64_t> values;
  XPU_RETURN_IF_ERROR(HostIntegers(axes, "reduction_indices", &values));
  reduced->resize(rank, false);
  for (int64_t axis : values) {
    XPU_REQUIRE(axis >= -rank && axis < rank, errors::InvalidArgument("Invalid reduction dimension (", axis,
                                                                      " for input with ", rank, " dimension(s)"));
    if (axis < 0) axis += rank;
    XPU_REQUIRE(!(*reduced)[static_cast<int>(axis)],
                errors::InvalidArgument("Invalid reduction arguments: Axes contains duplicate dimension: ", axis));
    (*reduced)[static_cast<int>(axis)] = true;
  }
  return OkStatus();
}

class ReduceKernel : public OpKernel {
 public:
  ReduceKernel(Construction& c, ReduceKind kind) : kind_(kind), keep_dims_(c.Attr<bool>("keep_dims")) {
    const bool logical = kind == ReduceKind::kAll || kind == ReduceKind::kAny;
    const DType type = logical ? DType::kBool : c.Attr<DType>("T");
    if (c.status().ok()) program_ = IdentityProgram(type);
  }

  Status Compute(Context& ctx) override {
    const Tensor x = ctx.input(0);
    AxisSet reduced;
    XPU_RETURN_IF_ERROR(ReadAxes(ctx.input(1), x.rank(), &reduced));
    Dims out_shape;
    for (int i = 0; i < x.rank(); ++i) {
      if (!reduced[i]) {
        out_shape.push_back(x.dim(i));
      } else if (keep_dims_) {
        out_shape.push_back(1);
      }
    }
    ReduceDesc desc;
    desc.source.program = program_;
    SetDenseSource(x.dims(), reduced, &desc);
    // Nothing is added up: the result is the input, but for the norm, which loses its sign.
    if (desc.axes == 0 && kind_ != ReduceKind::kEuclideanNorm) return ctx.ShareOutput(0, x, out_shape);
    Tensor out;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, out_shape, &out));
    desc.kind = kind_;
    return ctx.Launch(desc, {x.data()}, {out.mutable_data()});
  }

 private:
  const ReduceKind kind_;
  const bool keep_dims_;
  const Program* program_ = nullptr;
};

class ArgReduceKernel : public OpKernel {
 public:
  ArgReduceKernel(Construction& c, ReduceKind kind) : kind_(kind), index_type_(c.Attr<DType>("output_type")) {
    const DType type = c.Attr<DType>("T");
    if (c.status().ok()) program_ = IdentityProgram(type);
  }

  Status Compute(Context& ctx) override {
    const Tensor x = ctx.input(0), dimension = ctx.input(1);
    const int rank = x.rank();
    XPU_REQUIRE(dimension.IsScalar(), errors::InvalidArgument("dim must be a scalar, but received tensor of shape: ",
                                                              dimension.ShapeString()));
    int64_t given;
    XPU_RETURN_IF_ERROR(HostInteger(dimension, "dimension", &given));
    const int64_t axis = given < 0 ? given + rank : given;
    XPU_REQUIRE(axis >= 0 && axis < rank,
                errors::InvalidArgument("Expected dimension in the range [", -rank, ", ", rank, "), but got ", given));
    XPU_REQUIRE(x.dim(axis) > 0,
                errors::InvalidArgument("Reduction axis ", axis, " is empty in shape ", x.ShapeString()));
    Dims out_shape;
    int64_t outer = 1, inner = 1;
    for (int i = 0; i < rank; ++i) {
      if (i == axis) continue;
      out_shape.push_back(x.dim(i));
      (i < axis ? outer : inner) *= x.dim(i);
    }
    Tensor out;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, out_shape, &out));
    ReduceDesc desc;
    desc.kind = kind_;
    desc.index_type = index_type_;
    desc.source.program = program_;
    Dims shape;
    if (outer != 1) shape.push_back(outer);
    desc.axes = 1u << shape.rank();
    shape.push_back(x.dim(axis));
    if (inner != 1) shape.push_back(inner);
    desc.source.shape = shape;
    desc.source.in_strides[0] = DenseStrides(shape);
    return ctx.Launch(desc, {x.data()}, {out.mutable_data()});
  }

 private:
  const ReduceKind kind_;
  const DType index_type_;
  const Program* program_ = nullptr;
};

// Sums over all dimensions but the channels'.
class BiasAddGradKernel : public OpKernel {
 public:
  explicit BiasAddGradKernel(Construction& c) : channels_first_(c.Attr<std::string>("data_format") == "NCHW") {
    const DType type = c.Attr<DType>("T");
    if (c.status().ok()) program_ = IdentityProgram(type);
  }

  Status Compute(Context& ctx) override {
    const Tensor dy = ctx.input(0);
    XPU_REQUIRE(dy.rank() >= 2, errors::InvalidArgument("Input tensor must be at least 2D: ", dy.ShapeString()));
    const int channel_dim = channels_first_ ? 1 : dy.rank() - 1;
    Tensor out;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, {dy.dim(channel_dim)}, &out));
    ReduceDesc desc;
    desc.kind = ReduceKind::kSum;
    desc.source.program = program_;
    AxisSet reduced;
    reduced.resize(dy.rank(), true);
    reduced[channel_dim] = false;
    SetDenseSource(dy.dims(), reduced, &desc);
    return ctx.Launch(desc, {dy.data()}, {out.mutable_data()});
  }

 private:
  const bool channels_first_;
  const Program* program_ = nullptr;
};

// x^2 / 2, in float for narrower types.
const Program* HalfSquare(DType type) {
  ProgramBuilder builder;
  const FormulaValue x = Cast(FormulaValue{&builder, builder.Input(type)}, ComputedIn(type));
  builder.Output((Square(x) * 0.5).reg);
  return builder.Build();
}

// sum(x^2) / 2. Squares of half and bfloat16 are kept and added in float; the result is rounded at the end.
class L2LossKernel : public OpKernel {
 public:
  explicit L2LossKernel(Construction& c) : type_(c.Attr<DType>("T")) {
    if (!c.status().ok()) return;
    program_ = HalfSquare(type_);
  }

  Status Compute(Context& ctx) override {
    const Tensor x = ctx.input(0);
    Tensor out;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, Dims(), &out));
    ReduceDesc desc;
    desc.kind = ReduceKind::kSum;
    desc.axes = 1;
    desc.source.program = program_;
    SetFlat(x.num_elements(), 1, &desc.source);
    if (!IsReducedFloat(type_)) return ctx.Launch(desc, {x.data()}, {out.mutable_data()});
    Temporary sum;
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kFloat, Dims(), &sum));
    XPU_RETURN_IF_ERROR(ctx.Launch(desc, {x.data()}, {sum.data()}));
    ElementwiseDesc round;
    round.program = CastProgram(DType::kFloat, type_);
    SetFlat(1, 1, &round);
    return ctx.Launch(round, {sum.data()}, {out.mutable_data()});
  }

 private:
  const DType type_;
  const Program* program_ = nullptr;
};

struct ReduceOp {
  const char* name;
  ReduceKind kind;
  TypeMask types;
};
constexpr TypeMask kReal = kFloatMask | kSignedMask | kUnsignedMask;
// TensorFlow itself has Max and Min of int32.
constexpr ReduceOp kReductions[] = {
    {"Sum", ReduceKind::kSum, kReal | kComplexMask | kHostInt32Mask},
    {"Mean", ReduceKind::kMean, kReal | kComplexMask | kHostInt32Mask},
    {"Prod", ReduceKind::kProd, kReal | kComplexMask | kHostInt32Mask},
    {"EuclideanNorm", ReduceKind::kEuclideanNorm, kFloatMask | kComplexMask},
    {"Max", ReduceKind::kMax, kReal},
    {"Min", ReduceKind::kMin, kReal},
};
constexpr ReduceOp kLogical[] = {{"All", ReduceKind::kAll, kBoolMask}, {"Any", ReduceKind::kAny, kBoolMask}};
constexpr ReduceOp kArgReductions[] = {
    {"ArgMax", ReduceKind::kArgMax, kReal | kBoolMask | kHostInt32Mask},
    {"ArgMin", ReduceKind::kArgMin, kReal | kBoolMask | kHostInt32Mask},
};

}  // namespace

void RegisterReduce(Registry& registry) {
  const TypeList index_types = {DType::kInt32, DType::kInt64};
  for (const ReduceOp& op : kReductions) {
    Registry::Entry entry = registry.Op(op.name);
    entry.Types("T", DeviceTypes(op.types)).Types("Tidx", index_types).Host({"reduction_indices"});
    if (op.types & kHostInt32Mask) entry.AllHostFor(DType::kInt32, {"input", "output"});
    entry.Requires(needs::Reduce(op.kind, "T")).Kernel<ReduceKernel>(op.kind);
  }
  for (const ReduceOp& op : kLogical) {
    registry.Op(op.name)
        .Types("Tidx", index_types)
        .Host({"reduction_indices"})
        .Requires(needs::Reduce(op.kind, DType::kBool))
        .Kernel<ReduceKernel>(op.kind);
    registry.Op(op.name)
        .Types("Tidx", index_types)
        .Host({"input", "reduction_indices", "output"})
        .OnHost()
        .Label(labels::kOnHost)
        .Traits(OpTrait::kFollowsOperands | OpTrait::kFollowsReaders)
        .Kernel<ReduceKernel>(op.kind);
  }
  for (const ReduceOp& op : kArgReductions) {
    registry.Op(op.name)
        .Types("T", DeviceTypes(op.types))
        .Types("output_type", index_types)
        .Types("Tidx", index_types)
        .Host({"dimension"})
        .AllHostFor(DType::kInt32, {"input", "output"})
        .Requires(needs::Reduce(op.kind, "T", "output_type"))
        .Kernel<ArgReduceKernel>(op.kind);
  }
  registry.Op("BiasAddGrad")
      .Types("T", kNumberTypes)
      .AllHostFor(DType::kInt32, {"out_backprop", "output"})
      .Requires(needs::Reduce(ReduceKind::kSum, "T"))
      .Kernel<BiasAddGradKernel>();
  registry.Op("L2Loss")
      .Types("T", kFloatTypes)
      .Requires([](Needs& n) {
        ReduceDesc desc;
        desc.source.program = HalfSquare(n.type("T"));
        n.Ask(desc);
        if (IsReducedFloat(n.type("T"))) n.AskProgram(CastProgram(DType::kFloat, n.type("T")));
      })
      .Kernel<L2LossKernel>();
}

}  // namespace xpu

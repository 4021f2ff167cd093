#include "tensorflow_plugin/ops/math/elementwise.h"

#include <cstring>

#include "tensorflow_plugin/framework/kernel_labels.h"

namespace xpu {

TypeList DeviceTypes(TypeMask mask) {
  TypeList types;
  for (int i = 1; i < kNumDTypes; ++i) {
    const DType t = static_cast<DType>(i);
    if (t != DType::kInt32 && (mask & Mask(t))) types.push_back(t);
  }
  return types;
}

const Program* MakeProgram(const Recipe& recipe, int arity, DType type, double attribute, std::string* error) {
  if (recipe.formula == nullptr) return SingleOpProgram(recipe.op, type);
  ProgramBuilder builder;
  FormulaValue in[3];
  for (int i = 0; i < arity; ++i) in[i] = {&builder, builder.Input(type)};
  for (int i = 0; i < arity; ++i) in[i] = Cast(in[i], ComputedIn(type));
  const FormulaValue result = recipe.formula(in, attribute);
  builder.Output(result.type() == ComputedIn(type) ? Cast(result, type).reg : result.reg);
  const Program* program = builder.Build();
  if (program == nullptr) *error = builder.error();
  return program;
}

void RegisterRow(Registry& registry, const ElementwiseOp& op, int arity, const std::vector<const char*>& arguments,
                 AddKernel add) {
  Registry::Entry entry = registry.Op(op.name);
  entry.Traits(op.traits);
  const bool untyped = op.types == kBoolMask;
  if (!untyped) entry.Types("T", DeviceTypes(op.types));
  if (op.types & kHostInt32Mask) {
    entry.AllHostFor(DType::kInt32, arguments);
  } else if (op.types & Mask(DType::kInt64)) {
    entry.LabelledFor(DType::kInt32);
  }
  entry.Requires([&op, arity, untyped](Needs& n) {
    std::string error;
    const Program* program = MakeProgram(op.recipe, arity, untyped ? DType::kBool : n.type("T"), 0.0, &error);
    n.AskProgram(program, error);
  });
  add(entry, op);
  if (!untyped) return;
  // Logic is what loops end by, which the host decides.
  Registry::Entry on_host = registry.Op(op.name).Host(arguments).OnHost().Label(labels::kOnHost);
  on_host.Traits(OpTrait::kFollowsOperands);
  add(on_host, op);
}

ProgramKernel::ProgramKernel(Construction& c, const ElementwiseOp& op, int arity) {
  const DType type = op.types == kBoolMask ? DType::kBool : c.Attr<DType>("T");
  const double attribute = op.attribute ? c.Attr<float>(op.attribute) : 0.0;
  if (!c.status().ok()) return;
  std::string error;
  program_ = MakeProgram(op.recipe, arity, type, attribute, &error);
  if (program_ == nullptr) c.Fail(errors::Internal("no program for ", op.name, " on ", Name(type), ": ", error));
}

Status UnaryKernel::Compute(Context& ctx) {
  const Tensor x = ctx.input(0);
  Tensor y;
  XPU_RETURN_IF_ERROR(ctx.ForwardOrAllocateLike({0}, 0, x, &y));
  ElementwiseDesc desc;
  desc.program = program_;
  SetFlat(x.num_elements(), 1, &desc);
  return RunProgram(ctx, desc, {x.data()}, y.mutable_data());
}

BroadcastKernel::BroadcastKernel(Construction& c, const ElementwiseOp* op)
    : ProgramKernel(c, *op, 2), incompatible_result_(std::strcmp(op->name, "NotEqual") == 0) {
  if (c.HasAttr("incompatible_shape_error")) shape_error_ = c.Attr<bool>("incompatible_shape_error");
}

Status BroadcastKernel::Compute(Context& ctx) {
  const Tensor in[2] = {ctx.input(0), ctx.input(1)};
  ElementwiseDesc desc;
  Dims shape;
  Tensor out;
  if (__builtin_expect(!BroadcastPair(in, &desc, &shape), 0)) {
    if (shape_error_) return IncompatibleShapes(in[0], in[1]);
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, Dims(), &out));
    return ctx.CopyFromHost(out.mutable_data(), &incompatible_result_, sizeof(bool));
  }
  XPU_RETURN_IF_ERROR(ctx.ForwardOrAllocate({0, 1}, 0, shape, &out));
  desc.program = program_;
  return RunProgram(ctx, desc, {in[0].data(), in[1].data()}, out.mutable_data());
}

Status PairwiseKernel::CheckShapes(const Tensor& x, const Tensor& y) const {
  XPU_REQUIRE(x.num_elements() == y.num_elements(),
              errors::InvalidArgument("The two arguments to a cwise op must have same number of elements, got ",
                                      x.num_elements(), " and ", y.num_elements()));
  return OkStatus();
}

Status SameShapeKernel::CheckShapes(const Tensor& x, const Tensor& y) const {
  XPU_REQUIRE(x.dims() == y.dims(), errors::InvalidArgument("Inputs to operation ", node_, " of type ", name_,
                                                            " must have the same size and shape.  Input 0: ",
                                                            x.ShapeString(), " != input 1: ", y.ShapeString()));
  return OkStatus();
}

Status PairwiseKernel::Compute(Context& ctx) {
  const Tensor x = ctx.input(0), y = ctx.input(1);
  XPU_RETURN_IF_ERROR(CheckShapes(x, y));
  Tensor out;
  XPU_RETURN_IF_ERROR(ctx.ForwardOrAllocateLike({0, 1}, 0, x, &out));
  ElementwiseDesc desc;
  desc.program = program_;
  SetFlat(x.num_elements(), 2, &desc);
  return RunProgram(ctx, desc, {x.data(), y.data()}, out.mutable_data());
}

}  // namespace xpu

// ResourceApply* and Apply*, on references: one step of an optimizer. It is one program that reads the variables, the
// hyperparameters and the gradient, and writes the variables in place.
#include <cstring>
#include <vector>

#include "tensorflow_plugin/ops/ops.h"
#include "tensorflow_plugin/ops/training/optimizer_rules.h"

namespace xpu {
namespace {

class ApplyKernel : public OpKernel {
 public:
  ApplyKernel(Construction& c, const ApplyOp* op)
      : op_(*op), type_(c.Attr<DType>("T")), update_(ReadUpdate(c, *op, type_)) {
    for (size_t i = 0; i < op->variables.size(); ++i) variable_inputs_.push_back(static_cast<int>(i));
  }

  Status Compute(Context& ctx) override {
    ctx.ForwardReference(0, 0);
    std::vector<LockedVariable> variables;
    XPU_RETURN_IF_ERROR(LockedVariable::LockAll(ctx, variable_inputs_, LockMode::kExclusive, &variables));
    XPU_RETURN_IF_ERROR(CheckVariables(op_, type_, variables));
    const int num_variables = static_cast<int>(variables.size());
    const Tensor first = variables[0].value();
    ElementwiseDesc desc;
    desc.program = update_.program;
    SetFlat(first.num_elements(), desc.program->num_inputs(), &desc);
    Args args;
    for (int i = 0; i < num_variables; ++i) args.in[i] = variables[i].value().data();
    for (int i = num_variables; i < desc.program->num_inputs(); ++i) {
      const Tensor argument = ctx.input(i);
      if (op_.IsGradient(i - num_variables)) {
        XPU_REQUIRE(argument.dims() == first.dims(),
                    errors::InvalidArgument("var and ", op_.gradient, " do not have the same shape",
                                            first.ShapeString(), " ", argument.ShapeString()));
      } else {
        XPU_RETURN_IF_ERROR(CheckScalar(op_, i - num_variables, argument));
        desc.in_strides[i][0] = 0;
      }
      args.in[i] = argument.data();
    }
    for (size_t k = 0; k < update_.written.size(); ++k) {
      Tensor dst;
      XPU_RETURN_IF_ERROR(variables[update_.written[k]].BeginOverwrite(ctx, &dst));
      args.out[k] = dst.mutable_data();
    }
    XPU_RETURN_IF_ERROR(ctx.LaunchElementwise(desc, args));
    for (int i : update_.written) variables[i].Commit();
    return OkStatus();
  }

 private:
  const ApplyOp& op_;
  const DType type_;
  const UpdateProgram update_;
  std::vector<int> variable_inputs_;
};

}  // namespace

void RegisterOptimizers(Registry& registry) {
  for (const ApplyOp& op : ApplyOps()) {
    registry.Op(op.name)
        .Types("T", DeviceTypes(op.types))
        .Host(op.variables)
        .Requires(NeedUpdate(op))
        .Kernel<ApplyKernel>(&op);
    if (!HasReferenceForm(op)) continue;
    registry.Op(op.name + std::strlen("Resource"))
        .Types("T", DeviceTypes(op.types))
        .Requires(NeedUpdate(op))
        .Kernel<ApplyKernel>(&op);
  }
}

}  // namespace xpu

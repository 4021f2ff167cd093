// AssignAdd, AssignSub and CountUpTo on variables, Assign on references.
//
// TensorFlow's kernels for every device of the first two do the arithmetic on the host, whatever memory the resource is
// in. Ours take precedence by naming the device type. On references it has kernels for the CPU alone.
#include "tensorflow_plugin/framework/variables.h"

#include "tensorflow_plugin/ops/math/elementwise.h"
#include "tensorflow_plugin/ops/ops.h"

namespace xpu {
namespace {

class AssignUpdateKernel : public OpKernel {
 public:
  AssignUpdateKernel(Construction& c, Opcode op, const char* type_attribute) : type_(c.Attr<DType>(type_attribute)) {
    if (c.status().ok()) program_ = SingleOpProgram(op, type_);
  }

  Status Compute(Context& ctx) override {
    ctx.ForwardReference(0, 0);
    const Tensor value = ctx.input(1);
    LockedVariable variable;
    XPU_RETURN_IF_ERROR(LockedVariable::Lock(ctx, 0, LockMode::kExclusive, &variable));
    const Tensor old = variable.value();
    XPU_REQUIRE(old.dtype() == type_, errors::InvalidArgument("DType of variable handle and value does not match: ",
                                                              Name(old.dtype()), " and ", Name(type_)));
    XPU_REQUIRE(old.dims() == value.dims(),
                errors::InvalidArgument("Cannot update variable with shape ", old.ShapeString(),
                                        " using a Tensor with shape ", value.ShapeString(), ", shapes must be equal."));
    Tensor dst;
    XPU_RETURN_IF_ERROR(variable.BeginOverwrite(ctx, &dst));
    ElementwiseDesc desc;
    desc.program = program_;
    SetFlat(value.num_elements(), 2, &desc);
    XPU_RETURN_IF_ERROR(ctx.Launch(desc, {old.data(), value.data()}, {dst.mutable_data()}));
    variable.Commit();
    return OkStatus();
  }

 private:
  const DType type_;
  const Program* program_ = nullptr;
};

class AssignKernel : public OpKernel {
 public:
  explicit AssignKernel(Construction& c) : validate_shape_(c.Attr<bool>("validate_shape")) {}

  Status Compute(Context& ctx) override {
    ctx.ForwardReference(0, 0);
    LockedVariable variable;
    XPU_RETURN_IF_ERROR(LockedVariable::LockToAssign(ctx, 0, &variable));
    const Tensor old = variable.value(), value = ctx.input(1);
    XPU_REQUIRE(!validate_shape_ || old.dims() == value.dims(),
                errors::InvalidArgument("Assign requires shapes of both tensors to match. lhs shape= ",
                                        old.ShapeString(), " rhs shape= ", value.ShapeString()));
    return variable.Assign(ctx, 1);
  }

 private:
  const bool validate_shape_;
};

// Gives the value and adds one, until it has reached the limit: the value decides, so this kernel waits for it.
class CountUpToKernel : public OpKernel {
 public:
  explicit CountUpToKernel(Construction& c) : limit_(c.Attr<int64_t>("limit")) {}

  Status Compute(Context& ctx) override {
    LockedVariable variable;
    XPU_RETURN_IF_ERROR(LockedVariable::Lock(ctx, 0, LockMode::kExclusive, &variable));
    const Tensor value = variable.value();
    XPU_REQUIRE(value.IsScalar(), errors::InvalidArgument("input is not a scalar: ", value.ShapeString()));
    XPU_REQUIRE(value.dtype() == DType::kInt64,
                errors::InvalidArgument("the variable is of type ", Name(value.dtype()), ", expected int64"));
    int64_t count = 0;
    XPU_RETURN_IF_ERROR(ctx.CopyToHost(&count, value.data(), sizeof(count)));
    XPU_REQUIRE(count < limit_, errors::OutOfRange("Reached limit of ", limit_));
    Tensor out, next;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, Dims(), &out));
    XPU_RETURN_IF_ERROR(ctx.CopyFromHost(out.mutable_data(), &count, sizeof(count)));
    XPU_RETURN_IF_ERROR(variable.BeginOverwrite(ctx, &next));
    ++count;
    XPU_RETURN_IF_ERROR(ctx.CopyFromHost(next.mutable_data(), &count, sizeof(count)));
    variable.Commit();
    return OkStatus();
  }

 private:
  const int64_t limit_;
};

}  // namespace

void RegisterVariables(Registry& registry) {
  const struct {
    const char* name;
    const char* reference_name;
    Opcode op;
  } table[] = {{"AssignAddVariableOp", "AssignAdd", Opcode::kAdd}, {"AssignSubVariableOp", "AssignSub", Opcode::kSub}};
  // int32: the memory optimizer's temporary variables (host_ops.cc).
  const TypeList reference_types = Union(kNumberTypes, {DType::kInt32});
  for (const auto& row : table) {
    registry.Op(row.name)
        .Types("dtype", kNumberTypes)
        .Host({"resource"})
        .Traits(OpTrait::kKeepsNothing)
        .Requires(row.op)
        .Kernel<AssignUpdateKernel>(row.op, "dtype");
    registry.Op(row.reference_name)
        .Types("T", reference_types)
        .Requires(row.op)
        .Kernel<AssignUpdateKernel>(row.op, "T");
  }
  registry.Op("Assign").Types("T", Union(reference_types, {DType::kBool})).Kernel<AssignKernel>();
  // Variables of int32 are in host memory and on the CPU.
  registry.Op("ResourceCountUpTo")
      .Types("T", {DType::kInt64})
      .Host({"resource"})
      .Traits(OpTrait::kWaitsForDevice)
      .Kernel<CountUpToKernel>();
  registry.Op("CountUpTo").Types("T", {DType::kInt64}).Traits(OpTrait::kWaitsForDevice).Kernel<CountUpToKernel>();
}

}  // namespace xpu

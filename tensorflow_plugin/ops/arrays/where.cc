// Where: the coordinates of the elements that are not zero.
#include "tensorflow_plugin/ops/arrays/util.h"
#include "tensorflow_plugin/ops/ops.h"

namespace xpu {
namespace {

// 1 where an element is not zero, else 0.
const Program* NotZero(DType type) {
  ProgramBuilder b;
  const ProgramBuilder::Reg x = b.Input(type);
  // A cast of a complex number looks at its real part alone.
  const bool is_complex = IsComplex(type);
  const ProgramBuilder::Reg not_zero =
      is_complex ? b.Apply(Opcode::kNotEqual, x, b.Const(type, 0)) : b.Cast(x, DType::kBool);
  b.Output(b.Cast(not_zero, DType::kInt64));
  return b.Build();
}

// The output's size depends on the data, so the kernel waits for the count before it can allocate.
class WhereKernel : public OpKernel {
 public:
  explicit WhereKernel(Construction& c) : type_(c.Attr<DType>("T")) {
    if (!c.status().ok()) return;
    not_zero_ = NotZero(type_);
  }

  Status Compute(Context& ctx) override {
    const Tensor x = ctx.input(0);
    // As on the CPU: a scalar has no coordinates to give.
    XPU_REQUIRE(x.rank() >= 1, errors::InvalidArgument("WhereOp : Unhandled input dimensions: 0, expected 1 or more"));
    CompactDesc desc;
    desc.type = type_;
    desc.shape = x.dims();
    if (x.num_elements() > 0) XPU_RETURN_IF_ERROR(CountNotZero(ctx, x, &desc.count));
    Tensor y;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, {desc.count, x.rank()}, &y));
    if (y.num_elements() == 0) return OkStatus();
    return ctx.LaunchChecked(desc, {x.data()}, {y.mutable_data()}, nullptr);
  }

 private:
  Status CountNotZero(Context& ctx, const Tensor& x, int64_t* count) {
    Temporary sum;
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kInt64, {}, &sum));
    ReduceDesc reduce;
    reduce.source.program = not_zero_;
    reduce.source.shape = {x.num_elements()};
    reduce.source.in_strides[0] = {1};
    reduce.axes = 1;
    XPU_RETURN_IF_ERROR(ctx.LaunchChecked(reduce, {x.data()}, {sum.data()}, nullptr));
    return ctx.CopyToHost(count, sum.data(), sizeof *count);
  }

  const DType type_;
  const Program* not_zero_ = nullptr;
};

}  // namespace

void RegisterWhere(Registry& registry) {
  registry.Op("Where")
      .Types("T", kAllTypes)
      .Traits(OpTrait::kWaitsForDevice)
      .Requires([](Needs& n) {
        ReduceDesc count;
        count.source.program = NotZero(n.type("T"));
        n.Ask(count);
        CompactDesc compact;
        compact.type = n.type("T");
        n.Ask(compact);
      })
      .Kernel<WhereKernel>();
}

}  // namespace xpu

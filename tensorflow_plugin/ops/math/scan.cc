// Running totals along an axis: Cumsum, Cumprod, CumulativeLogsumexp.
#include "tensorflow_plugin/ops/arrays/util.h"
#include "tensorflow_plugin/ops/ops.h"

namespace xpu {
namespace {

class ScanKernel : public OpKernel {
 public:
  ScanKernel(Construction& c, ScanKind kind)
      : kind_(kind), exclusive_(c.Attr<bool>("exclusive")), reverse_(c.Attr<bool>("reverse")) {}

  Status Compute(Context& ctx) override {
    const Tensor x = ctx.input(0), axis_arg = ctx.input(1);
    XPU_REQUIRE(axis_arg.IsScalar(),
                errors::InvalidArgument("ScanOp: axis must be a scalar, not ", axis_arg.ShapeString()));
    int64_t axis;
    XPU_RETURN_IF_ERROR(HostInteger(axis_arg, "axis", &axis));
    if (axis < 0) axis += x.rank();
    XPU_REQUIRE(axis >= 0 && axis < x.rank(), errors::InvalidArgument("ScanOp: Expected scan axis in the range [",
                                                                      -x.rank(), ", ", x.rank(), "), but got ", axis));
    Tensor y;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutputLike(0, x, &y));
    ScanDesc desc;
    desc.kind = kind_;
    desc.type = x.dtype();
    const int a = static_cast<int>(axis);
    desc.outer = Product(x.dims(), 0, a);
    desc.n = x.dim(a);
    desc.inner = Product(x.dims(), a + 1, x.rank());
    desc.exclusive = exclusive_;
    desc.reverse = reverse_;
    return ctx.Launch(desc, {x.data()}, {y.mutable_data()});
  }

 private:
  const ScanKind kind_;
  const bool exclusive_, reverse_;
};

}  // namespace

void RegisterScan(Registry& registry) {
  // int32 is in device memory, as on GPUs.
  const TypeList numbers = Union(kNumberTypes, {DType::kInt32});
  const struct {
    const char* name;
    ScanKind kind;
    const TypeList& types;
  } table[] = {{"Cumsum", ScanKind::kSum, numbers},
               {"Cumprod", ScanKind::kProd, numbers},
               {"CumulativeLogsumexp", ScanKind::kLogSumExp, kFloatTypes}};
  for (const auto& row : table) {
    const ScanKind kind = row.kind;
    registry.Op(row.name)
        .Types("T", row.types)
        .Types("Tidx", {DType::kInt32, DType::kInt64})
        .Host({"axis"})
        .Requires([kind](Needs& n) {
          ScanDesc desc;
          desc.kind = kind;
          desc.type = n.type("T");
          n.Ask(desc);
        })
        .Kernel<ScanKernel>(row.kind);
  }
}

}  // namespace xpu

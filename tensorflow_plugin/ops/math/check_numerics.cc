// CheckNumerics: passes its input on, or fails if it holds infinities or NaN. It waits for its data, like the ops whose
// commands can fail for an index (Context::LaunchChecked).
#include <string>
#include <vector>

#include "tensorflow_plugin/ops/math/elementwise.h"
#include "tensorflow_plugin/ops/ops.h"

namespace xpu {
namespace {

FormulaValue IsFinite(const FormulaValue* x, double) { return Apply(Opcode::kIsFinite, x[0]); }
FormulaValue IsNan(const FormulaValue* x, double) { return Apply(Opcode::kIsNan, x[0]); }
FormulaValue IsPositiveInfinity(const FormulaValue* x, double) { return Apply(Opcode::kIsInf, x[0]) && x[0] > 0.0; }
FormulaValue IsNegativeInfinity(const FormulaValue* x, double) { return Apply(Opcode::kIsInf, x[0]) && x[0] < 0.0; }

// "A", "A and B", "A, B, and C"
std::string List(const std::vector<std::string>& names) {
  std::string list;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0 && names.size() > 2) list += ",";
    if (i > 0) list += i + 1 == names.size() ? " and " : " ";
    list += names[i];
  }
  return list;
}

// The question about the elements: that all are, or that any is.
enum Test { kFinite, kNegative, kPositive, kNan, kNumTests };
constexpr Formula kTests[kNumTests] = {IsFinite, IsNegativeInfinity, IsPositiveInfinity, IsNan};

class CheckNumericsKernel : public OpKernel {
 public:
  // `signs`: the message tells the two infinities apart.
  CheckNumericsKernel(Construction& c, bool signs)
      : signs_(signs), type_(c.Attr<DType>("T")), message_(c.Attr<std::string>("message")) {
    for (int i = 0; i < kNumTests && c.status().ok(); ++i) {
      std::string error;
      programs_[i] = MakeProgram(kTests[i], 1, type_, 0.0, &error);
      if (programs_[i] == nullptr) c.Fail(errors::Internal("no program for CheckNumerics: ", error));
    }
  }

  Status Compute(Context& ctx) override {
    const Tensor x = ctx.input(0);
    bool finite = true;
    XPU_RETURN_IF_ERROR(Ask(ctx, x, ReduceKind::kAll, kFinite, &finite));
    if (finite) return ctx.ShareOutput(0, x, x.dims());
    bool negative, positive, nan;
    XPU_RETURN_IF_ERROR(Ask(ctx, x, ReduceKind::kAny, kNegative, &negative));
    XPU_RETURN_IF_ERROR(Ask(ctx, x, ReduceKind::kAny, kPositive, &positive));
    XPU_RETURN_IF_ERROR(Ask(ctx, x, ReduceKind::kAny, kNan, &nan));
    std::vector<std::string> found;
    if (signs_) {
      if (negative) found.push_back("-Inf");
      if (positive) found.push_back("+Inf");
    } else if (negative || positive) {
      found.push_back("Inf");
    }
    if (nan) found.push_back("NaN");
    return errors::InvalidArgument(message_, " : Tensor had ", List(found), " values");
  }

 private:
  Status Ask(Context& ctx, const Tensor& x, ReduceKind kind, Test test, bool* answer) const {
    Temporary result;
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kBool, Dims(), &result));
    ReduceDesc desc;
    desc.kind = kind;
    desc.axes = 1;
    desc.source.program = programs_[test];
    SetFlat(x.num_elements(), 1, &desc.source);
    XPU_RETURN_IF_ERROR(ctx.Launch(desc, {x.data()}, {result.data()}));
    return ctx.CopyToHost(answer, result.data(), sizeof(bool));
  }

  const bool signs_;
  const DType type_;
  const std::string message_;
  const Program* programs_[kNumTests] = {};
};

}  // namespace

void RegisterCheckNumerics(Registry& registry) {
  for (bool signs : {false, true}) {
    registry.Op(signs ? "CheckNumericsV2" : "CheckNumerics")
        .Types("T", kFloatTypes)
        .Traits(OpTrait::kWaitsForDevice)
        .Requires([](Needs& n) {
          for (const ReduceKind kind : {ReduceKind::kAll, ReduceKind::kAny}) {
            for (const Formula formula : kTests) {
              std::string error;
              ReduceDesc desc;
              desc.kind = kind;
              desc.source.program = MakeProgram(formula, 1, n.type("T"), 0.0, &error);
              if (desc.source.program == nullptr) return n.Fail("its program does not build: " + error);
              n.Ask(desc);
            }
          }
        })
        .Kernel<CheckNumericsKernel>(signs);
  }
}

}  // namespace xpu

// DebugNumericSummaryV2: a short vector that tells how many elements are infinite, NaN, negative and so on.
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tensorflow_plugin/ops/arrays/util.h"
#include "tensorflow_plugin/ops/math/broadcast.h"
#include "tensorflow_plugin/ops/math/steps.h"
#include "tensorflow_plugin/ops/ops.h"

namespace xpu {
namespace {

// TensorFlow's numbers of the vectors there are.
enum Mode : int64_t { kCurtHealth = 2, kConciseHealth = 3, kFullHealth = 4, kShape = 5, kThreeSlots = 8 };

// A test by which elements are counted. Infinities and NaN are of floating types alone.
using Test = FormulaValue (*)(const FormulaValue& x);
constexpr Test kNotFinite = [](const FormulaValue& x) { return LogicalNot(Apply(Opcode::kIsFinite, x)); };
constexpr Test kTests[] = {
    [](const FormulaValue& x) { return Apply(Opcode::kIsInf, x) && x < 0.0; },
    [](const FormulaValue& x) { return Apply(Opcode::kIsInf, x) && x > 0.0; },
    [](const FormulaValue& x) { return Apply(Opcode::kIsNan, x); },
    [](const FormulaValue& x) { return IsFloating(x.type()) ? Apply(Opcode::kIsFinite, x) && x < 0.0 : x < 0.0; },
    [](const FormulaValue& x) { return x == 0.0; },
    [](const FormulaValue& x) { return IsFloating(x.type()) ? Apply(Opcode::kIsFinite, x) && x > 0.0 : x > 0.0; },
};
constexpr int kOfFloats = 3;

// 1 for the elements that pass.
const Program* Counted(DType type, Test test) {
  ProgramBuilder builder;
  const FormulaValue x = {&builder, builder.Input(type)};
  builder.Output(Cast(test(Cast(x, ComputedIn(type))), DType::kInt64).reg);
  return builder.Build();
}

class NumericSummaryKernel : public OpKernel {
 public:
  explicit NumericSummaryKernel(Construction& c)
      : type_(c.Attr<DType>("T")),
        result_type_(c.Attr<DType>("output_dtype")),
        mode_(c.Attr<int64_t>("tensor_debug_mode")),
        id_(c.Attr<int64_t>("tensor_id")) {
    const std::vector<Test> tests = Tests();
    for (size_t i = 0; i < tests.size(); ++i) {
      const bool never = !IsFloating(type_) && i < kOfFloats;  // nothing is infinite or NaN
      programs_.push_back(never ? nullptr : Counted(type_, tests[i]));
    }
    // A count and what stands for "some" there: the count itself, 1 for some, or the number that was met.
    ProgramBuilder builder;
    const FormulaValue count = {&builder, builder.Input(DType::kInt64)}, some = {&builder, builder.Input(result_type_)};
    const FormulaValue result = mode_ == kCurtHealth || mode_ == kThreeSlots ? Select(count > 0.0, some, some.Const(0))
                                                                             : Cast(count, result_type_);
    builder.Output(result.reg);
    result_ = builder.Build();
  }

  Status Compute(Context& ctx) override {
    constexpr int64_t kMostOfFloat = int64_t{1} << 24;
    XPU_REQUIRE(
        result_type_ != DType::kFloat || id_ <= kMostOfFloat,
        errors::InvalidArgument("DebugNumericSummaryV2Op requires tensor_id to be less than or equal to (2^24). "
                                "Given tensor_id:",
                                id_));
    const Tensor x = ctx.input(0);
    std::vector<double> values;  // counts: what stands for some
    XPU_RETURN_IF_ERROR(Known(x, &values));
    const int64_t first = static_cast<int64_t>(values.size() - Tests().size());
    Tensor out;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, {static_cast<int64_t>(values.size())}, &out));
    XPU_RETURN_IF_ERROR(FromHost(ctx, values, out.mutable_data()));
    if (programs_.empty()) return OkStatus();

    Temporary counts, some;
    const int64_t n = static_cast<int64_t>(programs_.size());
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kInt64, {n}, &counts));
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(result_type_, {n}, &some));
    XPU_RETURN_IF_ERROR(FromHost(ctx, std::vector<double>(values.begin() + first, values.end()), some.data()));
    XPU_RETURN_IF_ERROR(ctx.Zero(counts.data(), counts.tensor().bytes()));
    for (int64_t i = 0; i < n; ++i) {
      if (programs_[i] == nullptr || x.num_elements() == 0) continue;
      ReduceDesc reduce;
      reduce.source.program = programs_[i];
      reduce.axes = 1;
      SetFlat(x.num_elements(), 1, &reduce.source);
      XPU_RETURN_IF_ERROR(ctx.Launch(reduce, {x.data()}, {Beyond(counts.data(), i, DType::kInt64)}));
    }
    return RunOver(ctx, result_, {n}, {{counts.data(), {}}, {some.data(), {}}},
                   {Beyond(out.data(), first, result_type_)});
  }

  static Need Needs() {
    return [](xpu::Needs& n) {
      const DType type = n.type("T");
      for (int i = IsFloating(type) ? 0 : kOfFloats; i < 6; ++i) {
        ReduceDesc reduce;
        reduce.source.program = Counted(type, kTests[i]);
        n.Ask(reduce);
      }
      needs::Cast(DType::kInt64, n.type("output_dtype"))(n);
      needs::Op(Opcode::kSelect, n.type("output_dtype"))(n);
    };
  }

 private:
  // The tests of the elements that are counted, the last slots of the vector.
  std::vector<Test> Tests() const {
    if (mode_ == kCurtHealth) return {kNotFinite};
    if (mode_ == kConciseHealth || mode_ == kThreeSlots) return {kTests, kTests + kOfFloats};
    if (mode_ == kFullHealth) return {kTests, kTests + 6};
    return {};
  }

  // The vector, with what stands for some at the end.
  Status Known(const Tensor& x, std::vector<double>* values) const {
    const double id = static_cast<double>(id_), size = static_cast<double>(x.num_elements());
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    switch (mode_) {
      case kCurtHealth:
        *values = {id, 1};
        return OkStatus();
      case kConciseHealth:
        *values = {id, size, 1, 1, 1};
        return OkStatus();
      case kFullHealth:  // -1: no number of the device
        *values = {id, -1, static_cast<double>(EnumValue(type_)), static_cast<double>(x.rank()), size, 1, 1, 1, 1,
                   1,  1};
        return OkStatus();
      case kShape: {
        *values = {id, static_cast<double>(EnumValue(type_)), static_cast<double>(x.rank()), size};
        // The last 6 extents.
        for (int i = 0; i < 6; ++i) {
          const int axis = x.rank() > 6 ? x.rank() - 6 + i : i;
          values->push_back(axis < x.rank() ? static_cast<double>(x.dim(axis)) : 0);
        }
        return OkStatus();
      }
      case kThreeSlots:
        *values = {-kInfinity, kInfinity, std::numeric_limits<double>::quiet_NaN()};
        return OkStatus();
      default:
        return errors::Unimplemented("Unimplemented tensor debug mode: ", mode_);
    }
  }

  Status FromHost(Context& ctx, const std::vector<double>& values, void* out) const {
    if (result_type_ == DType::kDouble) return ctx.CopyFromHost(out, values.data(), values.size() * sizeof(double));
    const std::vector<float> floats(values.begin(), values.end());
    return ctx.CopyFromHost(out, floats.data(), floats.size() * sizeof(float));
  }

  const DType type_, result_type_;
  const int64_t mode_, id_;
  std::vector<const Program*> programs_;
  const Program* result_ = nullptr;
};

}  // namespace

void RegisterDebug(Registry& registry) {
  registry.Op("DebugNumericSummaryV2")
      .Types("T", {DType::kHalf, DType::kBFloat16, DType::kFloat, DType::kDouble, DType::kInt16, DType::kInt32})
      .Types("output_dtype", {DType::kFloat, DType::kDouble})
      .Requires(NumericSummaryKernel::Needs())
      .Kernel<NumericSummaryKernel>();
}

}  // namespace xpu

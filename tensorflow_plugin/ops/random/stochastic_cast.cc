// StochasticCastToInt: a number becomes one of the two integers beside it, each the likelier the nearer it is.
#include <limits>

#include "tensorflow_plugin/ops/math/elementwise.h"
#include "tensorflow_plugin/ops/ops.h"
#include "tensorflow_plugin/ops/random/random.h"

namespace xpu {
namespace {

// Rounds x by a random number from [0, 1). Numbers beyond the integers become the last of them, NaN 0.
const Program* RoundProgram(DType from, DType to) {
  ProgramBuilder b;
  const DType wide = ComputedIn(from);
  const FormulaValue x = Cast({&b, b.Input(from)}, wide), u = {&b, b.Input(wide)};
  const FormulaValue below = Floor(x);
  // Numbers of both signs go away from zero where the random number is less than their fraction.
  FormulaValue rounded = Select(x < 0.0, Floor(x + u), Floor(x + (1.0 - u)));
  // x + 1 may have been rounded, to two integers further.
  rounded = Minimum(Maximum(rounded, below), below + 1.0);
  rounded = Select(below == x, x, rounded);
  const int64_t most = (int64_t{1} << (8 * SizeOf(to) - 1)) - 1;
  const FormulaValue largest = {&b, b.ConstInt(to, most)}, least = {&b, b.ConstInt(to, -most - 1)};
  const auto limit = static_cast<double>(most);
  const FormulaValue inside = Select(Apply(Opcode::kIsNan, x), largest.Const(0), Cast(rounded, to));
  const FormulaValue low = Select(x <= -limit - 1.0, least, inside);
  b.Output(Select(x.Const(limit) <= x, largest, low).reg);
  return b.Build();
}

class StochasticCastKernel : public OpKernel {
 public:
  explicit StochasticCastKernel(Construction& c)
      : wide_(ComputedIn(c.Attr<DType>("Tin"))), program_(RoundProgram(c.Attr<DType>("Tin"), c.Attr<DType>("Tout"))) {}

  Status Compute(Context& ctx) override {
    const Tensor x = ctx.input(0), key = ctx.input(1), counter = ctx.input(2);
    XPU_RETURN_IF_ERROR(CheckKey(key, counter, ctx.input(3)));
    Tensor out;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, x.dims(), &out));
    if (x.num_elements() == 0) return OkStatus();
    Temporary uniform;
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(wide_, x.dims(), &uniform));
    RandomDesc random;
    random.start = RandomStart::kGiven;
    random.type = wide_;
    random.n = x.num_elements();
    XPU_RETURN_IF_ERROR(ctx.Launch(random, {key.data(), counter.data()}, {uniform.data()}));
    ElementwiseDesc round;
    round.program = program_;
    SetFlat(x.num_elements(), 2, &round);
    return ctx.Launch(round, {x.data(), uniform.data()}, {out.mutable_data()});
  }

 private:
  const DType wide_;
  const Program* program_;
};

const TypeList kTo = {DType::kInt8, DType::kInt16, DType::kInt32};

}  // namespace

void RegisterStochasticCast(Registry& registry) {
  for (DType wide : {DType::kFloat, DType::kDouble}) {
    const TypeList from = wide == DType::kDouble ? TypeList{wide} : TypeList{DType::kHalf, DType::kBFloat16, wide};
    registry.Op("StochasticCastToInt")
        .Types("Tin", from)
        .Types("Tout", kTo)
        .Host({"alg"})
        .Requires(needs::Random(RandomKind::kUniform, wide, true, RandomStart::kGiven))
        .Requires([](Needs& n) { n.AskProgram(RoundProgram(n.type("Tin"), n.type("Tout"))); })
        .Kernel<StochasticCastKernel>();
  }
}

}  // namespace xpu

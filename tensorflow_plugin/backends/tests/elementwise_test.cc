// Programs: broadcasting, chains, outputs over inputs, failures, and programs put together by chance.
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "tensorflow_plugin/backends/tests/elementwise_testing.h"

namespace xpu::testing {
namespace {

constexpr DType kFloats[] = {DType::kHalf, DType::kBFloat16, DType::kFloat, DType::kDouble};

TEST(Elementwise, Broadcasting) {
  struct Case {
    Dims shape, a, b;
  };
  const Case cases[] = {
      {{}, {}, {}},
      {{1}, {0}, {1}},
      {{5}, {1}, {0}},
      {{3000}, {1}, {0}},
      {{3000}, {0}, {0}},
      {{40, 70}, {70, 1}, {0, 1}},
      {{40, 70}, {70, 1}, {1, 0}},
      {{40, 70}, {1, 40}, {70, 1}},
      {{3, 2000}, {2000, 1}, {0, 1}},
      {{3, 2000}, {2000, 1}, {1, 0}},
      {{1000, 3}, {3, 1}, {0, 1}},
      {{1000, 3}, {0, 1}, {1, 0}},
      {{4, 5, 6, 7}, {210, 42, 7, 1}, {0, 7, 0, 1}},
      {{4, 5, 6, 7}, {0, 0, 0, 1}, {5, 1, 0, 0}},
      {{2, 1, 600, 3}, {1800, 7, 3, 1}, {0, 0, 1, 0}},
      {{7, 6, 5, 4}, {1, 7, 42, 210}, {120, 20, 4, 1}},
      {{5, 60, 24}, {24, 0, 1}, {60, 1, 0}},
      {{4, 300, 9}, {9, 0, 1}, {0, 1, 0}},
      {{300, 10}, {20, 2}, {10, 1}},
      {{0, 4}, {4, 1}, {0, 1}},
      {{4, 0}, {0, 1}, {1, 0}},
  };
  for (DType type : {DType::kFloat, DType::kHalf, DType::kBool, DType::kInt64, DType::kComplex128}) {
    const Program* program = SingleOpProgram(type == DType::kBool ? Opcode::kLogicalOr : Opcode::kAdd, type);
    for (const Case& c : cases) {
      ElementwiseDesc desc;
      desc.program = program;
      desc.shape = c.shape;
      desc.in_strides[0] = c.a;
      desc.in_strides[1] = c.b;
      auto size = [&](const Dims& strides) {
        int64_t last = 0;
        for (int d = 0; d < c.shape.rank(); ++d) last += std::max<int64_t>(0, c.shape[d] - 1) * strides[d];
        return last + 1;
      };
      ExpectAsTheReference(desc, {Random(type, size(c.a), 1, -100, 100), Random(type, size(c.b), 2, -100, 100)},
                           c.shape.ToString() + " strides " + c.a.ToString() + c.b.ToString());
    }
  }
}

// 0.5 x (1 + tanh(z)), z = 0.79788 (x + 0.044715 x^3), by hand at three points and over tiles. First, z errs by 8 u of
// itself, which makes tanh(z) err by less than 4 u as |z (1 - tanh(z)^2)| < 0.45. Then tanh itself may be 6 units in
// the last place off, 12 u; and 1 + tanh(z) takes another rounding of at most 2 u. So the sum errs by 18 u at most,
// however small it is. The result errs by 9 u |x|, and by 2 u of itself for the products. More axes than a shape holds
// without memory of its own, none of which merge.
TEST(Elementwise, ManyAxes) {
  ElementwiseDesc desc;
  desc.program = SingleOpProgram(Opcode::kSub, DType::kFloat);
  desc.shape = Dims(17, 2);
  const Dims dense = DenseStrides(desc.shape);
  desc.in_strides[0] = desc.in_strides[1] = Dims(17, 0);
  int64_t stride = 1;
  for (int i = 0; i < 17; ++i) {
    desc.in_strides[0][i] = dense[16 - i];  // transposed
    if (i % 2 == 0) continue;
    desc.in_strides[1][i] = stride;  // broadcast along every other axis
    stride *= 2;
  }
  ExpectAsTheReference(desc, {Random(DType::kFloat, 1 << 17, 1), Random(DType::kFloat, stride, 2)}, "many axes");
}

TEST(Elementwise, GeluChain) {
  // The constants are of type `as`, to which they are rounded.
  auto gelu = [](DType type, DType as) {
    ProgramBuilder b;
    auto constant = [&](double value) { return b.Const(type, RealAt(Values(as, {value}), 0)); };
    const auto x = b.Input(type);
    const auto cube = b.Apply(Opcode::kMul, b.Apply(Opcode::kSquare, x), x);
    const auto inner = b.Apply(Opcode::kAdd, x, b.Apply(Opcode::kMul, cube, constant(0.044715)));
    const auto t = b.Apply(Opcode::kTanh, b.Apply(Opcode::kMul, inner, constant(0.7978845608)));
    b.Output(b.Apply(Opcode::kMul, b.Apply(Opcode::kAdd, t, b.Const(type, 1)),
                     b.Apply(Opcode::kMul, x, b.Const(type, 0.5))));
    return b.Build();
  };
  for (DType type : kFloats) {
    const double u = Roundoff(type) * (type == DType::kDouble ? 2 : 1);
    auto bound = [&](const Array& x) {
      Bound result = {2 * u};
      for (int64_t i = 0; i < x.size(); ++i) result.each.push_back(9 * u * std::abs(RealAt(x, i)));
      return result;
    };
    for (int64_t n : {1, 1023, 1024, 1025, 9000}) {
      const Array x = Random(type, n, 1);
      const ElementwiseDesc desc = Dense(gelu(type, type), n), wide = Dense(gelu(Wide(type), type), n);
      Expect(desc, {x}, Outputs(desc), {Exact(wide, {x}, Outputs(desc)), {bound(x)}}, "gelu");
    }
    if (IsReducedFloat(type)) continue;  // whose constants are others
    const ElementwiseDesc desc = Dense(gelu(type, type), 3);
    const Array x = Values(type, {0, 1, -1});
    Bound by_hand = bound(x);
    by_hand.absolute = 1e-10;  // the digits given here
    ExpectByHand(desc, {x}, Outputs(desc), {{Values(DType::kDouble, {0, 0.8411919906, -0.1588080094})}, {by_hand}},
                 "gelu by hand");
  }
}

// An optimizer step writes over its own inputs: m = m / 2 + g, v = v - m / 4, and returns the old v. Each result is
// rounded once, since halves are exact, so that the places of the outputs must not change a bit.
TEST(Elementwise, OutputsOverInputs) {
  for (DType type : {DType::kFloat, DType::kHalf, DType::kDouble}) {
    ProgramBuilder b;
    const auto v = b.Input(type), m = b.Input(type), g = b.Input(type);
    const auto m2 = b.Apply(Opcode::kAdd, b.Apply(Opcode::kMul, m, b.Const(type, 0.5)), g);
    const auto v2 = b.Apply(Opcode::kSub, v, b.Apply(Opcode::kMul, m2, b.Const(type, 0.25)));
    // m2 is stored before m is read for the last time, and v after v2 was computed.
    b.Output(m2);
    b.Output(v2);
    b.Output(b.Apply(Opcode::kSub, m2, m));
    b.Output(v);
    const ElementwiseDesc desc = Dense(b.Build(), 2500);
    const std::vector<Array> inputs = {Random(type, 2500, 1), Random(type, 2500, 2), Random(type, 2500, 3)};
    const Want want{ExpectAsTheReference(desc, inputs, "optimizer step")};
    const Output apart = {type, 2500}, over_v = {type, 2500, nullptr, 0}, over_m = {type, 2500, nullptr, 1};
    ExpectByHand(desc, inputs, {over_m, over_v, apart, apart}, want, "optimizer step in place");
  }
}

TEST(Elementwise, CopiesAndConstants) {
  for (int t = 1; t < kNumDTypes; ++t) {
    const DType type = static_cast<DType>(t);
    const Array x = Random(type, 5000, 1, -100, 100);
    Want want{{x}};
    ElementwiseDesc desc = Dense(IdentityProgram(type), 5000);
    ExpectByHand(desc, {x}, Outputs(desc), want, "copy");
    desc.shape = {50, 40};
    desc.in_strides[0] = {1, 50};
    ExpectAsTheReference(desc, {Random(type, 2000, 1)}, "transposed copy");
    ProgramBuilder b;
    b.Output(b.Const(type, 99));
    desc = Dense(b.Build(), 3000);
    want.out = {Values(type, std::vector<double>(3000, 99))};
    ExpectByHand(desc, {}, Outputs(desc), want, "fill");
  }
  // A 64-bit integer that no double holds.
  ProgramBuilder b;
  b.Output(b.ConstInt(DType::kInt64, 9007199254740993));
  Array odd(DType::kInt64, 1);
  *odd.as<int64_t>() = 9007199254740993;
  const ElementwiseDesc desc = Dense(b.Build(), 1);
  ExpectByHand(desc, {}, Outputs(desc), {{odd}}, "fill with 2^53 + 1");
}

// Values stay float between the instructions of a half program; a cast to half rounds.
TEST(Elementwise, ReducedFloatsRoundWhereTheyMust) {
  ProgramBuilder b;
  const auto x = b.Input(DType::kHalf);
  const auto sum = b.Apply(Opcode::kAdd, x, b.Const(DType::kHalf, 1));  // 2048 + 1 has no half
  b.Output(b.Apply(Opcode::kSub, sum, b.Const(DType::kHalf, 2048)));
  ElementwiseDesc desc = Dense(b.Build(), 1);
  ExpectByHand(desc, {Values(DType::kHalf, {2048})}, Outputs(desc), {{Values(DType::kHalf, {1})}}, "half program");
  ProgramBuilder r;
  const auto y = r.Apply(Opcode::kAdd, r.Input(DType::kFloat), r.Const(DType::kFloat, 1));
  r.Output(r.Apply(Opcode::kSub, r.Cast(r.Cast(y, DType::kHalf), DType::kFloat), r.Const(DType::kFloat, 2048)));
  desc = Dense(r.Build(), 1);
  ExpectByHand(desc, {Values(DType::kFloat, {2048})}, Outputs(desc), {{Values(DType::kFloat, {0})}},
               "cast to half and back");
}

// There and back again, to the bit: a NaN stays any NaN.
TEST(Elementwise, EveryHalfAndBFloat16) {
  for (DType type : {DType::kHalf, DType::kBFloat16}) {
    Array all(type, 65536);
    for (int i = 0; i < 65536; ++i) all.as<uint16_t>()[i] = static_cast<uint16_t>(i);
    const Array wide = ExpectAsTheReference(Dense(CastProgram(type, DType::kFloat), 65536), {all}, "widening")[0];
    const ElementwiseDesc narrowing = Dense(CastProgram(DType::kFloat, type), 65536);
    ExpectByHand(narrowing, {wide}, Outputs(narrowing), {{all}}, "narrowing");
    for (const Variant& variant : Variants()) {
      const UseVariant use(variant);
      const Outcome outcome = variant.device->Run(narrowing, {wide}, Outputs(narrowing), variant.waiting);
      if (!outcome.launched) continue;          // counted above
      for (int i : {0x8000, 0x0001, 0x8001}) {  // the zero that is equal to another, and the smallest numbers
        EXPECT_EQ(outcome.out[0].as<uint16_t>()[i], i) << Name(type) << ", " << variant.name;
      }
    }
  }
}

TEST(Elementwise, FailuresAreReported) {
  auto check = [](Opcode op, DType type, std::vector<double> x, std::vector<double> y, const char* message,
                  std::vector<double> want) {
    const ElementwiseDesc desc = Dense(SingleOpProgram(op, type), static_cast<int64_t>(x.size()));
    ExpectByHand(desc, {Values(type, x), Values(type, y)}, Outputs(desc),
                 {{Values(type, want)}, {}, Code::kInvalidArgument, message}, "failure");
  };
  for (DType type : {DType::kInt8, DType::kInt32, DType::kInt64, DType::kUint8, DType::kUint32}) {
    check(Opcode::kTruncateDiv, type, {7, 8}, {0, 2}, "Integer division by zero", {0, 4});
    check(Opcode::kFloorDiv, type, {7, 8}, {0, 2}, "Integer division by zero", {0, 4});
    check(Opcode::kFloorMod, type, {7, 8}, {0, 3}, "Integer division by zero", {0, 2});
    check(Opcode::kTruncateMod, type, {7, 8}, {0, 3}, "Integer division by zero", {0, 2});
  }
  check(Opcode::kPow, DType::kInt32, {2, 2}, {-1, 3}, "Integers to negative integer powers are not allowed", {0, 8});
}

// Programs put together by chance from instructions whose results are exact: both backends must agree to the bit.
TEST(Elementwise, RandomPrograms) {
  constexpr DType types[] = {DType::kFloat, DType::kHalf, DType::kDouble, DType::kInt32, DType::kUint8, DType::kBool};
  constexpr Opcode numeric[] = {Opcode::kAdd,     Opcode::kSub,    Opcode::kMul, Opcode::kMaximum,
                                Opcode::kMinimum, Opcode::kSquare, Opcode::kAbs};
  constexpr Opcode compares[] = {Opcode::kLess, Opcode::kGreaterEqual, Opcode::kEqual, Opcode::kNotEqual};
  for (uint32_t seed = 0; seed < 150; ++seed) {
    std::mt19937 rng(seed);
    auto pick = [&](int n) { return static_cast<int>(rng() % n); };
    ProgramBuilder b;
    std::vector<ProgramBuilder::Reg> regs;
    const Dims shape = pick(2) ? Dims{pick(5000) + 1} : Dims{pick(30) + 1, pick(20) + 1, pick(9) + 1};
    ElementwiseDesc desc;
    desc.shape = shape;
    std::vector<Array> inputs;
    const int num_inputs = pick(6) + 1;
    for (int i = 0; i < num_inputs; ++i) {
      const DType type = types[pick(6)];
      regs.push_back(b.Input(type));
      Dims strides = DenseStrides(shape);
      for (int d = 0; d < shape.rank(); ++d) strides[d] = pick(3) == 0 ? 0 : strides[d];
      desc.in_strides[i] = strides;
      inputs.push_back(Random(type, shape.num_elements(), seed * 8 + i));
    }
    const int instrs = pick(40);
    for (int i = 0; i < instrs; ++i) {
      const auto x = regs[pick(static_cast<int>(regs.size()))];
      auto like = [&] {  // another register of x's type
        const auto y = regs[pick(static_cast<int>(regs.size()))];
        return y.type == x.type ? y : pick(2) ? b.Cast(y, x.type) : b.Const(x.type, pick(5) - 1);
      };
      const int choice = pick(10);
      if (choice < 3) {
        regs.push_back(b.Cast(x, types[pick(6)]));
      } else if (choice < 4) {
        regs.push_back(
            b.Apply(Opcode::kSelect, b.Cast(regs[pick(static_cast<int>(regs.size()))], DType::kBool), x, like()));
      } else if (x.type == DType::kBool) {
        regs.push_back(choice < 6 ? b.Apply(Opcode::kLogicalNot, x) : b.Apply(Opcode::kLogicalAnd, x, like()));
      } else if (choice < 6) {
        regs.push_back(b.Apply(compares[pick(4)], x, like()));
      } else {
        const Opcode op = numeric[pick(7)];
        regs.push_back(Info(op).arity == 1 ? b.Apply(op, x) : b.Apply(op, x, like()));
      }
    }
    const int outputs = pick(4) + 1;
    for (int i = 0; i < outputs; ++i) b.Output(regs[regs.size() - 1 - pick(static_cast<int>(regs.size()))]);
    desc.program = b.Build();
    if (desc.program == nullptr) continue;  // too many registers
    ExpectAsTheReference(desc, inputs, "seed " + std::to_string(seed) + "\n" + desc.program->ToString());
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace xpu::testing

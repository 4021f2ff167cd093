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
      {{300, 10}, {20, 2}, {10, 1}},
      {{0, 4}, {4, 1}, {0, 1}},
      {{4, 0}, {0, 1}, {1, 0}},
  };
  ForEachIsa([&] {
    for (DType type : {DType::kFloat, DType::kHalf, DType::kBool, DType::kInt64, DType::kComplex128}) {
      const Program* program = SingleOpProgram(type == DType::kBool ? EOp::kLogicalOr : EOp::kAdd, type);
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
        Compare(desc, {Random(type, size(c.a), 1), Random(type, size(c.b), 2)}, 1,
                std::string(Name(type)) + " of " + c.shape.ToString() + " strides " + c.a.ToString() + c.b.ToString());
      }
    }
  });
}

// 0.5 x (1 + tanh(0.79788 (x + 0.044715 x^3))), by hand at three points and over tiles.
TEST(Elementwise, GeluChain) {
  for (DType type : kFloats) {
    ProgramBuilder b;
    const auto x = b.Input(type);
    const auto cube = b.Apply(EOp::kMul, b.Apply(EOp::kSquare, x), x);
    const auto inner = b.Apply(EOp::kAdd, x, b.Apply(EOp::kMul, cube, b.Const(type, 0.044715)));
    const auto t = b.Apply(EOp::kTanh, b.Apply(EOp::kMul, inner, b.Const(type, 0.7978845608)));
    const auto y =
        b.Apply(EOp::kMul, b.Apply(EOp::kAdd, t, b.Const(type, 1)), b.Apply(EOp::kMul, x, b.Const(type, 0.5)));
    b.Output(y);
    const Program* program = b.Build();
    ForEachIsa([&] {
      for (int64_t n : {1, 1023, 1024, 1025, 9000}) Compare(Dense(program, n), {Random(type, n, 1)}, 16, "gelu");
      const auto got = Compare(Dense(program, 3), {Values(type, {0, 1, -1})}, 16, "gelu");
      Tolerance tolerance = ToleranceFor(type, 16);
      tolerance.absolute += 1e-10;  // the digits given here
      ExpectClose(got[0], Values(type, {0, 0.8411919906, -0.1588080094}), tolerance, "gelu by hand");
    });
  }
}

// An optimizer step writes over its own inputs: m = 0.9 m + 0.1 g, v = v - 0.01 m, and returns the old v.
TEST(Elementwise, OutputsOverInputs) {
  for (DType type : {DType::kFloat, DType::kHalf, DType::kDouble}) {
    ProgramBuilder b;
    const auto v = b.Input(type), m = b.Input(type), g = b.Input(type);
    const auto m2 = b.Apply(EOp::kAdd, b.Apply(EOp::kMul, m, b.Const(type, 0.5)), g);
    const auto v2 = b.Apply(EOp::kSub, v, b.Apply(EOp::kMul, m2, b.Const(type, 0.25)));
    // m2 is stored before m is read for the last time, and v after v2 was computed.
    b.Output(m2);
    b.Output(v2);
    b.Output(b.Apply(EOp::kSub, m2, m));
    b.Output(v);
    const ElementwiseDesc desc = Dense(b.Build(), 2500);
    const std::vector<Array> inputs = {Random(type, 2500, 1), Random(type, 2500, 2), Random(type, 2500, 3)};
    const auto want = Compare(desc, inputs, 4, "optimizer step");
    ForEachIsa([&] {
      for (const runtime::KernelSet* kernels : {static_cast<const runtime::KernelSet*>(&host::Kernels()),
                                                static_cast<const runtime::KernelSet*>(&reference::Kernels())}) {
        std::vector<Array> data = inputs;
        Array difference(type, 2500), old(type, 2500);
        Args args{};
        for (int i = 0; i < 3; ++i) args.in[i] = data[i].data();
        args.out[0] = data[1].data();
        args.out[1] = data[0].data();
        args.out[2] = difference.data();
        args.out[3] = old.data();
        ASSERT_TRUE(kernels->Run(desc, args, runtime::ThreadTeam(2)).ok());
        ExpectClose(data[1], want[0], ToleranceFor(type, 4), "m over itself");
        ExpectClose(data[0], want[1], ToleranceFor(type, 4), "v over itself");
        ExpectClose(difference, want[2], ToleranceFor(type, 4), "difference");
        ExpectClose(old, want[3], ToleranceFor(type, 4), "the old v");
      }
    });
  }
}

TEST(Elementwise, CopiesAndConstants) {
  for (int t = 1; t < kNumDTypes; ++t) {
    const DType type = static_cast<DType>(t);
    Compare(Dense(IdentityProgram(type), 5000), {Random(type, 5000, 1)}, 0, "copy");
    ElementwiseDesc transposed = Dense(IdentityProgram(type), 1);
    transposed.shape = {50, 40};
    transposed.in_strides[0] = {1, 50};
    Compare(transposed, {Random(type, 2000, 1)}, 0, "transposed copy");
    ProgramBuilder b;
    b.Output(b.Const(type, 1));
    Compare(Dense(b.Build(), 3000), {}, 0, "fill");
  }
  // 64-bit integers that no double holds.
  ProgramBuilder b;
  b.Output(b.ConstInt(DType::kInt64, 9007199254740993));
  Array out(DType::kInt64, 1);
  Args args{};
  args.out[0] = out.data();
  for (const runtime::KernelSet* kernels : {static_cast<const runtime::KernelSet*>(&host::Kernels()),
                                            static_cast<const runtime::KernelSet*>(&reference::Kernels())}) {
    ASSERT_TRUE(kernels->Run(Dense(b.Build(), 1), args, runtime::ThreadTeam(1)).ok());
    EXPECT_EQ(*out.as<int64_t>(), 9007199254740993);
  }
}

// Values stay float between the instructions of a half program; a cast to half rounds.
TEST(Elementwise, ReducedFloatsRoundWhereTheyMust) {
  ProgramBuilder b;
  const auto x = b.Input(DType::kHalf);
  const auto sum = b.Apply(EOp::kAdd, x, b.Const(DType::kHalf, 1));  // 2048 + 1 has no half
  b.Output(b.Apply(EOp::kSub, sum, b.Const(DType::kHalf, 2048)));
  ProgramBuilder r;
  const auto y = r.Apply(EOp::kAdd, r.Input(DType::kFloat), r.Const(DType::kFloat, 1));
  r.Output(r.Apply(EOp::kSub, r.Cast(r.Cast(y, DType::kHalf), DType::kFloat), r.Const(DType::kFloat, 2048)));
  ForEachIsa([&] {
    auto got = Compare(Dense(b.Build(), 1), {Values(DType::kHalf, {2048})}, 0, "half program");
    EXPECT_EQ(RealAt(got[0], 0), 1);
    got = Compare(Dense(r.Build(), 1), {Values(DType::kFloat, {2048})}, 0, "cast to half and back");
    EXPECT_EQ(RealAt(got[0], 0), 0);
  });
}

TEST(Elementwise, EveryHalfAndBFloat16) {
  for (DType type : {DType::kHalf, DType::kBFloat16}) {
    Array bits(type, 65536);
    for (int i = 0; i < 65536; ++i) bits.as<uint16_t>()[i] = static_cast<uint16_t>(i);
    ForEachIsa([&] {
      const auto wide = Compare(Dense(CastProgram(type, DType::kFloat), 65536), {bits}, 0, "widening");
      Array back(type, 65536);
      Args args{};
      args.in[0] = wide[0].data();
      args.out[0] = back.data();
      ASSERT_TRUE(
          host::Kernels().Run(Dense(CastProgram(DType::kFloat, type), 65536), args, runtime::ThreadTeam(1)).ok());
      for (int i = 0; i < 65536; ++i) {
        if (std::isnan(RealAt(bits, i))) {
          ASSERT_TRUE(std::isnan(RealAt(back, i))) << i;
        } else {
          ASSERT_EQ(back.as<uint16_t>()[i], i) << Name(type);
        }
      }
    });
  }
}

TEST(Elementwise, FailuresAreReported) {
  auto check = [](EOp op, DType type, std::initializer_list<double> x, std::initializer_list<double> y,
                  const char* message, std::initializer_list<double> want) {
    const ElementwiseDesc desc = Dense(SingleOpProgram(op, type), static_cast<int64_t>(x.size()));
    const auto got = Compare(desc, {Values(type, x), Values(type, y)}, 0, Info(op).name);
    ExpectClose(got[0], Values(type, want), {}, Info(op).name);
    for (const runtime::KernelSet* kernels : {static_cast<const runtime::KernelSet*>(&host::Kernels()),
                                              static_cast<const runtime::KernelSet*>(&reference::Kernels())}) {
      Array a = Values(type, x), b = Values(type, y), out(type, a.size());
      Args args{};
      args.in[0] = a.data();
      args.in[1] = b.data();
      args.out[0] = out.data();
      const Status status = kernels->Run(desc, args, runtime::ThreadTeam(1));
      EXPECT_EQ(status.code(), Code::kInvalidArgument);
      EXPECT_EQ(status.message(), message);
    }
  };
  for (DType type : {DType::kInt8, DType::kInt32, DType::kInt64, DType::kUint8, DType::kUint32}) {
    check(EOp::kTruncateDiv, type, {7, 8}, {0, 2}, "Integer division by zero", {0, 4});
    check(EOp::kFloorDiv, type, {7, 8}, {0, 2}, "Integer division by zero", {0, 4});
    check(EOp::kFloorMod, type, {7, 8}, {0, 3}, "Integer division by zero", {0, 2});
    check(EOp::kTruncateMod, type, {7, 8}, {0, 3}, "Integer division by zero", {0, 2});
  }
  check(EOp::kPow, DType::kInt32, {2, 2}, {-1, 3}, "Integers to negative integer powers are not allowed", {0, 8});
}

// Programs put together by chance from instructions whose results are exact: both backends must agree to the bit.
TEST(Elementwise, RandomPrograms) {
  constexpr DType types[] = {DType::kFloat, DType::kHalf, DType::kDouble, DType::kInt32, DType::kUint8, DType::kBool};
  constexpr EOp numeric[] = {EOp::kAdd, EOp::kSub, EOp::kMul, EOp::kMaximum, EOp::kMinimum, EOp::kSquare, EOp::kAbs};
  constexpr EOp compares[] = {EOp::kLess, EOp::kGreaterEqual, EOp::kEqual, EOp::kNotEqual};
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
            b.Apply(EOp::kSelect, b.Cast(regs[pick(static_cast<int>(regs.size()))], DType::kBool), x, like()));
      } else if (x.type == DType::kBool) {
        regs.push_back(choice < 6 ? b.Apply(EOp::kLogicalNot, x) : b.Apply(EOp::kLogicalAnd, x, like()));
      } else if (choice < 6) {
        regs.push_back(b.Apply(compares[pick(4)], x, like()));
      } else {
        const EOp op = numeric[pick(7)];
        regs.push_back(Info(op).arity == 1 ? b.Apply(op, x) : b.Apply(op, x, like()));
      }
    }
    const int outputs = pick(4) + 1;
    for (int i = 0; i < outputs; ++i) b.Output(regs[regs.size() - 1 - pick(static_cast<int>(regs.size()))]);
    desc.program = b.Build();
    if (desc.program == nullptr) continue;  // too many registers
    ForEachIsa([&] { Compare(desc, inputs, 0, "seed " + std::to_string(seed) + "\n" + desc.program->ToString()); });
    if (HasFailure()) return;
  }
}

TEST(Isa, ChoosesByName) {
  std::string warning;
  EXPECT_EQ(host::ChooseIsa("baseline", &warning), host::Isa::kBaseline);
  EXPECT_EQ(warning, "");
  const host::Isa best = host::ChooseIsa(nullptr, &warning);
  EXPECT_TRUE(host::HasIsa(best));
  EXPECT_EQ(host::ChooseIsa("", &warning), best);
  EXPECT_EQ(warning, "");
  EXPECT_EQ(host::ChooseIsa("sse9", &warning), best);
  EXPECT_NE(warning.find("sse9"), std::string::npos);
  EXPECT_NE(warning.find("baseline, avx2 or avx512"), std::string::npos);
}

}  // namespace
}  // namespace xpu::testing

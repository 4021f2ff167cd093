#include "tensorflow_plugin/primitives/program.h"

#include <cmath>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tensorflow_plugin/primitives/dims.h"

namespace xpu {
namespace {

TEST(Types, HalfByHand) {
  struct Case {
    float value;
    uint16_t bits;
  };
  const Case cases[] = {
      {0.0f, 0x0000},     {-0.0f, 0x8000},    {1.0f, 0x3c00},     {-2.0f, 0xc000},      {65504.0f, 0x7bff},
      {65519.0f, 0x7bff}, {65520.0f, 0x7c00}, {1e10f, 0x7c00},    {INFINITY, 0x7c00},   {-INFINITY, 0xfc00},
      {0x1p-14f, 0x0400}, {0x1p-24f, 0x0001}, {0x1p-25f, 0x0000}, {0x1.8p-25f, 0x0001}, {0x1.ff8p-15f, 0x03ff},
      {2049.0f, 0x6800},  {2051.0f, 0x6802},  {0.1f, 0x2e66},     {1e-40f, 0x0000},
  };
  for (const Case& c : cases) EXPECT_EQ(Half(c.value).bits, c.bits) << c.value;
}

TEST(Types, BFloat16ByHand) {
  struct Case {
    float value;
    uint16_t bits;
  };
  const Case cases[] = {
      {0.0f, 0x0000},        {-0.0f, 0x8000},   {1.0f, 0x3f80},     {-2.0f, 0xc000},     {1.00390625f, 0x3f80},
      {1.01171875f, 0x3f82}, {3.4e38f, 0x7f80}, {INFINITY, 0x7f80}, {-INFINITY, 0xff80}, {0.1f, 0x3dcd},
  };
  for (const Case& c : cases) EXPECT_EQ(BFloat16(c.value).bits, c.bits) << c.value;
}

template <typename T>
class ReducedFloat : public ::testing::Test {};
using ReducedFloats = ::testing::Types<Half, BFloat16>;
TYPED_TEST_SUITE(ReducedFloat, ReducedFloats);

TYPED_TEST(ReducedFloat, EveryPatternSurvivesTheRoundTrip) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    TypeParam x;
    x.bits = static_cast<uint16_t>(bits);
    const float f = x;
    const TypeParam back(f);
    if (std::isnan(f)) {
      EXPECT_TRUE(std::isnan(static_cast<float>(back))) << bits;
      EXPECT_EQ(back.bits & 0x8000, bits & 0x8000) << bits;
    } else {
      ASSERT_EQ(back.bits, bits);
    }
  }
}

// Between two neighbours a float goes to the nearer, and from the middle to the even one.
TYPED_TEST(ReducedFloat, RoundsToNearestEven) {
  for (uint32_t bits = 0; bits < 0x7bff; ++bits) {
    TypeParam low, high;
    low.bits = static_cast<uint16_t>(bits);
    high.bits = static_cast<uint16_t>(bits + 1);
    const float a = low, b = high;
    if (!std::isfinite(b)) break;
    const float middle = a + (b - a) / 2;
    ASSERT_EQ(TypeParam(middle).bits, bits & 1 ? bits + 1 : bits);
    ASSERT_EQ(TypeParam(std::nextafter(middle, a)).bits, bits);
    ASSERT_EQ(TypeParam(std::nextafter(middle, b)).bits, bits + 1);
  }
}

TEST(Types, VisitTypeNamesEveryType) {
  for (int t = 1; t < kNumDTypes; ++t) {
    const DType type = static_cast<DType>(t);
    EXPECT_TRUE(VisitType(type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      EXPECT_EQ(DTypeOf<T>::value, type);
      EXPECT_EQ(sizeof(T), SizeOf(type)) << Name(type);
    }));
    EXPECT_EQ(IsInteger(type), IsSignedInteger(type) || IsUnsignedInteger(type));
  }
  EXPECT_FALSE(VisitType(DType::kInvalid, [](auto) { FAIL(); }));
}

TEST(ProgramBuilder, NumbersRegistersInputsConstantsResults) {
  ProgramBuilder b;
  const auto x = b.Input(DType::kFloat);
  const auto scaled = b.Apply(Opcode::kMul, x, b.Const(DType::kFloat, 2));
  const auto y = b.Input(DType::kFloat);
  b.Output(b.Apply(Opcode::kLess, scaled, y));
  b.Output(scaled);
  const Program* p = b.Build();
  ASSERT_NE(p, nullptr) << b.error();
  EXPECT_EQ(p->num_inputs(), 2);
  EXPECT_EQ(p->num_outputs(), 2);
  EXPECT_EQ(p->num_registers(), 5);
  EXPECT_EQ(p->first_instr_register(), 3);
  EXPECT_EQ(p->output_type(0), DType::kBool);
  EXPECT_EQ(p->output_type(1), DType::kFloat);
  EXPECT_EQ(p->ToString(),
            "r0:float = input 0\nr1:float = input 1\nr2:float = 2\nr3:float = Mul r0, r2\nr4:bool = Less r3, r1\n"
            "output 0 = r4\noutput 1 = r3\n");
  EXPECT_FALSE(p->can_fail());
}

TEST(ProgramBuilder, EqualProgramsAreOne) {
  auto make = [](double constant, Opcode op) {
    ProgramBuilder b;
    b.Output(b.Apply(op, b.Input(DType::kFloat), b.Const(DType::kFloat, constant)));
    return b.Build();
  };
  const Program* p = make(2, Opcode::kAdd);
  EXPECT_EQ(make(2, Opcode::kAdd), p);
  EXPECT_NE(make(3, Opcode::kAdd), p);
  EXPECT_NE(make(2, Opcode::kSub), p);
  EXPECT_NE(make(0.0, Opcode::kAdd), make(-0.0, Opcode::kAdd));  // they add differently to -0
  EXPECT_EQ(SingleOpProgram(Opcode::kExp, DType::kHalf), SingleOpProgram(Opcode::kExp, DType::kHalf));
  EXPECT_NE(SingleOpProgram(Opcode::kExp, DType::kHalf), SingleOpProgram(Opcode::kExp, DType::kBFloat16));
  EXPECT_EQ(CastProgram(DType::kFloat, DType::kFloat), IdentityProgram(DType::kFloat));
  EXPECT_NE(CastProgram(DType::kFloat, DType::kHalf), CastProgram(DType::kFloat, DType::kInt32));

  const Program* seen[4] = {};
  std::vector<std::thread> threads;
  for (const Program*& slot : seen) {
    threads.emplace_back([&slot] {
      for (int i = 0; i < 200; ++i) slot = SingleOpProgram(Opcode::kAtan2, DType::kDouble);
    });
  }
  for (std::thread& t : threads) t.join();
  for (const Program* s : seen) EXPECT_EQ(s, seen[0]);
}

TEST(ProgramBuilder, MisuseIsNamed) {
  auto expect = [](const char* part, auto build) {
    ProgramBuilder b;
    build(b);
    EXPECT_EQ(b.Build(), nullptr) << part;
    EXPECT_NE(b.error().find(part), std::string::npos) << b.error();
  };
  expect("Add got operands of types float and int32",
         [](ProgramBuilder& b) { b.Output(b.Apply(Opcode::kAdd, b.Input(DType::kFloat), b.Input(DType::kInt32))); });
  expect("Erf is not defined on int32",
         [](ProgramBuilder& b) { b.Output(b.Apply(Opcode::kErf, b.Input(DType::kInt32))); });
  expect("LogicalAnd is not defined on float", [](ProgramBuilder& b) {
    const auto x = b.Input(DType::kFloat);
    b.Output(b.Apply(Opcode::kLogicalAnd, x, x));
  });
  expect("Add takes 2 operands", [](ProgramBuilder& b) { b.Output(b.Apply(Opcode::kAdd, b.Input(DType::kFloat))); });
  expect("Select needs a bool condition", [](ProgramBuilder& b) {
    const auto x = b.Input(DType::kFloat);
    b.Output(b.Apply(Opcode::kSelect, x, x, x));
  });
  expect("1 to 8 outputs", [](ProgramBuilder& b) { b.Input(DType::kFloat); });
  expect("1 to 8 outputs", [](ProgramBuilder& b) {
    const auto x = b.Input(DType::kFloat);
    for (int i = 0; i < 9; ++i) b.Output(x);
  });
  expect("too many inputs", [](ProgramBuilder& b) {
    for (int i = 0; i <= Program::kMaxInputs; ++i) b.Output(b.Input(DType::kFloat));
  });
  expect("too many registers", [](ProgramBuilder& b) {
    auto x = b.Input(DType::kFloat);
    for (int i = 0; i < Program::kMaxRegisters; ++i) x = b.Apply(Opcode::kNeg, x);
    b.Output(x);
  });
}

TEST(Program, KnowsWhetherItCanFail) {
  for (Opcode op : {Opcode::kTruncateDiv, Opcode::kFloorDiv, Opcode::kFloorMod, Opcode::kTruncateMod, Opcode::kPow}) {
    EXPECT_TRUE(SingleOpProgram(op, DType::kInt32)->can_fail()) << Info(op).name;
  }
  for (Opcode op : {Opcode::kFloorDiv, Opcode::kFloorMod, Opcode::kPow}) {
    EXPECT_FALSE(SingleOpProgram(op, DType::kFloat)->can_fail()) << Info(op).name;
  }
  EXPECT_FALSE(SingleOpProgram(Opcode::kAdd, DType::kInt32)->can_fail());
}

TEST(Program, EveryOpMakesAProgramOnItsTypesAlone) {
  for (int o = 0; o < kNumOpcodes; ++o) {
    const Opcode op = static_cast<Opcode>(o);
    if (op == Opcode::kCast) continue;
    for (int t = 1; t < kNumDTypes; ++t) {
      const DType type = static_cast<DType>(t);
      const Program* p = SingleOpProgram(op, type);
      ASSERT_EQ(p != nullptr, IsDefined(op, type)) << Info(op).name << " on " << Name(type);
      if (p == nullptr) continue;
      EXPECT_EQ(p->num_inputs(), Info(op).arity);
    }
  }
  EXPECT_EQ(SingleOpProgram(Opcode::kAbs, DType::kComplex128)->output_type(0), DType::kDouble);
  EXPECT_EQ(SingleOpProgram(Opcode::kIsNan, DType::kHalf)->output_type(0), DType::kBool);
}

TEST(MergeDims, WalksTheSameElements) {
  struct Case {
    Dims shape, a, b, merged;
  };
  const Case cases[] = {
      {{2, 3, 4}, {12, 4, 1}, {12, 4, 1}, {24}},    // dense
      {{2, 3, 4}, {12, 4, 1}, {0, 0, 0}, {24}},     // a scalar
      {{2, 3, 4}, {12, 4, 1}, {0, 4, 1}, {2, 12}},  // rows repeated
      {{2, 3, 4}, {12, 4, 1}, {0, 0, 1}, {6, 4}},   // a vector repeated
      {{2, 3, 4}, {12, 4, 1}, {3, 1, 0}, {6, 4}},   // columns repeated
      {{2, 1, 4}, {4, 99, 1}, {4, 7, 1}, {8}},      // an extent of 1 has any stride
      {{1, 1}, {5, 1}, {1, 1}, {1}},                // nothing but extents of 1
      {{1, 4, 1}, {4, 1, 1}, {4, 1, 1}, {4}},
      {{2, 3}, {1, 2}, {3, 1}, {2, 3}},  // a transpose
      {{}, {}, {}, {}},
  };
  for (const Case& c : cases) {
    Dims shape = c.shape, a = c.a, b = c.b;
    Dims* strides[] = {&a, &b};
    MergeDims(&shape, strides, 2);
    EXPECT_EQ(shape.ToString(), c.merged.ToString()) << c.shape.ToString();
    ASSERT_EQ(a.rank(), shape.rank());
    auto offsets = [](const Dims& extents, const Dims& walk) {
      std::vector<int64_t> all;
      for (int64_t i = 0; i < extents.num_elements(); ++i) {
        int64_t rest = i, offset = 0;
        for (int d = extents.rank() - 1; d >= 0; --d) {
          offset += rest % extents[d] * walk[d];
          rest /= extents[d];
        }
        all.push_back(offset);
      }
      return all;
    };
    EXPECT_EQ(offsets(shape, a), offsets(c.shape, c.a)) << c.shape.ToString();
    EXPECT_EQ(offsets(shape, b), offsets(c.shape, c.b)) << c.shape.ToString();
  }
}

TEST(MergeDims, KeepsApartWhatMayNotMerge) {
  Dims shape = {2, 3, 4}, a = DenseStrides(shape);
  Dims* strides[] = {&a};
  MergeDims(&shape, strides, 1, [](int i, int j) { return !(i == 0 && j == 1); });
  EXPECT_EQ(shape.ToString(), "[2,12]");
  EXPECT_EQ(a.ToString(), "[12,1]");
}

}  // namespace
}  // namespace xpu

// Which epilogues are finished in registers, and that they give what the program gives. Which products and convolutions
// do that themselves: matmul_test and convolution_test have their results.
#include "tensorflow_plugin/backends/cpu/elementwise/chain_epilogue.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tensorflow_plugin/backends/cpu/convolution/depthwise.h"
#include "tensorflow_plugin/backends/cpu/elementwise/tile_runner.h"
#include "tensorflow_plugin/backends/cpu/simd/isa.h"

namespace xpu::cpu {
namespace {

using Reg = ProgramBuilder::Reg;

// A program over (sum, scale and offset by column, an element, one number).
struct Chain {
  std::string name;
  std::function<Reg(ProgramBuilder&, const std::vector<Reg>&)> build;
  bool exact = true;  // to the last bit
};

Reg Scaled(ProgramBuilder& b, const std::vector<Reg>& in) {
  return b.Apply(Opcode::kAdd, b.Apply(Opcode::kMul, in[0], in[1]), in[2]);
}

std::vector<Chain> Chains() {
  const auto number = [](ProgramBuilder& b, double value) { return b.Const(DType::kFloat, value); };
  return {
      {"offset", [](ProgramBuilder& b, const std::vector<Reg>& in) { return b.Apply(Opcode::kAdd, in[2], in[0]); }},
      {"difference",
       [](ProgramBuilder& b, const std::vector<Reg>& in) {
         return b.Apply(Opcode::kMul, b.Apply(Opcode::kSub, in[0], in[1]), in[4]);
       }},
      {"difference the other way round",
       [](ProgramBuilder& b, const std::vector<Reg>& in) {
         return b.Apply(Opcode::kSub, in[3], b.Apply(Opcode::kAdd, in[0], in[2]));
       }},
      {"bounds",
       [=](ProgramBuilder& b, const std::vector<Reg>& in) {
         return b.Apply(Opcode::kMinimum, b.Apply(Opcode::kMaximum, Scaled(b, in), number(b, 0)), number(b, 1.5));
       }},
      {"element first",
       [](ProgramBuilder& b, const std::vector<Reg>& in) {
         return b.Apply(Opcode::kAdd, b.Apply(Opcode::kAdd, in[3], b.Apply(Opcode::kMul, in[0], in[1])), in[2]);
       }},
      {"hard swish",
       [=](ProgramBuilder& b, const std::vector<Reg>& in) {
         const Reg x = Scaled(b, in), up = b.Apply(Opcode::kAdd, in[4], x);
         const Reg gate = b.Apply(Opcode::kMinimum, b.Apply(Opcode::kMaximum, up, number(b, 0)), number(b, 6));
         return b.Apply(Opcode::kMul, b.Apply(Opcode::kMul, number(b, 1.0 / 6), gate), x);
       }},
      {"a bound alone",
       [=](ProgramBuilder& b, const std::vector<Reg>& in) {
         return b.Apply(Opcode::kMul, b.Apply(Opcode::kMaximum, Scaled(b, in), number(b, 0.25)), in[4]);
       }},
      {"bounds the other way round",
       [=](ProgramBuilder& b, const std::vector<Reg>& in) {
         return b.Apply(Opcode::kMaximum, b.Apply(Opcode::kMinimum, Scaled(b, in), number(b, 0.5)), number(b, -0.5));
       }},
      {"a bound that is no number",
       [=](ProgramBuilder& b, const std::vector<Reg>& in) {
         const Reg up = b.Apply(Opcode::kAdd, Scaled(b, in), in[4]);
         return b.Apply(Opcode::kMaximum, up, number(b, std::numeric_limits<double>::quiet_NaN()));
       }},
      {"three bounds",
       [=](ProgramBuilder& b, const std::vector<Reg>& in) {
         const Reg low = b.Apply(Opcode::kMaximum, b.Apply(Opcode::kAdd, Scaled(b, in), in[4]), number(b, -0.5));
         return b.Apply(Opcode::kMinimum, b.Apply(Opcode::kMinimum, low, number(b, 1)), number(b, 0.75));
       }},
      {"each operand",
       [](ProgramBuilder& b, const std::vector<Reg>& in) {
         const Reg sum =
             b.Apply(Opcode::kSub, b.Apply(Opcode::kAdd, b.Apply(Opcode::kMul, in[0], in[3]), in[4]), in[2]);
         const Reg high = b.Apply(Opcode::kMaximum, b.Apply(Opcode::kMinimum, sum, in[3]), in[1]);
         return b.Apply(Opcode::kMinimum, b.Apply(Opcode::kSub, high, in[4]), in[2]);
       }},
      {"leaky rectifier",
       [=](ProgramBuilder& b, const std::vector<Reg>& in) {
         const Reg x = Scaled(b, in);
         return b.Apply(Opcode::kMaximum, x, b.Apply(Opcode::kMul, x, number(b, 0.25)));
       }},
      {"a maximum with what is kept",
       [](ProgramBuilder& b, const std::vector<Reg>& in) {
         const Reg x = Scaled(b, in);
         return b.Apply(Opcode::kMaximum, b.Apply(Opcode::kSub, x, in[1]), x);
       }},
      {"swish",
       [](ProgramBuilder& b, const std::vector<Reg>& in) {
         const Reg x = Scaled(b, in);
         return b.Apply(Opcode::kMul, b.Apply(Opcode::kSigmoid, x), x);
       },
       false},
      {"gelu",
       [=](ProgramBuilder& b, const std::vector<Reg>& in) {
         const Reg x = Scaled(b, in);
         const Reg y = b.Apply(Opcode::kMul, b.Apply(Opcode::kNeg, x), number(b, 0.70710678));
         return b.Apply(Opcode::kMul, x, b.Apply(Opcode::kMul, b.Apply(Opcode::kErfc, y), number(b, 0.5)));
       },
       false},
  };
}

// The program of a chain over `rows` rows of `columns` elements.
struct Case {
  Case(const Chain& chain, int64_t rows, int64_t columns) {
    ProgramBuilder builder;
    std::vector<Reg> in;
    for (int i = 0; i < 5; ++i) in.push_back(builder.Input(DType::kFloat));
    builder.Output(chain.build(builder, in));
    desc.program = builder.Build();
    desc.shape = {rows, columns};
    desc.in_strides[0] = desc.in_strides[3] = {columns, 1};
    desc.in_strides[1] = desc.in_strides[2] = {0, 1};
    desc.in_strides[4] = {0, 0};
    uint32_t state = 7;
    for (int64_t n : {rows * columns, columns, columns, rows * columns, int64_t{1}}) {
      std::vector<float> values;
      for (int64_t i = 0; i < n; ++i) {
        state = state * 1664525 + 1013904223;
        values.push_back(static_cast<float>(state >> 8) / (1 << 22) - 2);
      }
      data.push_back(std::move(values));
    }
    if (rows * columns > 2) {  // among the sums
      data[0][0] = std::numeric_limits<float>::quiet_NaN();
      data[0][1] = std::numeric_limits<float>::infinity();
      data[0][rows * columns - 1] = -std::numeric_limits<float>::infinity();
    }
  }

  Args ArgsTo(float* out) const {
    Args args{};
    args.in[0] = out;
    for (int i = 1; i < 5; ++i) args.in[i] = data[i].data();
    args.out[0] = out;
    return args;
  }

  ElementwiseDesc desc;
  std::vector<std::vector<float>> data;
};

// Applies a chain to the rows from `first` on, and compares with the program.
void ExpectWhatTheProgramGives(const Chain& chain, int64_t rows, int64_t columns, int64_t first) {
  const Case test(chain, rows, columns);
  std::vector<float> want = test.data[0], got = test.data[0];
  const ElementwiseDesc merged = Merged(test.desc);
  const Args to_want = test.ArgsTo(want.data()), to_got = test.ArgsTo(got.data());
  const int64_t begin = first * columns, n = (rows - first) * columns;
  TileRunner(merged, to_want).Run(begin, n);
  ScratchFrame frame;
  ChainEpilogue made;
  ASSERT_TRUE(MakeChainEpilogue(merged, to_got, &frame, &made)) << chain.name;
  ASSERT_EQ(made.columns, rows == 1 ? 0 : columns) << chain.name;
  ApplyChainInPlace(made, begin, n, got.data());
  for (size_t i = 0; i < want.size(); ++i) {
    const bool same = std::isnan(want[i]) ? std::isnan(got[i])
                      : chain.exact ? got[i] == want[i]
                                    : got[i] == want[i] || std::abs(got[i] - want[i]) <= 1e-6f * std::abs(want[i]);
    ASSERT_TRUE(same) << chain.name << " of " << rows << " rows of " << columns << ", " << Name(ActiveIsa())
                      << ": element " << i << " is " << got[i] << ", expected " << want[i];
  }
}

TEST(ChainEpilogue, GivesWhatTheProgramGives) {
  for (Isa isa : {Isa::kBaseline, Isa::kAvx2, Isa::kAvx512}) {
    if (!HasIsa(isa)) continue;
    const ScopedIsa use(isa);
    for (const Chain& chain : Chains()) {
      for (int64_t columns : {2, 3, 8, 15, 16, 17, 33, 64, 100, 129}) {
        ExpectWhatTheProgramGives(chain, 7, columns, 2);
        // Columns of the only row are elements.
        ExpectWhatTheProgramGives(chain, 1, columns, 0);
      }
    }
  }
}

// 1 / (1 + exp(-x)) within 3 units in the last place where it is a normal number, and 0 or 1 beyond.
TEST(ChainEpilogue, SigmoidIsExact) {
  ProgramBuilder builder;
  const Reg in = builder.Input(DType::kFloat);
  builder.Output(builder.Apply(Opcode::kSigmoid, in));
  std::vector<float> x;
  for (float v = -100; v <= 100; v += 0.0137f) x.push_back(v);
  for (float v : {0.0f, 1e-30f, -1e-30f, 3e38f, -3e38f}) x.push_back(v);
  x.push_back(std::numeric_limits<float>::infinity());
  x.push_back(-std::numeric_limits<float>::infinity());
  const int64_t n = static_cast<int64_t>(x.size());
  for (Isa isa : {Isa::kBaseline, Isa::kAvx2, Isa::kAvx512}) {
    if (!HasIsa(isa)) continue;
    const ScopedIsa use(isa);
    std::vector<float> got = x;
    ElementwiseDesc desc;
    desc.program = builder.Build();
    desc.shape = {n};
    desc.in_strides[0] = {1};
    Args args{};
    args.in[0] = args.out[0] = got.data();
    ScratchFrame frame;
    ChainEpilogue made;
    ASSERT_TRUE(MakeChainEpilogue(desc, args, &frame, &made));
    ApplyChainInPlace(made, 0, n, got.data());
    for (int64_t i = 0; i < n; ++i) {
      const double want = 1 / (1 + std::exp(-static_cast<double>(x[i])));
      const double allowed = std::max(want * 3 * std::numeric_limits<float>::epsilon(), 2e-38);
      ASSERT_NEAR(got[i], want, allowed) << "of " << x[i] << ", " << Name(isa);
    }
    ASSERT_EQ(got[n - 1], 0) << Name(isa);
    ASSERT_EQ(got[n - 2], 1) << Name(isa);
  }
}

TEST(ChainEpilogue, DeniesOtherPrograms) {
  ScratchFrame frame;
  ChainEpilogue made;
  const auto accepts = [&](const std::function<void(ProgramBuilder&, const std::vector<Reg>&)>& build) {
    ProgramBuilder builder;
    std::vector<Reg> in;
    for (int i = 0; i < 5; ++i) in.push_back(builder.Input(DType::kFloat));
    build(builder, in);
    Case test(Chains()[0], 4, 6);
    test.desc.program = builder.Build();
    std::vector<float> out(24);
    return MakeChainEpilogue(Merged(test.desc), test.ArgsTo(out.data()), &frame, &made);
  };
  const auto apply = [](Opcode op, int a, int b) {
    return
        [=](ProgramBuilder& builder, const std::vector<Reg>& in) { builder.Output(builder.Apply(op, in[a], in[b])); };
  };
  EXPECT_TRUE(accepts(apply(Opcode::kAdd, 0, 1)));
  EXPECT_TRUE(accepts(apply(Opcode::kSub, 0, 3)));
  EXPECT_TRUE(accepts(apply(Opcode::kSub, 1, 0)));  // the other way round
  EXPECT_FALSE(accepts(apply(Opcode::kDiv, 0, 1)));
  EXPECT_FALSE(accepts(apply(Opcode::kMul, 1, 2)));                         // of no sum
  EXPECT_FALSE(accepts([](ProgramBuilder& b, const std::vector<Reg>& in) {  // two outputs
    b.Output(b.Apply(Opcode::kAdd, in[0], in[1]));
    b.Output(in[0]);
  }));
  EXPECT_FALSE(accepts([](ProgramBuilder& b, const std::vector<Reg>& in) {  // the sum is needed a third time
    const Reg x = b.Apply(Opcode::kMul, b.Apply(Opcode::kSigmoid, in[0]), in[0]);
    b.Output(b.Apply(Opcode::kAdd, x, in[0]));
  }));
  EXPECT_FALSE(accepts([](ProgramBuilder& b, const std::vector<Reg>& in) {  // a product of other inputs
    b.Output(b.Apply(Opcode::kAdd, in[0], b.Apply(Opcode::kMul, in[1], in[2])));
  }));
  // By row, or an element that is overwritten before it is read.
  Case test(Chains()[0], 4, 6);
  std::vector<float> out(24);
  test.desc.in_strides[2] = {1, 0};
  EXPECT_FALSE(MakeChainEpilogue(Merged(test.desc), test.ArgsTo(out.data()), &frame, &made));
  test.desc.in_strides[2] = {6, 1};
  Args args = test.ArgsTo(out.data());
  args.in[2] = args.out[0];
  EXPECT_FALSE(MakeChainEpilogue(Merged(test.desc), args, &frame, &made));
}

// Padding is no operand: an infinite weight that meets nothing else leaves no NaN.
TEST(ChainEpilogue, DepthwisePaddingIsNoOperand) {
  for (Isa isa : {Isa::kAvx2, Isa::kAvx512}) {
    if (!HasIsa(isa)) continue;
    const ScopedIsa use(isa);
    ConvolutionDesc d;
    d.batch = d.in_channels = d.out_channels = d.groups = 1;
    d.input[0] = d.output[0] = 2;
    d.input[1] = d.output[1] = 9;
    for (int i = 0; i < 2; ++i) d.filter[i] = 3, d.pad_before[i] = d.pad_after[i] = 1;
    ASSERT_TRUE(IsDepthwise(d, Machine::Here(1)));
    std::vector<float> x(18, 1), w(9, 1), y(18);
    w[3] = std::numeric_limits<float>::infinity();  // left of the pixel in the middle
    Args args{};
    args.in[0] = x.data();
    args.in[1] = w.data();
    args.out[0] = y.data();
    std::optional<FusedEpilogue> none;
    RunDepthwise(d, args, host_runtime::ThreadTeam(1), &none);
    for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i], i % 9 == 0 ? 4 : w[3]) << i;
  }
}

}  // namespace
}  // namespace xpu::cpu

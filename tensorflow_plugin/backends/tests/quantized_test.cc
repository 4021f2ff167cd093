#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "tensorflow_plugin/backends/tests/compare.h"

namespace xpu::testing {
namespace {

// Weights of 4 bits, and the matrix [k,n] that they stand for, by code of the test's own.
struct Case {
  Case(Halves halves, int64_t k, int64_t n, int64_t group) : halves(halves), k(k), n(n), group(group) {
    groups = (k + group - 1) / group;
    size = halves == Halves::kAcross ? k * ((n + 1) / 2)
           : halves == Halves::kDown ? (k + 1) / 2 * n
                                     : n * ((k + 1) / 2);
    bytes = Random(DType::kInt8, size, 1, -128, 128);
    Fill(Random(DType::kFloat, groups * n, 2, -2, 2), Random(DType::kInt8, groups * n, 3, -8, 8));
  }
  void Fill(const Array& with_scales, const Array& with_zeros) {
    scales = with_scales;
    zeros = with_zeros;
    w = Array(DType::kFloat, k * n);
    for (int64_t i = 0; i < k; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        int64_t byte = 0;
        bool high = false;
        switch (halves) {
          case Halves::kAcross:
            byte = i * ((n + 1) / 2) + j / 2, high = j % 2 == 1;
            break;
          case Halves::kDown:
            byte = i / 2 * n + j, high = i % 2 == 1;
            break;
          case Halves::kTurned:
            byte = j * ((k + 1) / 2) + i / 2, high = i % 2 == 1;
            break;
        }
        const auto bits = static_cast<uint8_t>(bytes.as<int8_t>()[byte]);
        int weight = high ? bits / 16 : bits % 16;
        if (weight > 7) weight -= 16;
        const int64_t scale = halves == Halves::kTurned ? j * groups + i / group : i / group * n + j;
        w.as<float>()[i * n + j] = static_cast<float>(weight - zeros.as<int8_t>()[scale]) * scales.as<float>()[scale];
      }
    }
  }

  FindWeightsDesc Find() const {
    FindWeightsDesc d;
    d.k = k, d.n = n, d.groups = groups, d.bytes = size;
    return d;
  }
  WeightMatMulDesc Product(int64_t m, int64_t gap = 0) const {
    WeightMatMulDesc d;
    d.m = m, d.k = k, d.n = n, d.lda = gap == 0 ? 0 : k + gap, d.groups = groups, d.bytes = size;
    return d;
  }
  Array Form() const {
    return Values(DType::kInt64, std::vector<double>{static_cast<double>(halves), static_cast<double>(group)});
  }
  std::vector<Array> Inputs(const Array& a) const { return {a, bytes, scales, zeros, Form()}; }
  std::string what() const {
    return errors::Concat("form ", static_cast<int>(halves), ", ", k, "x", n, ", groups of ", group);
  }

  Halves halves;
  int64_t k, n, group, groups, size;
  Array bytes, scales, zeros, w;
};

constexpr Halves kHalves[] = {Halves::kAcross, Halves::kDown, Halves::kTurned};

// Columns and rows fill bytes, vectors and groups, or do not.
std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (Halves halves : kHalves) {
    for (const auto& [k, n, group] : {std::array<int64_t, 3>{128, 64, 128},
                                      {256, 96, 128},
                                      {70, 33, 32},
                                      {33, 70, 33},
                                      {7, 5, 2},
                                      {130, 31, 128},
                                      {96, 200, 16},
                                      {2, 2, 2},
                                      {1, 3, 1},
                                      {301, 40, 10},
                                      {512, 130, 512}}) {
      cases.emplace_back(halves, k, n, group);
    }
  }
  return cases;
}

TEST(FindWeights, Forms) {
  for (const Case& c : Cases()) {
    Array transposed(DType::kFloat, c.k * c.n);
    for (int64_t i = 0; i < c.k * c.n; ++i) {
      transposed.as<float>()[i % c.n * c.k + i / c.n] = c.w.as<float>()[i];
    }
    FindWeightsDesc d = c.Find();
    if (c.k <= 2 || c.n == 1) continue;  // several forms are the same
    ExpectByHand(d, {c.w, c.bytes, c.scales, c.zeros}, {{DType::kInt64, 2}}, {{c.Form()}}, c.what());
    d.transposed = true;
    ExpectByHand(d, {transposed, c.bytes, c.scales, c.zeros}, {{DType::kInt64, 2}}, {{c.Form()}}, c.what());
  }
}

TEST(FindWeights, NoneForAnotherMatrix) {
  const Want none{{Values(DType::kInt64, {0, 0})}, {}, Code::kInvalidArgument, "gives the matrix of"};
  for (Halves halves : kHalves) {
    const Case c(halves, 70, 34, 32);
    for (int64_t at : {int64_t{0}, 35 * c.n + 7, c.k * c.n - 1}) {
      Array other = c.w;
      other.as<float>()[at] = std::nextafter(other.as<float>()[at], 100.0f);
      ExpectByHand(c.Find(), {other, c.bytes, c.scales, c.zeros}, {{DType::kInt64, 2}}, none, c.what());
    }
    // No size of a group makes so many groups.
    FindWeightsDesc d = c.Find();
    d.groups = 69;
    ExpectByHand(d, {c.w, c.bytes, Random(DType::kFloat, 69 * c.n, 1), Random(DType::kInt8, 69 * c.n, 1)},
                 {{DType::kInt64, 2}}, none, "many groups");
  }
}

TEST(WeightMatMul, ByHand) {
  Case c(Halves::kAcross, 3, 3, 2);
  // Weights: 1 2 -1 / -8 7 0 / 0 1 5. The second halves of the last bytes of rows are no column's.
  c.bytes = Values(DType::kInt8, std::vector<double>{0x21, 0x0f, 0x78, -128, 0x10, 0x05});
  c.Fill(Values(DType::kFloat, {1, 2, 3, 4, 5, 6}), Values(DType::kInt8, {0, 1, -1, 1, 0, 2}));
  // w: 1 2 0 / -8 12 3 / -4 5 18
  const Array a = Values(DType::kFloat, {1, 2, 3, 0, 1, -1});
  ExpectByHand(c.Product(2), c.Inputs(a), {{DType::kFloat, 6}}, {{Values(DType::kFloat, {-27, 41, 60, -4, 7, -15})}},
               "by hand");
}

Want AsFloats(const Case& c, const Array& a, int64_t m, int64_t lda) {
  MatMulDesc d;
  d.type = DType::kDouble;
  d.m = m, d.k = c.k, d.n = c.n, d.lda = lda;
  const std::vector<Output> out = {{DType::kDouble, m * c.n}};
  Want want{AsTheReference(d, {Widened(a), Widened(c.w)}, out).out};
  const Array magnitudes = AsTheReference(d, {Magnitudes(a), Magnitudes(c.w)}, out).out[0];
  want.bounds = {SumBound(magnitudes, static_cast<double>(c.k), DType::kFloat)};
  return want;
}

TEST(WeightMatMul, Sizes) {
  for (const Case& c : Cases()) {
    for (int64_t m : {0, 1, 2, 3, 4, 5, 16, 17, 40}) {
      const Array a = Random(DType::kFloat, m * c.k, 5);
      Expect(c.Product(m), c.Inputs(a), {{DType::kFloat, m * c.n}}, AsFloats(c, a, m, 0),
             errors::Concat(c.what(), ", rows ", m));
    }
    const Array a = Random(DType::kFloat, 3 * (c.k + 3), 6);
    Expect(c.Product(3, 3), c.Inputs(a), {{DType::kFloat, 3 * c.n}}, AsFloats(c, a, 3, c.k + 3), c.what() + ", gaps");
  }
}

// Whole numbers, whose sums are exact. Parts of several threads, and panels.
TEST(WeightMatMul, LargeSizesExactly) {
  for (Halves halves : kHalves) {
    for (const auto& [m, k, n] :
         {std::array<int64_t, 3>{1, 1024, 700}, {3, 2048, 321}, {9, 512, 514}, {20, 1056, 1030}}) {
      Case c(halves, k, n, 128);
      c.Fill(Whole(DType::kFloat, c.groups * n, 2, 2), c.zeros);
      const Array a = Whole(DType::kFloat, m * k, 5, 3);
      const std::vector<Array> want = AsFloats(c, a, m, 0).out;
      Expect(c.Product(m), c.Inputs(a), {{DType::kFloat, m * n}}, {want}, errors::Concat(c.what(), ", rows ", m));
    }
  }
}

// A number that is none stays in its row, and an infinite one times zero is none.
TEST(WeightMatMul, NumbersThatAreNone) {
  const float infinite = std::numeric_limits<float>::infinity(), none = std::numeric_limits<float>::quiet_NaN();
  for (Halves halves : kHalves) {
    const Case c(halves, 66, 37, 32);
    for (int64_t m : {2, 20}) {
      Array a = Whole(DType::kFloat, m * c.k, 5, 3);
      a.as<float>()[3] = infinite;
      a.as<float>()[c.k + 65] = none;
      Want want = AsFloats(c, a, m, 0);
      for (int64_t j = 0; j < c.n; ++j) {
        const float w = c.w.as<float>()[3 * c.n + j];
        EXPECT_EQ(std::isnan(RealAt(want.out[0], j)), w == 0);
        EXPECT_TRUE(std::isnan(RealAt(want.out[0], c.n + j)));
      }
      Expect(c.Product(m), c.Inputs(a), {{DType::kFloat, m * c.n}}, want, c.what());
    }
  }
}

TEST(WeightMatMul, Epilogues) {
  ProgramBuilder builder;
  const auto sum = builder.Input(DType::kFloat), bias = builder.Input(DType::kFloat), x = builder.Input(DType::kFloat);
  const auto moved = builder.Apply(Opcode::kAdd, sum, bias);
  builder.Output(builder.Apply(Opcode::kMaximum, moved, x));
  builder.Output(builder.Apply(Opcode::kGreater, moved, x));
  const Program* const program = builder.Build();
  for (Halves halves : kHalves) {
    for (int64_t m : {1, 4, 21}) {
      Case c(halves, 640, 270, 64);
      c.Fill(Whole(DType::kFloat, c.groups * c.n, 2, 2), c.zeros);
      WeightMatMulDesc d = c.Product(m);
      d.epilogue.program = program;
      d.epilogue.shape = {m, c.n};
      d.epilogue.in_strides[1] = {0, 1};
      d.epilogue.in_strides[2] = {c.n, 1};
      std::vector<Array> in = c.Inputs(Whole(DType::kFloat, m * c.k, 5, 3));
      in.push_back(Whole(DType::kFloat, c.n, 6, 9));
      in.push_back(Whole(DType::kFloat, m * c.n, 7, 200));
      ExpectAsTheReference(d, in, {{DType::kFloat, m * c.n}, {DType::kBool, m * c.n}}, c.what());
    }
  }
}

// A form of other weights is refused before anything is read.
TEST(WeightMatMul, WrongForms) {
  const Case c(Halves::kDown, 64, 34, 32);
  const Array a = Random(DType::kFloat, c.k, 5);
  for (const auto& form : {std::array<double, 2>{3, 32}, {-1, 32}, {1, 0}, {1, 64}, {1, 16}, {1, -32}}) {
    std::vector<Array> in = c.Inputs(a);
    in[4] = Values(DType::kInt64, std::vector<double>{form[0], form[1]});
    const std::vector<Output> out = {{DType::kFloat, c.n}};
    for (const Variant& variant : Variants()) {
      const UseVariant use(variant);
      const Outcome outcome = variant.device->Run(c.Product(1), in, out, Waiting::kAwaited);
      if (!outcome.launched) continue;
      EXPECT_EQ(outcome.status.code(), Code::kInvalidArgument) << form[0] << ", " << form[1];
      EXPECT_EQ(outcome.trespass, "");
    }
  }
}

Array Number(double value) { return Values(DType::kFloat, std::vector<double>{value}); }

std::vector<Array> Inputs(const Array& x, double epsilon, double levels, double most, double least) {
  return {x, Number(epsilon), Number(levels), Number(most), Number(least)};
}

QuantizeRowsDesc Make(int64_t rows, int64_t cols) {
  QuantizeRowsDesc d;
  d.rows = rows, d.cols = cols;
  return d;
}

std::vector<Output> Outputs(const QuantizeRowsDesc& d) {
  return {{DType::kInt8, d.rows * d.cols}, {DType::kFloat, d.rows}};
}

TEST(QuantizeRows, ByHand) {
  const QuantizeRowsDesc d = Make(4, 3);
  // Scales of 32, 16, 64 and 128. Halves go to even numbers; the last but one of row 1 is beyond the least.
  const Array x = Values(DType::kFloat, {4, -1.25, 0.015625, 8, -7.96875, 0.09375, 2, -1, 0.0234375, 0, 0, 0});
  const Want want{{Values(DType::kInt8, {120, -40, 0, 120, -100, 2, 120, -64, 2, 0, 0, 0}),
                   Values(DType::kFloat, {32, 16, 64, std::numeric_limits<double>::infinity()})}};
  std::vector<Array> in = Inputs(x, 0, 128, 120, -100);
  Want all = want;
  // Nothing times infinity is a NaN, which becomes 0.
  ExpectByHand(d, in, Outputs(d), all, "by hand");
  in[1] = Number(1);
  all.out = {Values(DType::kInt8, {102, -32, 0, 114, -100, 1, 85, -43, 1, 0, 0, 0}),
             Values(DType::kFloat, {128.0 / 5, 128.0 / 9, 128.0 / 3, 128})};
  ExpectByHand(d, in, Outputs(d), all, "with an epsilon");
}

TEST(QuantizeRows, Sizes) {
  for (const auto& [rows, cols] :
       {std::array<int64_t, 2>{0, 5}, {1, 1}, {3, 7}, {1, 512}, {5, 1000}, {300, 700}, {64, 2049}}) {
    const QuantizeRowsDesc d = Make(rows, cols);
    ExpectAsTheReference(d, Inputs(Random(DType::kFloat, rows * cols, 1), 1e-7, 127, 127, -127), Outputs(d), "sizes");
  }
}

// In each row a number that is none, an infinite one, or one that is almost.
TEST(QuantizeRows, NumbersThatAreNone) {
  const QuantizeRowsDesc d = Make(4, 70);
  Array x = Random(DType::kFloat, d.rows * d.cols, 1);
  x.as<float>()[69] = std::numeric_limits<float>::quiet_NaN();
  x.as<float>()[d.cols + 3] = -std::numeric_limits<float>::infinity();
  x.as<float>()[2 * d.cols + 3] = std::numeric_limits<float>::max();
  const std::vector<Array> out = ExpectAsTheReference(d, Inputs(x, 1e-7, 127, 127, -127), Outputs(d), "none");
  for (int64_t i = 0; i < 2 * d.cols; ++i) EXPECT_EQ(RealAt(out[0], i), 0);
  EXPECT_NE(RealAt(out[1], 0), RealAt(out[1], 0));
  EXPECT_EQ(RealAt(out[1], 1), 0);
  EXPECT_EQ(RealAt(out[0], 2 * d.cols + 3), 127);
}

// Beyond 8 bits the lowest ones stay, as of a cast.
TEST(QuantizeRows, MoreLevelsThanFit) {
  const QuantizeRowsDesc d = Make(2, 40);
  ExpectAsTheReference(d, Inputs(Random(DType::kFloat, 80, 1), 0, 1000, 900, -2000), Outputs(d), "more levels");
  ExpectAsTheReference(d, Inputs(Random(DType::kFloat, 80, 1), 0, 1e12, 1e12, -1e12), Outputs(d), "many levels");
}

}  // namespace
}  // namespace xpu::testing

// Every instruction: by hand, on every type, at special values, and the accuracy of the vectorised functions.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "tensorflow_plugin/backends/tests/elementwise_testing.h"

namespace xpu::testing {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");

// Both backends must give `want` for literal operands.
void Expect(EOp op, DType type, const std::vector<std::initializer_list<double>>& operands,
            std::initializer_list<double> want) {
  const Program* program = SingleOpProgram(op, type);
  std::vector<Array> inputs;
  for (size_t i = 0; i < operands.size(); ++i) inputs.push_back(Values(program->inputs()[i], operands[i]));
  const std::string what = std::string(Info(op).name) + " of " + Name(type);
  ForEachIsa([&] {
    const auto got = Compare(Dense(program, inputs[0].size()), inputs, 1, what);
    ExpectClose(got[0], Values(program->output_type(0), want), ToleranceFor(program->output_type(0)),
                what + " by hand");
  });
}

void ExpectCast(DType from, DType to, std::initializer_list<double> x, std::initializer_list<double> want) {
  const Program* program = CastProgram(from, to);
  const std::string what = std::string("Cast of ") + Name(from) + " to " + Name(to);
  ForEachIsa([&] {
    const auto got = Compare(Dense(program, static_cast<int64_t>(x.size())), {Values(from, x)}, 0, what);
    ExpectClose(got[0], Values(to, want), {}, what + " by hand");
  });
}

constexpr DType kFloats[] = {DType::kHalf, DType::kBFloat16, DType::kFloat, DType::kDouble};
constexpr DType kSigned[] = {DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64};

TEST(Elementwise, FloatsByHand) {
  for (DType t : kFloats) {
    Expect(EOp::kNeg, t, {{1, -2, 0, kInf}}, {-1, 2, 0, -kInf});
    Expect(EOp::kAbs, t, {{1, -2, -kInf, kNan}}, {1, 2, kInf, kNan});
    Expect(EOp::kSign, t, {{3, -2, 0, kNan, -kInf}}, {1, -1, 0, kNan, -1});
    Expect(EOp::kReciprocal, t, {{2, -4, 0, kInf}}, {0.5, -0.25, kInf, 0});
    Expect(EOp::kSquare, t, {{3, -2}}, {9, 4});
    Expect(EOp::kSqrt, t, {{9, 0, -1, kInf}}, {3, 0, kNan, kInf});
    Expect(EOp::kRsqrt, t, {{4, 0, -1, kInf}}, {0.5, kInf, kNan, 0});
    Expect(EOp::kExp, t, {{0, 1, -kInf, kInf, kNan}}, {1, 2.718281828459045, 0, kInf, kNan});
    Expect(EOp::kExpm1, t, {{0, 1, -kInf, kInf}}, {0, 1.718281828459045, -1, kInf});
    Expect(EOp::kLog, t, {{1, 0, -1, kInf, kNan, 8}}, {0, -kInf, kNan, kInf, kNan, 2.0794415416798357});
    Expect(EOp::kLog1p, t, {{0, -1, -2, kInf, 1}}, {0, -kInf, kNan, kInf, 0.6931471805599453});
    Expect(EOp::kTanh, t, {{0, 1, kInf, -kInf, kNan}}, {0, 0.7615941559557649, 1, -1, kNan});
    Expect(EOp::kSigmoid, t, {{0, kInf, -kInf, 2}}, {0.5, 1, 0, 0.8807970779778823});
    Expect(EOp::kErf, t, {{0, 1, -kInf, kInf, kNan}}, {0, 0.8427007929497149, -1, 1, kNan});
    Expect(EOp::kErfc, t, {{0, 1, -kInf, kInf}}, {1, 0.15729920705028513, 2, 0});
    Expect(EOp::kErfinv, t, {{0, 0.5, 1, -1, 2}}, {0, 0.4769362762044699, kInf, -kInf, kNan});
    Expect(EOp::kLgamma, t, {{1, 3, 0.5, 0, -kInf}}, {0, 0.6931471805599453, 0.5723649429247001, kInf, kInf});
    Expect(EOp::kDigamma, t, {{1, 0, -1, -1.5, kInf}}, {-0.5772156649015329, kNan, kNan, 0.7031566406452432, kInf});
    Expect(EOp::kSin, t, {{0, 1, kInf}}, {0, 0.8414709848078965, kNan});
    Expect(EOp::kCos, t, {{0, 1, kNan}}, {1, 0.5403023058681398, kNan});
    Expect(EOp::kCeil, t, {{1.5, -1.5}}, {2, -1});
    Expect(EOp::kFloor, t, {{1.5, -1.5}}, {1, -2});
    Expect(EOp::kRint, t, {{0.5, 1.5, 2.5, -0.5}}, {0, 2, 2, 0});
    Expect(EOp::kIsNan, t, {{0, kNan, kInf}}, {0, 1, 0});
    Expect(EOp::kIsInf, t, {{0, kNan, -kInf}}, {0, 0, 1});
    Expect(EOp::kIsFinite, t, {{0, kNan, -kInf}}, {1, 0, 0});
    Expect(EOp::kAdd, t, {{1, kInf}, {2, -kInf}}, {3, kNan});
    Expect(EOp::kSub, t, {{1}, {2}}, {-1});
    Expect(EOp::kMul, t, {{3, 0}, {-2, kInf}}, {-6, kNan});
    Expect(EOp::kDiv, t, {{1, 1, 0}, {4, 0, 0}}, {0.25, kInf, kNan});
    Expect(EOp::kFloorDiv, t, {{5, -5, 1}, {3, 3, 0}}, {1, -2, kInf});
    Expect(EOp::kFloorMod, t, {{5, -5, 5, -5, 1, 1}, {3, 3, -3, -3, kInf, 0}}, {2, 1, -1, -2, 1, kNan});
    Expect(EOp::kTruncateMod, t, {{5, -5, 5}, {3, 3, -3}}, {2, -2, 2});
    Expect(EOp::kMaximum, t, {{1, kNan, 1, -kInf}, {2, 1, kNan, 3}}, {2, kNan, kNan, 3});
    Expect(EOp::kMinimum, t, {{1, kNan, 1, -kInf}, {2, 1, kNan, 3}}, {1, kNan, kNan, -kInf});
    Expect(EOp::kPow, t, {{2, 3, -2, -8, 0, kNan, 2}, {3, 2, 3, 0.5, 0, 0, -1}}, {8, 9, -8, kNan, 1, 1, 0.5});
    Expect(EOp::kAtan2, t, {{0, 1}, {-1, 0}}, {3.141592653589793, 1.5707963267948966});
    Expect(EOp::kEqual, t, {{1, kNan, 2}, {1, kNan, 3}}, {1, 0, 0});
    Expect(EOp::kNotEqual, t, {{1, kNan, 2}, {1, kNan, 3}}, {0, 1, 1});
    Expect(EOp::kLess, t, {{1, 2, kNan}, {2, 2, 1}}, {1, 0, 0});
    Expect(EOp::kLessEqual, t, {{1, 2, kNan}, {2, 2, 1}}, {1, 1, 0});
    Expect(EOp::kGreater, t, {{3, 2, kNan}, {2, 2, 1}}, {1, 0, 0});
    Expect(EOp::kGreaterEqual, t, {{3, 2, kNan}, {2, 2, 1}}, {1, 1, 0});
    Expect(EOp::kSelect, t, {{1, 0}, {5, 6}, {7, 8}}, {5, 8});
  }
}

// Divisions of 64 bits take one of two ways, by the size of the operands of a block.
TEST(Elementwise, DivisionsOfEverySize) {
  constexpr int64_t n = 2000;
  for (EOp op : {EOp::kTruncateDiv, EOp::kTruncateMod, EOp::kFloorDiv, EOp::kFloorMod}) {
    for (DType t : {DType::kInt8, DType::kInt32, DType::kUint32, DType::kInt64, DType::kUint64}) {
      const Program* program = SingleOpProgram(op, t);
      const int bits = static_cast<int>(SizeOf(t)) * 8 - 2;
      for (int x_bits : {6, 30, 51, 52, 62}) {
        for (int y_bits : {1, 6, 30, 51, 52, 62}) {
          if (x_bits > bits || y_bits > bits) continue;
          const double x = std::ldexp(1.0, x_bits), y = std::ldexp(1.0, y_bits);
          const bool is_signed = ClassOf(t) == kI;
          for (int sign : {1, -1}) {
            if (sign < 0 && !is_signed) continue;
            const Array divisors = sign > 0 ? Random(t, n, 2, 1, y) : Random(t, n, 2, -y, -1);
            const std::string what = std::string(Info(op).name) + " of " + Name(t) + ", " + std::to_string(x_bits) +
                                     " by " + std::to_string(y_bits) + " bits";
            ForEachIsa(
                [&] { Compare(Dense(program, n), {Random(t, n, 1, is_signed ? -x : 0, x), divisors}, 0, what); });
          }
        }
      }
    }
  }
}

TEST(Elementwise, IntegersByHand) {
  for (DType t : kSigned) {
    Expect(EOp::kNeg, t, {{1, -2}}, {-1, 2});
    Expect(EOp::kAbs, t, {{1, -2}}, {1, 2});
    Expect(EOp::kSign, t, {{3, -2, 0}}, {1, -1, 0});
    Expect(EOp::kBitwiseNot, t, {{0, 5}}, {-1, -6});
    Expect(EOp::kTruncateDiv, t, {{7, -7, 7}, {2, 2, -2}}, {3, -3, -3});
    Expect(EOp::kFloorDiv, t, {{7, -7, 7, -6}, {2, 2, -2, 2}}, {3, -4, -4, -3});
    Expect(EOp::kFloorMod, t, {{7, -7, 7, -7}, {3, 3, -3, -3}}, {1, 2, -2, -1});
    Expect(EOp::kTruncateMod, t, {{7, -7, 7}, {3, 3, -3}}, {1, -1, 1});
    Expect(EOp::kPow, t, {{2, -3, 5, 0}, {5, 3, 0, 0}}, {32, -27, 1, 1});
    Expect(EOp::kRightShift, t, {{-8, -8, -8, 5}, {1, -3, 100, 1}}, {-4, -8, -1, 2});
    Expect(EOp::kLeftShift, t, {{1, 3}, {2, -1}}, {4, 3});
    // The one quotient that overflows.
    const double lowest = -std::ldexp(1.0, static_cast<int>(SizeOf(t)) * 8 - 1);
    Expect(EOp::kTruncateDiv, t, {{lowest}, {-1}}, {lowest});
    Expect(EOp::kFloorDiv, t, {{lowest}, {-1}}, {lowest});
    Expect(EOp::kFloorMod, t, {{lowest}, {-1}}, {0});
    Expect(EOp::kNeg, t, {{lowest}}, {lowest});
    Expect(EOp::kAbs, t, {{lowest}}, {lowest});
  }
  Expect(EOp::kAdd, DType::kInt8, {{127}, {1}}, {-128});
  Expect(EOp::kMul, DType::kInt32, {{65536}, {65536}}, {0});
  Expect(EOp::kSub, DType::kUint8, {{1}, {2}}, {255});
  Expect(EOp::kSquare, DType::kUint16, {{65535}}, {1});
  Expect(EOp::kMaximum, DType::kUint8, {{200}, {100}}, {200});
  Expect(EOp::kMinimum, DType::kUint64, {{200}, {100}}, {100});
  Expect(EOp::kLess, DType::kUint32, {{1}, {4294967295.0}}, {1});
  Expect(EOp::kLeftShift, DType::kInt32, {{1, 1}, {31, 40}}, {-2147483648.0, -2147483648.0});
  Expect(EOp::kRightShift, DType::kUint8, {{255, 255}, {1, 9}}, {127, 1});
  Expect(EOp::kBitwiseAnd, DType::kInt32, {{12}, {10}}, {8});
  Expect(EOp::kBitwiseOr, DType::kInt32, {{12}, {10}}, {14});
  Expect(EOp::kBitwiseXor, DType::kInt32, {{12}, {10}}, {6});
  Expect(EOp::kLogicalNot, DType::kBool, {{0, 1}}, {1, 0});
  Expect(EOp::kLogicalAnd, DType::kBool, {{0, 1, 1}, {1, 0, 1}}, {0, 0, 1});
  Expect(EOp::kLogicalOr, DType::kBool, {{0, 1, 0}, {1, 0, 0}}, {1, 1, 0});
  Expect(EOp::kEqual, DType::kBool, {{0, 1}, {0, 0}}, {1, 0});
}

TEST(Elementwise, ComplexByHand) {
  for (DType t : {DType::kComplex64, DType::kComplex128}) {
    auto one = [&](EOp op, std::complex<double> x, std::complex<double> y, std::complex<double> want) {
      const Program* program = SingleOpProgram(op, t);
      auto make = [](DType type, std::complex<double> v) {
        ProgramBuilder b;  // a program without inputs makes a constant array
        b.Output(IsComplex(type) ? b.ConstComplex(type, v) : b.Const(type, v.real()));
        Array a(type, 1);
        Args args{};
        args.out[0] = a.data();
        EXPECT_TRUE(reference::Kernels().Run(Dense(b.Build(), 1), args, runtime::ThreadTeam(1)).ok());
        return a;
      };
      std::vector<Array> inputs = {make(t, x), make(t, y)};
      inputs.resize(program->num_inputs(), inputs[0]);
      const auto got = Compare(Dense(program, 1), inputs, 4, Info(op).name);
      ExpectClose(got[0], make(program->output_type(0), want), ToleranceFor(t, 4), Info(op).name);
    };
    one(EOp::kAdd, {1, 2}, {3, -1}, {4, 1});
    one(EOp::kMul, {1, 2}, {3, -1}, {5, 5});
    one(EOp::kDiv, {5, 5}, {3, -1}, {1, 2});
    one(EOp::kAbs, {3, -4}, {}, {5, 0});
    one(EOp::kSign, {3, -4}, {}, {0.6, -0.8});
    one(EOp::kSign, {0, 0}, {}, {0, 0});
    one(EOp::kReal, {3, -4}, {}, {3, 0});
    one(EOp::kImag, {3, -4}, {}, {-4, 0});
    one(EOp::kConj, {3, -4}, {}, {3, 4});
    one(EOp::kAngle, {0, 2}, {}, {1.5707963267948966, 0});
    one(EOp::kExp, {0, 3.141592653589793}, {}, {-1, 0});
    one(EOp::kExpm1, {0, 1}, {}, {-0.45969769413186023, 0.8414709848078965});
    one(EOp::kLog1p, {0, 1}, {}, {0.34657359027997264, 0.7853981633974483});
    one(EOp::kSqrt, {-4, 0}, {}, {0, 2});
    one(EOp::kEqual, {1, 2}, {1, 2}, {1, 0});
    one(EOp::kEqual, {1, 2}, {1, 3}, {0, 0});
  }
}

TEST(Elementwise, CastsByHand) {
  ExpectCast(DType::kFloat, DType::kInt32, {1.9, -1.9, kNan, 3e9, -kInf},
             {1, -1, -2147483648.0, -2147483648.0, -2147483648.0});
  ExpectCast(DType::kFloat, DType::kUint8, {1.9, 255, 300, kNan}, {1, 255, 44, 0});
  ExpectCast(DType::kDouble, DType::kInt64, {1e15, -2.5}, {1e15, -2});
  ExpectCast(DType::kFloat, DType::kUint32, {3e9}, {3e9});
  ExpectCast(DType::kFloat, DType::kBool, {0, -0.0, 0.5, kNan}, {0, 0, 1, 1});
  ExpectCast(DType::kInt32, DType::kInt8, {300, -1}, {44, -1});
  ExpectCast(DType::kInt32, DType::kBool, {256, 0}, {1, 0});
  ExpectCast(DType::kInt8, DType::kUint32, {-1}, {4294967295.0});
  ExpectCast(DType::kUint64, DType::kFloat, {18446744073709549568.0}, {18446744073709551616.0});
  ExpectCast(DType::kBool, DType::kHalf, {1, 0}, {1, 0});
  ExpectCast(DType::kFloat, DType::kHalf, {65504, 65520, 1e-8, 2049}, {65504, kInf, 0, 2048});
  ExpectCast(DType::kFloat, DType::kBFloat16, {1.00390625, 1.01171875, 3.4e38}, {1, 1.015625, kInf});
  ExpectCast(DType::kHalf, DType::kDouble, {0.333251953125}, {0.333251953125});
  ExpectCast(DType::kComplex64, DType::kFloat, {2.5}, {2.5});
}

// Operands that an op is interesting on, beside [-4, 4).
double LowOf(EOp op) {
  return op == EOp::kErfinv || op == EOp::kAtanh || op == EOp::kAsin || op == EOp::kAcos ? -1 : 0;
}
double HighOf(EOp op) { return LowOf(op) < 0 ? 1 : 60; }

TEST(Elementwise, EveryOpOnEveryType) {
  ForEachIsa([] {
    for (int o = 0; o < kNumEOps; ++o) {
      const EOp op = static_cast<EOp>(o);
      for (int t = 1; t < kNumDTypes; ++t) {
        const DType type = static_cast<DType>(t);
        if (op == EOp::kCast || !IsDefined(op, type)) continue;
        const Program* program = SingleOpProgram(op, type);
        for (int64_t n : {1, 3, 16, 77, 1023, 1025, 2500}) {
          for (bool wide : {false, true}) {
            std::vector<Array> inputs;
            for (int i = 0; i < program->num_inputs(); ++i) {
              inputs.push_back(wide ? Random(program->inputs()[i], n, 10 + i, LowOf(op), HighOf(op))
                                    : Random(program->inputs()[i], n, 20 + i));
            }
            // Beyond the few units of the functions: sums that cancel inside complex ones.
            const double scale = IsComplex(type) ? 64 : 16;
            Compare(Dense(program, n), inputs, scale, std::string(Info(op).name) + " of " + Name(type));
          }
        }
      }
    }
  });
}

TEST(Elementwise, EveryCast) {
  ForEachIsa([] {
    for (int from = 1; from < kNumDTypes; ++from) {
      for (int to = 1; to < kNumDTypes; ++to) {
        const DType a = static_cast<DType>(from), b = static_cast<DType>(to);
        const Program* program = CastProgram(a, b);
        const std::string what = std::string("Cast of ") + Name(a) + " to " + Name(b);
        Compare(Dense(program, 1100), {Random(a, 1100, 3, -130, 130)}, 0, what);
        Compare(Dense(program, 1100), {Random(a, 1100, 3, -1e19, 1e19)}, 0, what + " out of range");
      }
    }
  });
}

// Every pair of special values, through the vector loops (a whole tile of them) and their tails.
TEST(Elementwise, SpecialValues) {
  for (DType type : kFloats) {
    std::vector<double> special = {0.0,  -0.0,   1,      -1,     0.5,           -0.5, 2,     -2,  3,    kInf, -kInf,
                                   kNan, 1e-30,  -1e-30, 1e30,   -1e30,         88.5, -88.5, 104, -104, 1e-7, -1e-7,
                                   0.7,  100000, 1e-40,  3.4e38, 1.1754943e-38, 700};
    const int64_t m = static_cast<int64_t>(special.size());
    Array x(type, m * m), y(type, m * m);
    for (int64_t i = 0; i < m * m; ++i) {
      const Array a = Values(type, {special[i / m]}), b = Values(type, {special[i % m]});
      std::memcpy(x.as<char>() + i * SizeOf(type), a.data(), SizeOf(type));
      std::memcpy(y.as<char>() + i * SizeOf(type), b.data(), SizeOf(type));
    }
    ForEachIsa([&] {
      for (int o = 0; o < kNumEOps; ++o) {
        const EOp op = static_cast<EOp>(o);
        if (op == EOp::kCast || !IsDefined(op, type) || Info(op).arity == 3) continue;
        std::vector<Array> inputs = {x, y};
        inputs.resize(Info(op).arity, x);
        Compare(Dense(SingleOpProgram(op, type), m * m), inputs, 16, std::string(Info(op).name) + " special");
      }
    });
  }
}

// Units in the last place of the vectorised functions, over all magnitudes, against <cmath> in double.
TEST(Elementwise, FloatFunctionsAreAccurate) {
  struct Case {
    EOp op;
    double (*truth)(double);
    double ulps;
  };
  const Case cases[] = {
      {EOp::kExp, [](double x) { return std::exp(x); }, 2},
      {EOp::kExpm1, [](double x) { return std::expm1(x); }, 3},
      {EOp::kLog, [](double x) { return std::log(x); }, 2},
      {EOp::kLog1p, [](double x) { return std::log1p(x); }, 2},
      // Rational functions, as accurate as those of TensorFlow's CPU kernels.
      {EOp::kTanh, [](double x) { return std::tanh(x); }, 6},
      {EOp::kSigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, 3},
      {EOp::kErf, [](double x) { return std::erf(x); }, 6},
      {EOp::kErfc, [](double x) { return std::erfc(x); }, 12},
      {EOp::kSin, [](double x) { return std::sin(x); }, 2},
      {EOp::kCos, [](double x) { return std::cos(x); }, 2},
      {EOp::kSqrt, [](double x) { return std::sqrt(x); }, 1},
      {EOp::kRsqrt, [](double x) { return 1 / std::sqrt(x); }, 2},
  };
  // Every 16411th float (a prime step visits all mantissas), and a fine sweep of [-20, 20].
  std::vector<float> samples;
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 16411) {
    const uint32_t u = static_cast<uint32_t>(bits);
    float f;
    std::memcpy(&f, &u, 4);
    samples.push_back(f);
  }
  for (int i = -100000; i <= 100000; ++i) samples.push_back(static_cast<float>(i) * 2e-4f);
  const int64_t n = static_cast<int64_t>(samples.size());
  ForEachIsa([&] {
    for (const Case& c : cases) {
      std::vector<float> got(samples.size());
      Args args{};
      args.in[0] = samples.data();
      args.out[0] = got.data();
      ASSERT_TRUE(
          host::Kernels().Run(Dense(SingleOpProgram(c.op, DType::kFloat), n), args, runtime::ThreadTeam(1)).ok());
      double worst = 0;
      int64_t at = 0;
      for (int64_t i = 0; i < n; ++i) {
        const double want = c.truth(samples[i]);
        const float rounded = static_cast<float>(want);
        if (std::isnan(rounded) || std::isinf(rounded) || rounded == 0) {
          // The reciprocal of an overflow is 0 where the truth is subnormal, and the neighbours of infinity are large.
          if (std::isnan(rounded) != std::isnan(got[i]) ||
              (std::isinf(rounded) && got[i] < 3.4028e38f && got[i] > -3.4028e38f) ||
              (rounded == 0 && std::abs(got[i]) > 1e-44f)) {
            ADD_FAILURE() << Info(c.op).name << "(" << samples[i] << ") is " << got[i] << ", expected " << rounded;
            break;
          }
          continue;
        }
        if (std::abs(rounded) < 1.1754944e-38f && c.op != EOp::kExp) {
          if (std::abs(got[i] - want) > 1.2e-38)
            ADD_FAILURE() << Info(c.op).name << "(" << samples[i] << ") is " << got[i];
          continue;
        }
        int exponent;
        std::frexp(rounded, &exponent);
        const double ulp = std::ldexp(1.0, std::max(exponent - 24, -149));
        const double error = std::isinf(got[i]) && std::abs(want) > 3.4028e38 ? 0 : std::abs(got[i] - want) / ulp;
        if (error > worst) worst = error, at = i;
      }
      EXPECT_LE(worst, c.ulps) << Info(c.op).name << "(" << samples[at] << ") is " << got[at] << ", expected "
                               << c.truth(samples[at]);
    }
  });
}

}  // namespace
}  // namespace xpu::testing

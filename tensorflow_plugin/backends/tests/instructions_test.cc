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

// The accuracy that an instruction must have: the units in the last place by which it may miss the exact value. Each is
// 2 u of the value at most, and on complex types of its magnitude. They are the results of a good implementation. That
// is one unit for the operations that IEEE 754 rounds correctly, and two for other functions. More is allowed for the
// rational approximations of Tanh, Erf and Erfc, for combinations of several functions, and for series and continued
// fractions. An instruction that is not in the table is exact, or rounds once and correctly, and gives the reference's
// value. Such are comparisons, sums, real products, selections and remainders.
struct Accuracy {
  Opcode op;
  double real, complex;  // 0: exact, or no such instruction
  // The same error of each argument is allowed as well. Near the value's poles and zeros, a small error of an argument
  // is a large one of the value.
  bool of_the_arguments = false;
  // The units where the exact value is computed in the same type, by a way of its own. A factor is the exponential of
  // logarithms in the hundreds, with all their roundings. And what the difference of numbers of about 1 may miss.
  double own_way = 0, difference = 0;
};
constexpr Accuracy kAccuracy[] = {
    {Opcode::kReciprocal, 1, 4},
    {Opcode::kSqrt, 1, 2},
    {Opcode::kDiv, 1, 4},
    {Opcode::kRsqrt, 2, 4},
    {Opcode::kExp, 2, 4},
    {Opcode::kExpm1, 3, 4},
    {Opcode::kLog, 2, 4},
    {Opcode::kLog1p, 2, 4},
    {Opcode::kSin, 2, 4},
    {Opcode::kCos, 2, 4},
    {Opcode::kTan, 2, 4},
    {Opcode::kAsin, 2, 4},
    {Opcode::kAcos, 2, 4},
    {Opcode::kAtan, 2, 4},
    {Opcode::kSinh, 2, 4},
    {Opcode::kCosh, 2, 4},
    {Opcode::kTanh, 6, 4},
    {Opcode::kAsinh, 2, 4},
    {Opcode::kAcosh, 2, 4},
    {Opcode::kAtanh, 2, 4},
    {Opcode::kSigmoid, 3, 4, true},
    {Opcode::kErf, 6, 0},
    {Opcode::kErfc, 4, 0},
    {Opcode::kErfinv, 4, 0},
    {Opcode::kNdtri, 4, 0, true},
    {Opcode::kLgamma, 4, 0, true},
    {Opcode::kDigamma, 4, 0, true},
    {Opcode::kPow, 2, 8, true},
    {Opcode::kAtan2, 2, 0},
    {Opcode::kAbs, 0, 2},
    {Opcode::kSign, 0, 2},
    {Opcode::kAngle, 0, 2},
    {Opcode::kMul, 0, 2},
    {Opcode::kSquare, 0, 2},
    {Opcode::kBesselI0, 8, 0, true},
    {Opcode::kBesselI0e, 8, 0, true},
    {Opcode::kBesselI1, 8, 0, true},
    {Opcode::kBesselI1e, 8, 0, true},
    {Opcode::kBesselJ0, 8, 0, true},
    {Opcode::kBesselJ1, 8, 0, true},
    {Opcode::kBesselK0, 8, 0, true},
    {Opcode::kBesselK0e, 8, 0, true},
    {Opcode::kBesselK1, 8, 0, true},
    {Opcode::kBesselK1e, 8, 0, true},
    {Opcode::kBesselY0, 8, 0, true},
    {Opcode::kBesselY1, 8, 0, true},
    {Opcode::kDawsn, 8, 0, true},
    {Opcode::kExpint, 8, 0, true},
    {Opcode::kFresnelCos, 8, 0, true},
    {Opcode::kFresnelSin, 8, 0, true},
    {Opcode::kSpence, 8, 0, true},
    {Opcode::kIgamma, 8, 0, true, 500},
    {Opcode::kIgammac, 8, 0, true, 500, 0x1p-46},
    {Opcode::kPolygamma, 8, 0, true},
    {Opcode::kZeta, 8, 0, true},
    {Opcode::kBetainc, 8, 0, true, 500, 0x1p-46},
    {Opcode::kIgammaGradA, 16, 0, true, 500, 0x1p-46},
    {Opcode::kGammaSampleGrad, 16, 0, true, 500, 0x1p-46},
};

const Accuracy* Find(Opcode op, DType type) {
  for (const Accuracy& row : kAccuracy) {
    if (row.op == op && (IsComplex(type) ? row.complex : row.real) != 0 && Roundoff(type) != 0) return &row;
  }
  return nullptr;
}

// The least normal number of the type that `type` is computed in.
double Least(DType type) { return SizeOf(type) / (IsComplex(type) ? 2 : 1) == 8 ? 0x1p-1022 : 0x1p-126; }

// How much the value changes with the arguments: the sum of |x df/dx|, by differences.
std::vector<double> Sensitivity(const ElementwiseDesc& wide, const std::vector<Array>& inputs,
                                const std::vector<Output>& outputs, const Array& exact) {
  constexpr double kStep = 0x1p-20;
  std::vector<double> sensitivity(exact.size());
  for (size_t k = 0; k < inputs.size(); ++k) {
    std::vector<Array> moved = WidenedInputs(inputs);
    for (int64_t i = 0; i < moved[k].size(); ++i) {
      if (IsComplex(moved[k].type())) {
        moved[k].as<std::complex<double>>()[i] *= 1 + kStep;
      } else {
        moved[k].as<double>()[i] *= 1 + kStep;
      }
    }
    const Array there = Exact(wide, moved, outputs)[0];
    for (int64_t i = 0; i < exact.size(); ++i) {
      const double change = std::abs(At(there, i) - At(exact, i)) / kStep;
      if (std::isfinite(change)) sensitivity[i] += change;
    }
  }
  return sensitivity;
}

// The bound of one instruction on these inputs. Below the smallest normal number a value may be 0. Where the exact
// value is computed in the same type, that may be a unit off too.
Bound AccuracyOf(Opcode op, DType type, const std::vector<Array>& inputs, const Array& exact) {
  const Accuracy* const row = Find(op, type);
  if (row == nullptr) return Bound();
  const bool is_widest = Wide(type) == type;
  const double ulps =
      std::max((IsComplex(type) ? row->complex : row->real) * (is_widest ? 1.5 : 1), is_widest ? row->own_way : 0);
  Bound bound = {2 * Roundoff(type) * ulps, std::max(Least(type), row->difference)};
  if (row->of_the_arguments) {
    const ElementwiseDesc wide = Dense(SingleOpProgram(op, Wide(type)), exact.size());
    bound.each = Sensitivity(wide, inputs, Outputs(Dense(SingleOpProgram(op, type), exact.size())), exact);
    for (double& error : bound.each) error *= bound.relative;
  }
  return bound;
}

void ExpectAccurate(Opcode op, DType type, const std::vector<Array>& inputs, const std::string& what) {
  const int64_t n = inputs[0].size();
  const ElementwiseDesc desc = Dense(SingleOpProgram(op, type), n);
  if (Find(op, type) == nullptr) {
    Want want = AsTheReference(desc, inputs, Outputs(desc));
    // Where that is zero, a device that is no host may give a subnormal number, whose floor may be -1.
    if (!MustSupportEverything()) want.bounds = {{0, op == Opcode::kFloorDiv ? 1 : Least(type)}};
    Expect(desc, inputs, Outputs(desc), want, what);
    return;
  }
  const Array exact = Exact(Dense(SingleOpProgram(op, Wide(type)), n), inputs, Outputs(desc))[0];
  Expect(desc, inputs, Outputs(desc), {{exact}, {AccuracyOf(op, type, inputs, exact)}}, what);
}

// By hand: `want` for literal operands.
void Expect(Opcode op, DType type, const std::vector<std::vector<double>>& operands, const std::vector<double>& want) {
  const Program* program = SingleOpProgram(op, type);
  std::vector<Array> inputs;
  for (size_t i = 0; i < operands.size(); ++i) inputs.push_back(Values(program->inputs()[i], operands[i]));
  const ElementwiseDesc desc = Dense(program, inputs[0].size());
  const Array exact = Values(Wide(program->output_type(0)), want);
  ExpectByHand(desc, inputs, Outputs(desc), {{exact}, {AccuracyOf(op, type, inputs, exact)}}, "by hand");
}

void ExpectCast(DType from, DType to, const std::vector<double>& x, const std::vector<double>& want) {
  const ElementwiseDesc desc = Dense(CastProgram(from, to), static_cast<int64_t>(x.size()));
  ExpectByHand(desc, {Values(from, x)}, Outputs(desc), {{Values(to, want)}}, "by hand");
}

constexpr DType kFloats[] = {DType::kHalf, DType::kBFloat16, DType::kFloat, DType::kDouble};
constexpr DType kSigned[] = {DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64};

TEST(Elementwise, FloatsByHand) {
  for (DType t : kFloats) {
    Expect(Opcode::kNeg, t, {{1, -2, 0, kInf}}, {-1, 2, 0, -kInf});
    Expect(Opcode::kAbs, t, {{1, -2, -kInf, kNan}}, {1, 2, kInf, kNan});
    Expect(Opcode::kSign, t, {{3, -2, 0, kNan, -kInf}}, {1, -1, 0, kNan, -1});
    Expect(Opcode::kReciprocal, t, {{2, -4, 0, kInf}}, {0.5, -0.25, kInf, 0});
    Expect(Opcode::kSquare, t, {{3, -2}}, {9, 4});
    Expect(Opcode::kSqrt, t, {{9, 0, -1, kInf}}, {3, 0, kNan, kInf});
    Expect(Opcode::kRsqrt, t, {{4, 0, -1, kInf}}, {0.5, kInf, kNan, 0});
    Expect(Opcode::kExp, t, {{0, 1, -kInf, kInf, kNan}}, {1, 2.718281828459045, 0, kInf, kNan});
    Expect(Opcode::kExpm1, t, {{0, 1, -kInf, kInf}}, {0, 1.718281828459045, -1, kInf});
    Expect(Opcode::kLog, t, {{1, 0, -1, kInf, kNan, 8}}, {0, -kInf, kNan, kInf, kNan, 2.0794415416798357});
    Expect(Opcode::kLog1p, t, {{0, -1, -2, kInf, 1}}, {0, -kInf, kNan, kInf, 0.6931471805599453});
    Expect(Opcode::kTanh, t, {{0, 1, kInf, -kInf, kNan}}, {0, 0.7615941559557649, 1, -1, kNan});
    Expect(Opcode::kSigmoid, t, {{0, kInf, -kInf, 2}}, {0.5, 1, 0, 0.8807970779778823});
    Expect(Opcode::kErf, t, {{0, 1, -kInf, kInf, kNan}}, {0, 0.8427007929497149, -1, 1, kNan});
    Expect(Opcode::kErfc, t, {{0, 1, -kInf, kInf}}, {1, 0.15729920705028513, 2, 0});
    Expect(Opcode::kErfinv, t, {{0, 0.5, 1, -1, 2}}, {0, 0.4769362762044699, kInf, -kInf, kNan});
    Expect(Opcode::kNdtri, t, {{0.5, 0.25, 0.75, 0.9375, 0x1p-10, 0, 1, -1, 2, kNan}},
           {0, -0.6744897501960817, 0.6744897501960817, 1.5341205443525463, -3.0972690781987846, -kInf, kInf, kNan,
            kNan, kNan});
    Expect(Opcode::kLgamma, t, {{1, 3, 0.5, 0, -kInf}}, {0, 0.6931471805599453, 0.5723649429247001, kInf, kInf});
    Expect(Opcode::kDigamma, t, {{1, 0, -1, -1.5, kInf}}, {-0.5772156649015329, kNan, kNan, 0.7031566406452432, kInf});
    Expect(Opcode::kSin, t, {{0, 1, kInf}}, {0, 0.8414709848078965, kNan});
    Expect(Opcode::kCos, t, {{0, 1, kNan}}, {1, 0.5403023058681398, kNan});
    Expect(Opcode::kCeil, t, {{1.5, -1.5}}, {2, -1});
    Expect(Opcode::kFloor, t, {{1.5, -1.5}}, {1, -2});
    Expect(Opcode::kRint, t, {{0.5, 1.5, 2.5, -0.5}}, {0, 2, 2, 0});
    Expect(Opcode::kIsNan, t, {{0, kNan, kInf}}, {0, 1, 0});
    Expect(Opcode::kIsInf, t, {{0, kNan, -kInf}}, {0, 0, 1});
    Expect(Opcode::kIsFinite, t, {{0, kNan, -kInf}}, {1, 0, 0});
    Expect(Opcode::kAdd, t, {{1, kInf}, {2, -kInf}}, {3, kNan});
    Expect(Opcode::kSub, t, {{1}, {2}}, {-1});
    Expect(Opcode::kMul, t, {{3, 0}, {-2, kInf}}, {-6, kNan});
    Expect(Opcode::kDiv, t, {{1, 1, 0}, {4, 0, 0}}, {0.25, kInf, kNan});
    Expect(Opcode::kFloorDiv, t, {{5, -5, 1}, {3, 3, 0}}, {1, -2, kInf});
    Expect(Opcode::kFloorMod, t, {{5, -5, 5, -5, 1, 1}, {3, 3, -3, -3, kInf, 0}}, {2, 1, -1, -2, 1, kNan});
    Expect(Opcode::kTruncateMod, t, {{5, -5, 5}, {3, 3, -3}}, {2, -2, 2});
    Expect(Opcode::kMaximum, t, {{1, kNan, 1, -kInf}, {2, 1, kNan, 3}}, {2, kNan, kNan, 3});
    Expect(Opcode::kMinimum, t, {{1, kNan, 1, -kInf}, {2, 1, kNan, 3}}, {1, kNan, kNan, -kInf});
    Expect(Opcode::kPow, t, {{2, 3, -2, -8, 0, kNan, 2}, {3, 2, 3, 0.5, 0, 0, -1}}, {8, 9, -8, kNan, 1, 1, 0.5});
    Expect(Opcode::kAtan2, t, {{0, 1}, {-1, 0}}, {3.141592653589793, 1.5707963267948966});
    Expect(Opcode::kEqual, t, {{1, kNan, 2}, {1, kNan, 3}}, {1, 0, 0});
    Expect(Opcode::kNotEqual, t, {{1, kNan, 2}, {1, kNan, 3}}, {0, 1, 1});
    Expect(Opcode::kLess, t, {{1, 2, kNan}, {2, 2, 1}}, {1, 0, 0});
    Expect(Opcode::kLessEqual, t, {{1, 2, kNan}, {2, 2, 1}}, {1, 1, 0});
    Expect(Opcode::kGreater, t, {{3, 2, kNan}, {2, 2, 1}}, {1, 0, 0});
    Expect(Opcode::kGreaterEqual, t, {{3, 2, kNan}, {2, 2, 1}}, {1, 1, 0});
    Expect(Opcode::kSelect, t, {{1, 0}, {5, 6}, {7, 8}}, {5, 8});
  }
}

// Values by an arbitrary-precision library; at the edges those that TensorFlow's kernels for the CPU give.
TEST(Elementwise, SpecialFunctionsByHand) {
  for (DType t : kFloats) {
    Expect(Opcode::kBesselI0, t, {{0, 0.5, -2, 6, kNan}},
           {1, 1.0634833707413236, 2.2795853023360673, 67.23440697647797, kNan});
    Expect(Opcode::kBesselI0e, t, {{0, 0.5, -2, 20, kNan}},
           {1, 0.6450352704491501, 0.30850832255367105, 0.08978031188482602, kNan});
    Expect(Opcode::kBesselI1, t, {{0, 0.5, -2, 6, kNan}},
           {0, 0.2578943053908963, -1.590636854637329, 61.341936777640235, kNan});
    Expect(Opcode::kBesselI1e, t, {{0, 0.5, -2, 20, kNan}},
           {0, 0.1564208031848717, -0.21526928924893765, 0.08750622218328867, kNan});
    Expect(Opcode::kBesselJ0, t, {{0, 0.5, -2, 6, kNan}},
           {1, 0.9384698072408129, 0.22389077914123567, 0.15064525725099692, kNan});
    Expect(Opcode::kBesselJ1, t, {{0, 0.5, -2, 6, kNan}},
           {0, 0.2422684576748739, -0.5767248077568734, -0.27668385812756563, kNan});
    Expect(Opcode::kBesselK0, t, {{0.5, 2, 6, 0, -1, kNan}},
           {0.9244190712276659, 0.11389387274953344, 0.0012439943280131232, kInf, kInf, kNan});
    Expect(Opcode::kBesselK0e, t, {{0.5, 2, 20, 0, -1, kNan}},
           {1.5241093857739094, 0.8415682150707714, 0.27854487665718225, kInf, kInf, kNan});
    Expect(Opcode::kBesselY0, t, {{0.5, 2, 6, 0, -1, kNan}},
           {-0.44451873350670656, 0.5103756726497451, -0.28819468398157916, -kInf, -kInf, kNan});
    Expect(Opcode::kBesselK1, t, {{0.5, 2, 6, 0, -1, kNan}},
           {1.656441120003301, 0.13986588181652243, 0.001343919717735509, kInf, kInf, kNan});
    Expect(Opcode::kBesselK1e, t, {{0.5, 2, 20, 0, -1, kNan}},
           {2.731009708211786, 1.0334768470686886, 0.28542549694072644, kInf, kInf, kNan});
    Expect(Opcode::kBesselY1, t, {{0.5, 2, 6, 0, -1, kNan}},
           {-1.471472392670243, -0.10703243154093754, -0.17501034430039825, -kInf, -kInf, kNan});
    Expect(Opcode::kDawsn, t, {{0, 0.5, -2, 7, 20, kInf, kNan}},
           {0, 0.4244363835020223, -0.30134038892379195, 0.0721809746582363, 0.02503136792640367, 0, kNan});
    Expect(Opcode::kExpint, t, {{0.25, 0.5, 2, 6, 48, 0, -1, kNan}},
           {-0.5425432646619137, 0.4542199048631736, 4.95423435600189, 85.9897621424392, 1.4936302131129932e+19, -kInf,
            kNan, kNan});
    Expect(Opcode::kFresnelCos, t, {{0, 0.5, -1.25, 2, 6, kInf, kNan}},
           {0, 0.4923442258714464, -0.6800907410754551, 0.48825340607534073, 0.4995314678555011, 0.5, kNan});
    Expect(Opcode::kFresnelSin, t, {{0, 0.5, -1.25, 2, 6, -kInf, kNan}},
           {0, 0.06473243285999927, -0.6586555116366791, 0.34341567836369824, 0.4469607612369303, -0.5, kNan});
    Expect(Opcode::kSpence, t, {{0, 0.25, 0.75, 1, 1.5, 6, -1, kNan}},
           {1.6449340668482264, 0.9784693929303061, 0.2676526390827326, 0, -0.4484142069236462, -2.7492791260608085,
            kNan, kNan});
    Expect(Opcode::kIgamma, t, {{0.5, 2, 3, 6, -1, 1, 1}, {2, 0.5, 0, 6, 1, -1, kInf}},
           {0.9544997361036416, 0.09020401043104986, 0, 0.5543203586353888, kNan, kNan, 1});
    Expect(Opcode::kIgammac, t, {{0.5, 2, 3, 6, -1, 1}, {2, 0.5, 0, 6, 1, kInf}},
           {0.04550026389635842, 0.9097959895689501, 1, 0.44567964136461125, kNan, 0});
    Expect(Opcode::kIgammaGradA, t, {{0.5, 2, 6, -1}, {2, 0.5, 6, 1}},
           {-0.13561933520399724, -0.1510342369091705, -0.16515181320823, kNan});
    Expect(Opcode::kGammaSampleGrad, t, {{0.5, 2, 6, -1}, {2, 0.5, 6, 1}},
           {2.511889376362068, 0.4980267179922236, 1.0281943942242868, kNan});
    Expect(Opcode::kPolygamma, t, {{0, 1, 2, 3, 1.5, -1}, {2, 0.5, 1, 6, 1, 1}},
           {0.42278433509846713, 4.934802200544679, -2.4041138063191885, 0.011827828192755074, kNan, kNan});
    Expect(Opcode::kZeta, t, {{2, 1.5, 6, 1, 0.5, 2}, {1, 0.5, 3, 1, 1, -1}},
           {1.6449340668482264, 4.776537947554833, 0.0017180619844491397, kInf, kNan, kInf});
    Expect(Opcode::kBetainc, t, {{0.5, 3, 2, 2, -1, 1}, {2, 1, 2, 2, 1, 1}, {0.5, 0.25, 0, 1, 0.5, 2}},
           {0.8838834764831844, 0.015625, 0, 1, kNan, kNan});
  }
  // Where 2p - 1 would be -1.
  Expect(Opcode::kNdtri, DType::kFloat, {{0x1p-60, 0x1p-140}}, {-8.773321169027552, -13.674855035788477});
  Expect(Opcode::kNdtri, DType::kDouble, {{0x1p-60, 0x1p-1000, 0x1p-1060}},
         {-8.773321169027552, -37.11101193716479, -38.214478272074906});
  for (DType t : {DType::kFloat, DType::kDouble}) {
    const double least = t == DType::kFloat ? 0x1p-149 : 0x1p-1074, next = t == DType::kFloat ? 0x1p-23 : 0x1p-52;
    Expect(Opcode::kNextAfter, t, {{1, 1, 0, -1, 1, kNan}, {2, 0, -1, kInf, 1, 0}},
           {1 + next, 1 - next / 2, -least, -1 + next / 2, 1, kNan});
  }
}

// Divisions of 64 bits take one of two ways, by the size of the operands of a block.
TEST(Elementwise, DivisionsOfEverySize) {
  constexpr int64_t n = 2000;
  for (Opcode op : {Opcode::kTruncateDiv, Opcode::kTruncateMod, Opcode::kFloorDiv, Opcode::kFloorMod}) {
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
            const std::string what = std::to_string(x_bits) + " by " + std::to_string(y_bits) + " bits";
            ExpectAsTheReference(Dense(program, n), {Random(t, n, 1, is_signed ? -x : 0, x), divisors}, what);
          }
        }
      }
    }
  }
}

TEST(Elementwise, IntegersByHand) {
  for (DType t : kSigned) {
    Expect(Opcode::kNeg, t, {{1, -2}}, {-1, 2});
    Expect(Opcode::kAbs, t, {{1, -2}}, {1, 2});
    Expect(Opcode::kSign, t, {{3, -2, 0}}, {1, -1, 0});
    Expect(Opcode::kBitwiseNot, t, {{0, 5}}, {-1, -6});
    Expect(Opcode::kTruncateDiv, t, {{7, -7, 7}, {2, 2, -2}}, {3, -3, -3});
    Expect(Opcode::kFloorDiv, t, {{7, -7, 7, -6}, {2, 2, -2, 2}}, {3, -4, -4, -3});
    Expect(Opcode::kFloorMod, t, {{7, -7, 7, -7}, {3, 3, -3, -3}}, {1, 2, -2, -1});
    Expect(Opcode::kTruncateMod, t, {{7, -7, 7}, {3, 3, -3}}, {1, -1, 1});
    Expect(Opcode::kPow, t, {{2, -3, 5, 0}, {5, 3, 0, 0}}, {32, -27, 1, 1});
    Expect(Opcode::kRightShift, t, {{-8, -8, -8, 5}, {1, -3, 100, 1}}, {-4, -8, -1, 2});
    Expect(Opcode::kLeftShift, t, {{1, 3}, {2, -1}}, {4, 3});
    // The one quotient that overflows.
    const double lowest = -std::ldexp(1.0, static_cast<int>(SizeOf(t)) * 8 - 1);
    Expect(Opcode::kTruncateDiv, t, {{lowest}, {-1}}, {lowest});
    Expect(Opcode::kFloorDiv, t, {{lowest}, {-1}}, {lowest});
    Expect(Opcode::kFloorMod, t, {{lowest}, {-1}}, {0});
    Expect(Opcode::kNeg, t, {{lowest}}, {lowest});
    Expect(Opcode::kAbs, t, {{lowest}}, {lowest});
    Expect(Opcode::kPopulationCount, t, {{0, 1, 7, -1, lowest}}, {0, 1, 3, static_cast<double>(SizeOf(t)) * 8, 1});
  }
  Expect(Opcode::kAdd, DType::kInt8, {{127}, {1}}, {-128});
  Expect(Opcode::kMul, DType::kInt32, {{65536}, {65536}}, {0});
  Expect(Opcode::kSub, DType::kUint8, {{1}, {2}}, {255});
  Expect(Opcode::kSquare, DType::kUint16, {{65535}}, {1});
  Expect(Opcode::kMaximum, DType::kUint8, {{200}, {100}}, {200});
  Expect(Opcode::kMinimum, DType::kUint64, {{200}, {100}}, {100});
  Expect(Opcode::kLess, DType::kUint32, {{1}, {4294967295.0}}, {1});
  Expect(Opcode::kLeftShift, DType::kInt32, {{1, 1}, {31, 40}}, {-2147483648.0, -2147483648.0});
  Expect(Opcode::kRightShift, DType::kUint8, {{255, 255}, {1, 9}}, {127, 1});
  Expect(Opcode::kBitwiseAnd, DType::kInt32, {{12}, {10}}, {8});
  Expect(Opcode::kBitwiseOr, DType::kInt32, {{12}, {10}}, {14});
  Expect(Opcode::kBitwiseXor, DType::kInt32, {{12}, {10}}, {6});
  Expect(Opcode::kPopulationCount, DType::kUint64, {{18446744073709549568.0, 5}}, {53, 2});
  Expect(Opcode::kPopulationCount, DType::kUint8, {{255}}, {8});
  Expect(Opcode::kLogicalNot, DType::kBool, {{0, 1}}, {1, 0});
  Expect(Opcode::kLogicalAnd, DType::kBool, {{0, 1, 1}, {1, 0, 1}}, {0, 0, 1});
  Expect(Opcode::kLogicalOr, DType::kBool, {{0, 1, 0}, {1, 0, 0}}, {1, 1, 0});
  Expect(Opcode::kEqual, DType::kBool, {{0, 1}, {0, 0}}, {1, 0});
}

TEST(Elementwise, ComplexByHand) {
  for (DType t : {DType::kComplex64, DType::kComplex128}) {
    auto one = [&](Opcode op, std::complex<double> x, std::complex<double> y, std::complex<double> want) {
      const ElementwiseDesc desc = Dense(SingleOpProgram(op, t), 1);
      std::vector<Array> inputs = {Values(t, {x}), Values(t, {y})};
      inputs.resize(desc.program->num_inputs(), inputs[0]);
      const Array exact = Values(Wide(desc.program->output_type(0)), {want});
      Bound bound = AccuracyOf(op, t, inputs, exact);
      if (bound.relative != 0) bound.absolute = Roundoff(t) * 8;  // the operands are rounded, too
      ExpectByHand(desc, inputs, Outputs(desc), {{exact}, {bound}}, "by hand");
    };
    one(Opcode::kAdd, {1, 2}, {3, -1}, {4, 1});
    one(Opcode::kMul, {1, 2}, {3, -1}, {5, 5});
    one(Opcode::kDiv, {5, 5}, {3, -1}, {1, 2});
    one(Opcode::kAbs, {3, -4}, {}, {5, 0});
    one(Opcode::kSign, {3, -4}, {}, {0.6, -0.8});
    one(Opcode::kSign, {0, 0}, {}, {0, 0});
    one(Opcode::kReal, {3, -4}, {}, {3, 0});
    one(Opcode::kImag, {3, -4}, {}, {-4, 0});
    one(Opcode::kConj, {3, -4}, {}, {3, 4});
    one(Opcode::kAngle, {0, 2}, {}, {1.5707963267948966, 0});
    one(Opcode::kExp, {0, 3.141592653589793}, {}, {-1, 0});
    one(Opcode::kExpm1, {0, 1}, {}, {-0.45969769413186023, 0.8414709848078965});
    one(Opcode::kLog1p, {0, 1}, {}, {0.34657359027997264, 0.7853981633974483});
    one(Opcode::kSqrt, {-4, 0}, {}, {0, 2});
    one(Opcode::kSqrt, {-4, -0.0}, {}, {0, -2});
    one(Opcode::kSqrt, {0x1p120, -0x1p120}, {}, {1.0986841134678100 * 0x1p60, -0.4550898605622273 * 0x1p60});
    one(Opcode::kRsqrt, {-4, -0.0}, {}, {0, 0.5});
    one(Opcode::kLog, {-1, -0.0}, {}, {0, -3.141592653589793});
    one(Opcode::kLog, {0, 0}, {}, {-kInf, 0});
    one(Opcode::kLog, {1, 0x1p-20}, {}, {0x1p-41, 0x1p-20});
    one(Opcode::kPow, {0, 1}, {2, 0}, {-1, 0});
    one(Opcode::kEqual, {1, 2}, {1, 2}, {1, 0});
    one(Opcode::kEqual, {1, 2}, {1, 3}, {0, 0});
  }
}

TEST(Elementwise, CastsByHand) {
  ExpectCast(DType::kFloat, DType::kInt32, {1.9, -1.9, kNan, 3e9, -kInf},
             {1, -1, -2147483648.0, -2147483648.0, -2147483648.0});
  // Numbers of 32 bits saturate in narrower types. All others are the lowest of these, as TensorFlow's CPU has it.
  for (DType from : {DType::kFloat, DType::kDouble}) {
    const std::vector<double> beyond = {-70000, -1.9, 127.9, 128, 255.9, 256, 70000, 3e9, kInf, kNan};
    ExpectCast(from, DType::kUint8, beyond, {0, 0, 127, 128, 255, 255, 255, 0, 0, 0});
    ExpectCast(from, DType::kInt8, beyond, {-128, -1, 127, 127, 127, 127, 127, -128, -128, -128});
    ExpectCast(from, DType::kUint16, beyond, {0, 0, 127, 128, 255, 256, 65535, 0, 0, 0});
    ExpectCast(from, DType::kInt16, beyond, {-32768, -1, 127, 128, 255, 256, 32767, -32768, -32768, -32768});
  }
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
double LowOf(Opcode op) {
  return op == Opcode::kErfinv || op == Opcode::kNdtri || op == Opcode::kAtanh || op == Opcode::kAsin ||
                 op == Opcode::kAcos
             ? -1
             : 0;
}
double HighOf(Opcode op) { return LowOf(op) < 0 || op == Opcode::kBetainc ? 1 : 60; }

TEST(Elementwise, EveryOpOnEveryType) {
  for (int o = 0; o < kNumOpcodes; ++o) {
    const Opcode op = static_cast<Opcode>(o);
    for (int t = 1; t < kNumDTypes; ++t) {
      const DType type = static_cast<DType>(t);
      if (op == Opcode::kCast || !IsDefined(op, type)) continue;
      const Program* program = SingleOpProgram(op, type);
      for (int64_t n : {1, 77, 1023, 2500}) {
        for (bool wide : {false, true}) {
          std::vector<Array> inputs;
          for (int i = 0; i < program->num_inputs(); ++i) {
            inputs.push_back(wide ? Random(program->inputs()[i], n, 10 + i, LowOf(op), HighOf(op))
                                  : Random(program->inputs()[i], n, 20 + i));
          }
          ExpectAccurate(op, type, inputs, std::to_string(n));
        }
      }
    }
  }
}

// One element as the first operand, as the second, and as both.
TEST(Elementwise, OneElementForAll) {
  constexpr Opcode ops[] = {Opcode::kAdd,      Opcode::kSub,       Opcode::kMul,     Opcode::kDiv,
                            Opcode::kFloorDiv, Opcode::kMaximum,   Opcode::kMinimum, Opcode::kEqual,
                            Opcode::kLess,     Opcode::kLessEqual, Opcode::kGreater, Opcode::kGreaterEqual,
                            Opcode::kNotEqual};
  for (const Opcode op : ops) {
    for (DType type : {DType::kFloat, DType::kDouble, DType::kHalf, DType::kBFloat16}) {
      for (int ones : {1, 2, 3}) {
        ElementwiseDesc desc = Dense(SingleOpProgram(op, type), 2500);
        std::vector<Array> inputs;
        for (int i : {0, 1}) {
          const bool one = (ones >> i & 1) != 0;
          if (one) desc.in_strides[i] = {0};
          inputs.push_back(one ? Values(type, {i == 0 ? 1.5 : -0.75}) : Random(type, 2500, 30 + i));
        }
        ExpectAsTheReference(desc, inputs, errors::Concat(Info(op).name, " of one element: ", ones));
      }
    }
  }
}

TEST(Elementwise, EveryCast) {
  for (int from = 1; from < kNumDTypes; ++from) {
    for (int to = 1; to < kNumDTypes; ++to) {
      const DType a = static_cast<DType>(from), b = static_cast<DType>(to);
      const ElementwiseDesc desc = Dense(CastProgram(a, b), 1100);
      ExpectAsTheReference(desc, {Random(a, 1100, 3, -130, 130)}, "");
      ExpectAsTheReference(desc, {Random(a, 1100, 3, -1e19, 1e19)}, "out of range");
    }
  }
}

// Every pair of special values, through the vector loops (a whole tile of them) and their tails.
TEST(Elementwise, SpecialValues) {
  for (DType type : kFloats) {
    const std::vector<double> special = {
        0.0,  -0.0,  1,    -1,    0.5, -0.5, 2,    -2,    3,   kInf,   -kInf, kNan,   1e-30,         -1e-30,
        1e30, -1e30, 88.5, -88.5, 104, -104, 1e-7, -1e-7, 0.7, 100000, 1e-40, 3.4e38, 1.1754943e-38, 700};
    std::vector<double> firsts, seconds;
    for (double first : special) {
      for (double second : special) {
        firsts.push_back(first);
        seconds.push_back(second);
      }
    }
    for (int o = 0; o < kNumOpcodes; ++o) {
      const Opcode op = static_cast<Opcode>(o);
      if (op == Opcode::kCast || !IsDefined(op, type) || Info(op).arity == 3) continue;
      std::vector<Array> inputs = {Values(type, firsts), Values(type, seconds)};
      inputs.resize(Info(op).arity);
      ExpectAccurate(op, type, inputs, "special values");
    }
  }
}

// A result depends on its argument alone: some loops leave arguments that are out of their range to the library.
TEST(Elementwise, NeighboursDoNotChangeResults) {
  constexpr int64_t n = 70, kAt = 33;
  std::vector<double> numbers(n);
  for (int64_t i = 0; i < n; ++i) numbers[i] = 0.013 * static_cast<double>(i + 1);
  for (DType type : {DType::kFloat, DType::kDouble}) {
    for (int o = 0; o < kNumOpcodes; ++o) {
      const Opcode op = static_cast<Opcode>(o);
      if (op == Opcode::kCast || !IsDefined(op, type) || Info(op).arity != 1) continue;
      const ElementwiseDesc desc = Dense(SingleOpProgram(op, type), n);
      for (const Variant& variant : Variants()) {
        const UseVariant use(variant);
        std::vector<double> others = numbers;
        const Outcome usual = variant.device->Run(desc, {Values(type, numbers)}, Outputs(desc), variant.waiting);
        for (double other : {1e300, kInf, kNan, -1e-300}) {
          others[kAt] = other;
          Outcome beside = variant.device->Run(desc, {Values(type, others)}, Outputs(desc), variant.waiting);
          ASSERT_EQ(usual.status.ok(), beside.status.ok());
          if (!usual.status.ok()) continue;
          const size_t size = usual.out[0].num_bytes() / n;
          auto* const bytes = static_cast<char*>(beside.out[0].data());
          std::memcpy(bytes + kAt * size, static_cast<const char*>(usual.out[0].data()) + kAt * size, size);
          EXPECT_EQ(std::memcmp(bytes, usual.out[0].data(), n * size), 0)
              << Info(op).name << " of " << Name(type) << " beside " << other << ", " << variant.name;
        }
      }
    }
  }
}

// The vectorised functions over all magnitudes: every 16411th float (a prime step visits all mantissas), and a fine
// sweep of [-20, 20].
TEST(Elementwise, FloatFunctionsAreAccurate) {
  std::vector<float> samples;
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 16411) {
    const uint32_t u = static_cast<uint32_t>(bits);
    float f;
    std::memcpy(&f, &u, 4);
    samples.push_back(f);
  }
  for (int i = -100000; i <= 100000; ++i) samples.push_back(static_cast<float>(i) * 2e-4f);
  Array x(DType::kFloat, static_cast<int64_t>(samples.size()));
  std::memcpy(x.data(), samples.data(), x.num_bytes());
  for (Opcode op : {Opcode::kExp,      Opcode::kExpm1,      Opcode::kLog,        Opcode::kLog1p,     Opcode::kTanh,
                    Opcode::kErf,      Opcode::kErfc,       Opcode::kSin,        Opcode::kCos,       Opcode::kSqrt,
                    Opcode::kRsqrt,    Opcode::kSigmoid,    Opcode::kAtan,       Opcode::kErfinv,    Opcode::kNdtri,
                    Opcode::kDigamma,  Opcode::kBesselI0,   Opcode::kBesselI0e,  Opcode::kBesselI1,  Opcode::kBesselI1e,
                    Opcode::kBesselK0, Opcode::kBesselK0e,  Opcode::kBesselK1,   Opcode::kBesselK1e, Opcode::kDawsn,
                    Opcode::kExpint,   Opcode::kFresnelCos, Opcode::kFresnelSin, Opcode::kSpence,    Opcode::kBesselJ0,
                    Opcode::kBesselJ1, Opcode::kBesselY0,   Opcode::kBesselY1,   Opcode::kAsin,      Opcode::kAcos,
                    Opcode::kAtanh}) {
    ExpectAccurate(op, DType::kFloat, {x}, "all magnitudes");
  }
  // Every angle: each sample with one further on.
  std::rotate(samples.begin(), samples.begin() + 77777, samples.end());
  Array y(DType::kFloat, static_cast<int64_t>(samples.size()));
  std::memcpy(y.data(), samples.data(), y.num_bytes());
  ExpectAccurate(Opcode::kAtan2, DType::kFloat, {x, y}, "all magnitudes");
  // Near 1, where the inverses of erf and of the normal distribution have all their tails.
  for (size_t i = 0; i < samples.size(); ++i) {
    const float share = static_cast<float>(i) / static_cast<float>(samples.size());
    samples[i] = i % 2 == 0 ? share : 1 - share * share * share * share;
  }
  std::memcpy(x.data(), samples.data(), x.num_bytes());
  for (Opcode op : {Opcode::kErfinv, Opcode::kNdtri, Opcode::kAsin, Opcode::kAcos, Opcode::kAtanh})
    ExpectAccurate(op, DType::kFloat, {x}, "up to 1");
}

// The same of doubles and of complex numbers: a fine sweep of [-20, 20] and all magnitudes, of both parts.
TEST(Elementwise, WideFunctionsAreAccurate) {
  constexpr int64_t n = 40000;
  std::vector<double> x(n), y(n);
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t bits = static_cast<uint64_t>(i) * 0x9e3779b97f4a7c15u;  // the multiples of an irrational share
    std::memcpy(&x[i], &bits, sizeof(bits));
    if (i % 4 != 0) x[i] = static_cast<double>(i) * 1e-3 - 20;
  }
  Array z(DType::kComplex64, n), wide_z(DType::kComplex128, n);
  for (int64_t i = 0; i < n; ++i) {
    y[i] = x[i * 7777 % n];
    wide_z.as<std::complex<double>>()[i] = {x[i], y[i]};
    z.as<std::complex<float>>()[i] = {static_cast<float>(x[i]), static_cast<float>(y[i])};
  }
  for (Opcode op : {Opcode::kAsin,       Opcode::kAcos,      Opcode::kAtanh,    Opcode::kSin,       Opcode::kCos,
                    Opcode::kAtan,       Opcode::kAtan2,     Opcode::kErfinv,   Opcode::kNdtri,     Opcode::kDigamma,
                    Opcode::kBesselI0,   Opcode::kBesselI0e, Opcode::kBesselI1, Opcode::kBesselI1e, Opcode::kBesselJ0,
                    Opcode::kBesselJ1,   Opcode::kBesselY0,  Opcode::kBesselY1, Opcode::kBesselK0,  Opcode::kBesselK0e,
                    Opcode::kBesselK1,   Opcode::kBesselK1e, Opcode::kDawsn,    Opcode::kExpint,    Opcode::kFresnelCos,
                    Opcode::kFresnelSin, Opcode::kSpence}) {
    std::vector<Array> inputs = {Values(DType::kDouble, x), Values(DType::kDouble, y)};
    inputs.resize(Info(op).arity);
    ExpectAccurate(op, DType::kDouble, inputs, "all magnitudes");
  }
  for (Opcode op : {Opcode::kAbs, Opcode::kAngle, Opcode::kSign, Opcode::kReciprocal, Opcode::kSqrt, Opcode::kRsqrt,
                    Opcode::kExp, Opcode::kExpm1, Opcode::kLog, Opcode::kLog1p, Opcode::kSigmoid, Opcode::kSin,
                    Opcode::kCos, Opcode::kTan, Opcode::kSinh, Opcode::kCosh, Opcode::kTanh}) {
    for (const Array& each : {z, wide_z}) ExpectAccurate(op, each.type(), {each}, "all magnitudes");
  }
  // Near 1, as above.
  for (int64_t i = 0; i < n; ++i) {
    const double share = static_cast<double>(i) / n;
    x[i] = i % 2 == 0 ? share : 1 - std::pow(share, 8);
  }
  for (Opcode op : {Opcode::kErfinv, Opcode::kNdtri, Opcode::kAsin, Opcode::kAcos, Opcode::kAtanh}) {
    ExpectAccurate(op, DType::kDouble, {Values(DType::kDouble, x)}, "up to 1");
  }
}

}  // namespace
}  // namespace xpu::testing

// Elementwise ops of one operand.
#include "tensorflow_plugin/ops/elementwise.h"
#include "tensorflow_plugin/ops/ops.h"

namespace xpu {
namespace {

constexpr TypeMask kFC = kFloatMask | kComplexMask;
constexpr TypeMask kHalfAndWide = Mask(DType::kHalf) | kWideMask;

// An integer is its own nearest integer.
Value Itself(const Value* x, double) { return x[0]; }

constexpr ElementwiseOp kUnaryOps[] = {
    {"Abs", kFloatMask | kSignedMask, EOp::kAbs},
    {"Acos", kFC, EOp::kAcos},
    {"Acosh", kFC, EOp::kAcosh},
    {"Asin", kFC, EOp::kAsin},
    {"Asinh", kFC, EOp::kAsinh},
    {"Atan", kFC, EOp::kAtan},
    {"Atanh", kFC, EOp::kAtanh},
    {"Ceil", kFloatMask, EOp::kCeil},
    {"Cos", kFC, EOp::kCos},
    {"Cosh", kFC, EOp::kCosh},
    {"Digamma", kHalfAndWide, EOp::kDigamma},
    {"Erf", kFloatMask, EOp::kErf},
    {"Erfc", kFloatMask, EOp::kErfc},
    {"Erfinv", kWideMask, EOp::kErfinv},
    {"Exp", kFC, EOp::kExp},
    {"Expm1", kFC, EOp::kExpm1},
    {"Floor", kFloatMask, EOp::kFloor},
    {"Inv", kFC, EOp::kReciprocal},
    {"Invert", kSignedMask | kUnsignedMask | kHostInt32Mask, EOp::kBitwiseNot},
    {"IsFinite", kFloatMask, EOp::kIsFinite},
    {"IsInf", kFloatMask, EOp::kIsInf},
    {"IsNan", kFloatMask, EOp::kIsNan},
    {"Lgamma", kHalfAndWide, EOp::kLgamma},
    {"Log", kFC, EOp::kLog},
    {"Log1p", kFC, EOp::kLog1p},
    {"LogicalNot", kBoolMask, EOp::kLogicalNot},
    {"Ndtri", kWideMask, EOp::kNdtri},
    {"Neg", kFC | kSignedMask, EOp::kNeg},
    {"Reciprocal", kFC, EOp::kReciprocal},
    {"Rint", kHalfAndWide, EOp::kRint},
    {"Round", kFloatMask, EOp::kRint},
    {"Round", Mask(DType::kInt64) | kHostInt32Mask, Itself},
    {"Rsqrt", kFC, EOp::kRsqrt},
    {"Sigmoid", kFC, EOp::kSigmoid},
    {"Sign", kFC | kSignedMask, EOp::kSign},
    {"Sin", kFC, EOp::kSin},
    {"Sinh", kFC, EOp::kSinh},
    {"Sqrt", kFC, EOp::kSqrt},
    {"Square", kFC | kSignedMask | kUnsignedMask, EOp::kSquare},
    {"Tan", kFC, EOp::kTan},
    {"Tanh", kFC, EOp::kTanh},
};

constexpr ElementwiseOp kComplexOps[] = {{"Conj", kComplexMask, EOp::kConj}};

// From complex to real: the result's type is an attribute of its own.
constexpr ElementwiseOp kComplexToReal[] = {
    {"Angle", Mask(DType::kComplex64), EOp::kAngle},    {"Angle", Mask(DType::kComplex128), EOp::kAngle},
    {"ComplexAbs", Mask(DType::kComplex64), EOp::kAbs}, {"ComplexAbs", Mask(DType::kComplex128), EOp::kAbs},
    {"Imag", Mask(DType::kComplex64), EOp::kImag},      {"Imag", Mask(DType::kComplex128), EOp::kImag},
    {"Real", Mask(DType::kComplex64), EOp::kReal},      {"Real", Mask(DType::kComplex128), EOp::kReal},
};

}  // namespace

void RegisterMathUnary(Registry& registry) {
  RegisterTable<UnaryKernel>(registry, kUnaryOps, {"x", "y"});
  RegisterTable<UnaryKernel>(registry, kComplexOps, {"input", "output"});
  for (const ElementwiseOp& row : kComplexToReal) {
    RegisterRow(registry, row, 1, {}, [](Registry::Entry& entry, const ElementwiseOp& op) {
      entry.Types("Tout", {op.types == Mask(DType::kComplex64) ? DType::kFloat : DType::kDouble});
      entry.Kernel<UnaryKernel>(&op);
    });
  }
}

}  // namespace xpu

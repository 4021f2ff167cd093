// Elementwise ops of one operand.
#include "tensorflow_plugin/ops/math/elementwise.h"
#include "tensorflow_plugin/ops/ops.h"

namespace xpu {
namespace {

constexpr TypeMask kFC = kFloatMask | kComplexMask;
constexpr TypeMask kHalfFloatDoubleMask = Mask(DType::kHalf) | kFloatDoubleMask;

// An integer is its own nearest integer.
FormulaValue Itself(const FormulaValue* x, double) { return x[0]; }

// Ops whose arguments are x and y: the name, the types, an instruction or a formula, and traits (elementwise.h).
constexpr ElementwiseOp kUnaryOps[] = {
    {"Abs", kFloatMask | kSignedMask, Opcode::kAbs, OpTrait::kCounts},
    {"Acos", kFC, Opcode::kAcos},
    {"Acosh", kFC, Opcode::kAcosh},
    {"Asin", kFC, Opcode::kAsin},
    {"Asinh", kFC, Opcode::kAsinh},
    {"Atan", kFC, Opcode::kAtan},
    {"Atanh", kFC, Opcode::kAtanh},
    {"Ceil", kFloatMask, Opcode::kCeil},
    {"Cos", kFC, Opcode::kCos},
    {"Cosh", kFC, Opcode::kCosh},
    {"Digamma", kHalfFloatDoubleMask, Opcode::kDigamma},
    {"Erf", kFloatMask, Opcode::kErf},
    {"Erfc", kFloatMask, Opcode::kErfc},
    {"Erfinv", kFloatDoubleMask, Opcode::kErfinv},
    {"Exp", kFC, Opcode::kExp},
    {"Expm1", kFC, Opcode::kExpm1},
    {"Floor", kFloatMask, Opcode::kFloor},
    {"Inv", kFC, Opcode::kReciprocal},
    {"Invert", kSignedMask | kUnsignedMask | kHostInt32Mask, Opcode::kBitwiseNot},
    {"IsFinite", kFloatMask, Opcode::kIsFinite},
    {"IsInf", kFloatMask, Opcode::kIsInf},
    {"IsNan", kFloatMask, Opcode::kIsNan},
    {"Lgamma", kHalfFloatDoubleMask, Opcode::kLgamma},
    {"Log", kFC, Opcode::kLog},
    {"Log1p", kFC, Opcode::kLog1p},
    {"LogicalNot", kBoolMask, Opcode::kLogicalNot, OpTrait::kCounts},
    {"Ndtri", kFloatDoubleMask, Opcode::kNdtri},
    {"Neg", kFC | kSignedMask, Opcode::kNeg, OpTrait::kCounts},
    {"Reciprocal", kFC, Opcode::kReciprocal},
    {"Rint", kHalfFloatDoubleMask, Opcode::kRint},
    {"Round", kFloatMask, Opcode::kRint},
    {"Round", Mask(DType::kInt64) | kHostInt32Mask, Itself},
    {"Rsqrt", kFC, Opcode::kRsqrt},
    {"Sigmoid", kFC, Opcode::kSigmoid},
    {"Sign", kFC | kSignedMask, Opcode::kSign},
    {"Sin", kFC, Opcode::kSin},
    {"Sinh", kFC, Opcode::kSinh},
    {"Sqrt", kFC, Opcode::kSqrt},
    {"Square", kFC | kSignedMask | kUnsignedMask, Opcode::kSquare},
    {"Tan", kFC, Opcode::kTan},
    {"Tanh", kFC, Opcode::kTanh},
};

constexpr ElementwiseOp kComplexOps[] = {{"Conj", kComplexMask, Opcode::kConj}};

// From complex to real: the result's type is an attribute of its own.
constexpr ElementwiseOp kComplexToReal[] = {
    {"Angle", Mask(DType::kComplex64), Opcode::kAngle},    {"Angle", Mask(DType::kComplex128), Opcode::kAngle},
    {"ComplexAbs", Mask(DType::kComplex64), Opcode::kAbs}, {"ComplexAbs", Mask(DType::kComplex128), Opcode::kAbs},
    {"Imag", Mask(DType::kComplex64), Opcode::kImag},      {"Imag", Mask(DType::kComplex128), Opcode::kImag},
    {"Real", Mask(DType::kComplex64), Opcode::kReal},      {"Real", Mask(DType::kComplex128), Opcode::kReal},
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

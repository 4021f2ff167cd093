// Elementwise ops of two operands, and the gradients that are such.
#include "tensorflow_plugin/ops/math/elementwise.h"
#include "tensorflow_plugin/ops/ops.h"

namespace xpu {
namespace {

constexpr TypeMask kFC = kFloatMask | kComplexMask;
constexpr TypeMask kIU = kSignedMask | kUnsignedMask;
constexpr TypeMask kReal = kFloatMask | kIU;

// The result, but 0 where x is, whatever the other operand.
FormulaValue UnlessZero(const FormulaValue& x, const FormulaValue& result) {
  return Select(x == 0.0, x.Const(0.0), result);
}
FormulaValue DivNoNan(const FormulaValue* x, double) { return UnlessZero(x[1], x[0] / x[1]); }
FormulaValue MulNoNan(const FormulaValue* x, double) { return UnlessZero(x[1], x[0] * x[1]); }
FormulaValue Xdivy(const FormulaValue* x, double) { return UnlessZero(x[0], x[0] / x[1]); }
FormulaValue Xlogy(const FormulaValue* x, double) { return UnlessZero(x[0], x[0] * Log(x[1])); }
FormulaValue Xlog1py(const FormulaValue* x, double) { return UnlessZero(x[0], x[0] * Log1p(x[1])); }
// Quotients of half and bfloat16 are rounded to that type before their fraction is dropped, as on the CPU.
template <DType T>
FormulaValue FloorDivide(const FormulaValue* x, double) {
  return Floor(Cast(Cast(x[0] / x[1], T), x[0].type()));
}
template <DType T>
FormulaValue TruncateDivide(const FormulaValue* x, double) {
  const FormulaValue q = Cast(Cast(x[0] / x[1], T), x[0].type());
  return Select(q < 0.0, Ceil(q), Floor(q));
}
// |x - y|^2 for complex operands.
FormulaValue SquaredDifference(const FormulaValue* x, double) {
  const FormulaValue d = x[0] - x[1];
  return d * Conj(d);
}

// In the order of TensorFlow's documentation. int32 is absent where TensorFlow itself has a kernel for every device.
constexpr ElementwiseOp kArithmetic[] = {
    {"Add", kFC | kSignedMask | Mask(DType::kUint8), Opcode::kAdd, OpTrait::kCounts},
    {"AddV2", kFC | kIU, Opcode::kAdd, OpTrait::kCounts},
    {"Sub", kFC | kIU, Opcode::kSub, OpTrait::kCounts},
    {"Mul", kFC | kIU, Opcode::kMul, OpTrait::kCounts},
    {"Div", kFC, Opcode::kDiv},
    {"Div", kIU, Opcode::kTruncateDiv},
    {"RealDiv", kFC, Opcode::kDiv},
    {"TruncateDiv", Mask(DType::kHalf), TruncateDivide<DType::kHalf>},
    {"TruncateDiv", Mask(DType::kBFloat16), TruncateDivide<DType::kBFloat16>},
    {"TruncateDiv", Mask(DType::kFloat), TruncateDivide<DType::kFloat>},
    {"TruncateDiv", Mask(DType::kDouble), TruncateDivide<DType::kDouble>},
    {"TruncateDiv", kIU | kHostInt32Mask, Opcode::kTruncateDiv},
    {"FloorDiv", kFloatDoubleMask | kIU, Opcode::kFloorDiv},
    {"FloorDiv", Mask(DType::kHalf), FloorDivide<DType::kHalf>},
    {"FloorDiv", Mask(DType::kBFloat16), FloorDivide<DType::kBFloat16>},
    {"FloorMod", kReal, Opcode::kFloorMod},
    {"Mod", kFloatDoubleMask | Mask(DType::kInt64), Opcode::kTruncateMod},
    {"TruncateMod", kFloatDoubleMask | Mask(DType::kInt64), Opcode::kTruncateMod},
    {"DivNoNan", kFC, DivNoNan},
    {"MulNoNan", kFC, MulNoNan},
    {"Maximum", kReal, Opcode::kMaximum, OpTrait::kCounts},
    {"Minimum", kReal, Opcode::kMinimum, OpTrait::kCounts},
    {"Pow", kFC | kSignedMask | kHostInt32Mask, Opcode::kPow},
    {"SquaredDifference", kFC | Mask(DType::kInt64), SquaredDifference},
    {"Xdivy", kFC, Xdivy},
    {"Xlogy", kFC, Xlogy},
    {"Xlog1py", kFC, Xlog1py},
    {"Equal", kFC | kIU | kBoolMask, Opcode::kEqual, OpTrait::kCounts},
    {"NotEqual", kFC | kIU | kBoolMask, Opcode::kNotEqual, OpTrait::kCounts},
    {"Less", kReal, Opcode::kLess, OpTrait::kCounts},
    {"LessEqual", kReal, Opcode::kLessEqual, OpTrait::kCounts},
    {"Greater", kReal, Opcode::kGreater, OpTrait::kCounts},
    {"GreaterEqual", kReal, Opcode::kGreaterEqual, OpTrait::kCounts},
    {"LogicalAnd", kBoolMask, Opcode::kLogicalAnd, OpTrait::kCounts},
    {"LogicalOr", kBoolMask, Opcode::kLogicalOr, OpTrait::kCounts},
    {"BitwiseAnd", kIU | kHostInt32Mask, Opcode::kBitwiseAnd},
    {"BitwiseOr", kIU | kHostInt32Mask, Opcode::kBitwiseOr},
    {"BitwiseXor", kIU | kHostInt32Mask, Opcode::kBitwiseXor},
    {"LeftShift", kIU | kHostInt32Mask, Opcode::kLeftShift},
    {"RightShift", kIU | kHostInt32Mask, Opcode::kRightShift},
};
constexpr ElementwiseOp kAtan2[] = {{"Atan2", kFloatMask, Opcode::kAtan2}};

// Gradients in terms of the result y and its gradient dy. Those of sigmoid and tanh leave it to their callers to
// conjugate a complex y. Where dy is 0, so are those of functions with a pole, even at the pole, as on the CPU.
FormulaValue ReciprocalGrad(const FormulaValue* x, double) {
  const FormulaValue y = Conj(x[0]);
  return UnlessZero(x[1], -(y * x[1] * y));
}
// Twice a root is in the type's range; half of dy may be below it.
FormulaValue SqrtGrad(const FormulaValue* x, double) { return UnlessZero(x[1], x[1] / (Conj(x[0]) * 2.0)); }
FormulaValue RsqrtGrad(const FormulaValue* x, double) {
  const FormulaValue y = Conj(x[0]);
  return UnlessZero(x[1], (x[1] * y) * (y * y * -0.5));
}
FormulaValue SigmoidGrad(const FormulaValue* x, double) { return x[1] * (x[0] * (1.0 - x[0])); }
FormulaValue TanhGrad(const FormulaValue* x, double) { return x[1] * (1.0 - Square(x[0])); }
constexpr ElementwiseOp kGradients[] = {
    {"InvGrad", kFC, ReciprocalGrad}, {"ReciprocalGrad", kFC, ReciprocalGrad},
    {"RsqrtGrad", kFC, RsqrtGrad},    {"SigmoidGrad", kFC, SigmoidGrad},
    {"SqrtGrad", kFC, SqrtGrad},      {"TanhGrad", kFC, TanhGrad},
};

// |x - y| <= tolerance, as on the CPU, whatever TensorFlow's documentation says of equality.
FormulaValue ApproximateEqual(const FormulaValue* x, double tolerance) { return Abs(x[0] - x[1]) <= tolerance; }
constexpr ElementwiseOp kApproximate[] = {{"ApproximateEqual", kFloatDoubleMask, ApproximateEqual, {}, "tolerance"}};

class ApproximateEqualKernel : public PairwiseKernel {
 public:
  using PairwiseKernel::PairwiseKernel;

 protected:
  Status CheckShapes(const Tensor& x, const Tensor& y) const override {
    XPU_REQUIRE(x.dims() == y.dims(), errors::InvalidArgument("x and y must be of the same shape. x shape: ",
                                                              x.ShapeString(), ". y shape: ", y.ShapeString()));
    return OkStatus();
  }
};

}  // namespace

void RegisterMathBinary(Registry& registry) {
  RegisterTable<BroadcastKernel>(registry, kArithmetic, {"x", "y", "z"});
  RegisterTable<BroadcastKernel>(registry, kAtan2, {"y", "x", "z"});
  RegisterTable<PairwiseKernel>(registry, kGradients, {"y", "dy", "z"});
  RegisterTable<ApproximateEqualKernel>(registry, kApproximate, {"x", "y", "z"});
}

}  // namespace xpu

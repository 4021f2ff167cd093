// Activation functions and their gradients.
#include "tensorflow_plugin/ops/math/elementwise.h"
#include "tensorflow_plugin/ops/ops.h"

namespace xpu {
namespace {

constexpr TypeMask kReal = kFloatMask | kSignedMask | kUnsignedMask | kHostInt32Mask;

// Selu's scale, and the scale times its alpha ("Self-Normalizing Neural Networks", Klambauer et al., 2017).
constexpr double kSeluScale = 1.0507009873554804934193349852946;
constexpr double kSeluScaleAlpha = 1.7580993408473768599402175208123;

FormulaValue Relu(const FormulaValue* x, double) { return Maximum(x[0], 0.0); }
FormulaValue Relu6(const FormulaValue* x, double) { return Minimum(Maximum(x[0], 0.0), 6.0); }
// The larger one is the same, infinities and NaN included, and takes fewer instructions.
FormulaValue LeakyRelu(const FormulaValue* x, double alpha) {
  return alpha > 0 && alpha <= 1 ? Maximum(x[0], x[0] * alpha) : Select(x[0] > 0.0, x[0], x[0] * alpha);
}
FormulaValue Elu(const FormulaValue* x, double) { return Select(x[0] < 0.0, Expm1(x[0]), x[0]); }
FormulaValue Selu(const FormulaValue* x, double) {
  return Select(x[0] < 0.0, Expm1(x[0]) * kSeluScaleAlpha, x[0] * kSeluScale);
}
// log(1 + exp(x)) without overflow and without losing small results.
FormulaValue Softplus(const FormulaValue* x, double) { return Maximum(x[0], 0.0) + Log1p(Exp(-Abs(x[0]))); }
FormulaValue Softsign(const FormulaValue* x, double) { return x[0] / (Abs(x[0]) + 1.0); }

constexpr ElementwiseOp kActivations[] = {
    {"Relu", kReal, Relu},
    {"Relu6", kReal, Relu6},
    {"LeakyRelu", kFloatMask, LeakyRelu, {}, "alpha"},
    {"Elu", kFloatMask, Elu},
    {"Selu", kFloatMask, Selu},
    {"Softplus", kFloatMask, Softplus},
    {"Softsign", kFloatMask, Softsign},
};

// x[0] is the incoming gradient. Where the rectifiers are flat it is multiplied by zero, not replaced: an infinite
// or NaN gradient shows as NaN, as on the CPU.
FormulaValue Gate(const FormulaValue& gradient, const FormulaValue& open) {
  return gradient * Cast(open, gradient.type());
}
FormulaValue ReluGrad(const FormulaValue* x, double) { return Gate(x[0], x[1] > 0.0); }
FormulaValue Relu6Grad(const FormulaValue* x, double) { return Gate(x[0], x[1] > 0.0 && x[1] < 6.0); }
FormulaValue LeakyReluGrad(const FormulaValue* x, double alpha) { return Select(x[1] > 0.0, x[0], x[0] * alpha); }
FormulaValue SoftplusGrad(const FormulaValue* x, double) { return x[0] / (Exp(-x[1]) + 1.0); }
FormulaValue SoftsignGrad(const FormulaValue* x, double) { return x[0] / Square(Abs(x[1]) + 1.0); }
constexpr ElementwiseOp kGradientsByFeatures[] = {
    {"ReluGrad", kReal, ReluGrad},
    {"Relu6Grad", kReal, Relu6Grad},
    {"LeakyReluGrad", kFloatMask, LeakyReluGrad, {}, "alpha"},
    {"SoftplusGrad", kFloatMask, SoftplusGrad},
    {"SoftsignGrad", kFloatMask, SoftsignGrad},
};

// These two are in terms of the activation's output.
FormulaValue EluGrad(const FormulaValue* x, double) { return Select(x[1] < 0.0, (x[1] + 1.0) * x[0], x[0]); }
FormulaValue SeluGrad(const FormulaValue* x, double) {
  return Select(x[1] < 0.0, x[0] * (x[1] + kSeluScaleAlpha), x[0] * kSeluScale);
}
constexpr ElementwiseOp kGradientsByOutputs[] = {
    {"EluGrad", kFloatMask, EluGrad},
    {"SeluGrad", kFloatMask, SeluGrad},
};

}  // namespace

void RegisterActivations(Registry& registry) {
  RegisterTable<UnaryKernel>(registry, kActivations, {"features", "activations"});
  RegisterTable<SameShapeKernel>(registry, kGradientsByFeatures, {"gradients", "features", "backprops"});
  RegisterTable<SameShapeKernel>(registry, kGradientsByOutputs, {"gradients", "outputs", "backprops"});
}

}  // namespace xpu

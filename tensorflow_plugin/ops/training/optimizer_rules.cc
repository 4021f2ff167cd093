#include "tensorflow_plugin/ops/training/optimizer_rules.h"

#include <string_view>

namespace xpu {
namespace {

void GradientDescent(const FormulaValue* in, bool, FormulaValue* out) { out[0] = in[0] - in[1] * in[2]; }

// var, accum, lr, grad, momentum
void Momentum(const FormulaValue* in, bool nesterov, FormulaValue* out) {
  const FormulaValue &lr = in[2], &grad = in[3], &momentum = in[4];
  out[1] = in[1] * momentum + grad;
  out[0] = nesterov ? in[0] - (grad * lr + out[1] * momentum * lr) : in[0] - out[1] * lr;
}
void KerasMomentum(const FormulaValue* in, bool nesterov, FormulaValue* out) {
  const FormulaValue step = in[2] * in[3];
  out[1] = in[1] * in[4] - step;
  out[0] = nesterov ? in[0] + (out[1] * in[4] - step) : in[0] + out[1];
}

// The moving averages of Adam and its kin.
FormulaValue Toward(const FormulaValue& average, const FormulaValue& value, const FormulaValue& decay) {
  return average + (value - average) * (1.0 - decay);
}
FormulaValue AdamRate(const FormulaValue& lr, const FormulaValue& beta1_power, const FormulaValue& beta2_power) {
  return lr * Sqrt(1.0 - beta2_power) / (1.0 - beta1_power);
}
// var, m, v, beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad
void Adam(const FormulaValue* in, bool nesterov, FormulaValue* out) {
  const FormulaValue &beta1 = in[6], &grad = in[9];
  const FormulaValue rate = AdamRate(in[5], in[3], in[4]);
  out[1] = Toward(in[1], grad, beta1);
  out[2] = Toward(in[2], Square(grad), in[7]);
  const FormulaValue direction = nesterov ? out[1] * beta1 + (1.0 - beta1) * grad : out[1];
  out[0] = in[0] - rate * direction / (Sqrt(out[2]) + in[8]);
}
// var, m, v, vhat, beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad
void AdamWithAmsgrad(const FormulaValue* in, bool, FormulaValue* out) {
  const FormulaValue rate = AdamRate(in[6], in[4], in[5]);
  out[1] = Toward(in[1], in[10], in[7]);
  out[2] = Toward(in[2], Square(in[10]), in[8]);
  out[3] = Maximum(in[3], out[2]);
  out[0] = in[0] - rate * out[1] / (Sqrt(out[3]) + in[9]);
}
// var, m, v, beta1_power, lr, beta1, beta2, epsilon, grad
void AdaMax(const FormulaValue* in, bool, FormulaValue* out) {
  out[1] = Toward(in[1], in[8], in[5]);
  out[2] = Maximum(in[6] * in[2], Abs(in[8]));
  out[0] = in[0] - in[4] / (1.0 - in[3]) * (out[1] / (out[2] + in[7]));
}

// var, ms, mom, lr, rho, momentum, epsilon, grad
void RmsProp(const FormulaValue* in, bool, FormulaValue* out) {
  out[1] = Toward(in[1], Square(in[7]), in[4]);
  out[2] = in[2] * in[5] + in[3] * in[7] / Sqrt(out[1] + in[6]);
  out[0] = in[0] - out[2];
}
// var, mg, ms, mom, lr, rho, momentum, epsilon, grad
void CenteredRmsProp(const FormulaValue* in, bool, FormulaValue* out) {
  out[1] = Toward(in[1], in[8], in[5]);
  out[2] = Toward(in[2], Square(in[8]), in[5]);
  out[3] = in[3] * in[6] + in[4] * in[8] / Sqrt(out[2] - Square(out[1]) + in[7]);
  out[0] = in[0] - out[3];
}

// var, accum, lr, grad
void Adagrad(const FormulaValue* in, bool update_slots, FormulaValue* out) {
  const FormulaValue accum = update_slots ? in[1] + Square(in[3]) : in[1];
  if (update_slots) out[1] = accum;
  out[0] = in[0] - in[2] * in[3] / Sqrt(accum);
}
// var, accum, lr, epsilon, grad
void AdagradV2(const FormulaValue* in, bool update_slots, FormulaValue* out) {
  const FormulaValue accum = update_slots ? in[1] + Square(in[4]) : in[1];
  if (update_slots) out[1] = accum;
  out[0] = in[0] - in[2] * in[4] / (Sqrt(accum) + in[3]);
}
// var, accum, accum_update, lr, rho, epsilon, grad
void Adadelta(const FormulaValue* in, bool, FormulaValue* out) {
  const FormulaValue &rho = in[4], &epsilon = in[5], &grad = in[6];
  const FormulaValue rest = 1.0 - rho;
  out[1] = in[1] * rho + Square(grad) * rest;
  const FormulaValue update = Sqrt(in[2] + epsilon) / Sqrt(out[1] + epsilon) * grad;
  out[2] = in[2] * rho + Square(update) * rest;
  out[0] = in[0] - update * in[3];
}

// var, m, lr, alpha, sign_decay, beta, grad
void AddSign(const FormulaValue* in, bool, FormulaValue* out) {
  out[1] = Toward(in[1], in[6], in[5]);
  const FormulaValue agreement = Sign(in[6]) * Sign(out[1]);
  out[0] = in[0] - in[2] * (in[3] + in[4] * agreement) * in[6];
}
// var, m, lr, logbase, sign_decay, beta, grad
void PowerSign(const FormulaValue* in, bool, FormulaValue* out) {
  out[1] = Toward(in[1], in[6], in[5]);
  const FormulaValue agreement = Sign(in[6]) * Sign(out[1]);
  out[0] = in[0] - in[2] * Exp(in[3] * in[4] * agreement) * in[6];
}

// The step of a proximal method: shrinks by l1, scales by l2.
// A negative l1 shrinks nothing.
FormulaValue Proximal(const FormulaValue& stepped, const FormulaValue& rate, const FormulaValue& l1,
                      const FormulaValue& l2) {
  return Sign(stepped) * Maximum(Abs(stepped) - rate * Maximum(l1, 0.0), 0.0) / (l2 * rate + 1.0);
}
// var, alpha, l1, l2, delta
void ProximalGradientDescent(const FormulaValue* in, bool, FormulaValue* out) {
  out[0] = Proximal(in[0] - in[1] * in[4], in[1], in[2], in[3]);
}
// var, accum, lr, l1, l2, grad
void ProximalAdagrad(const FormulaValue* in, bool, FormulaValue* out) {
  out[1] = in[1] + Square(in[5]);
  const FormulaValue rate = in[2] / Sqrt(out[1]);
  out[0] = Proximal(in[0] - rate * in[5], rate, in[3], in[4]);
}

// var, gradient_accumulator, gradient_squared_accumulator, grad, lr, l1, l2, global_step
void AdagradDA(const FormulaValue* in, bool, FormulaValue* out) {
  const FormulaValue &lr = in[4], &step = in[7];
  out[1] = in[1] + in[3];
  out[2] = in[2] + Square(in[3]);
  const FormulaValue shrunk = Sign(out[1]) * Maximum(Abs(out[1]) - step * Maximum(in[5], 0.0), 0.0);
  out[0] = -(lr * shrunk) / (in[6] * (step * lr) + Sqrt(out[2]));
}

// "Ad Click Prediction: a View from the Trenches" (McMahan et al., 2013), as TensorFlow documents it.
void FtrlStep(const FormulaValue* in, const FormulaValue& grad, const FormulaValue& shrunk, const FormulaValue& lr,
              const FormulaValue& l1, const FormulaValue& l2, const FormulaValue& lr_power, bool multiply_linear_by_lr,
              FormulaValue* out) {
  const FormulaValue accum = in[1] + Square(grad);
  const FormulaValue power = -lr_power;
  const FormulaValue new_power = Pow(accum, power);
  const FormulaValue sigma_lr = (new_power - Pow(in[1], power)) * in[0];
  FormulaValue bound, quadratic;
  if (multiply_linear_by_lr) {
    out[2] = in[2] + shrunk * lr - sigma_lr;
    quadratic = new_power + l2 * lr * 2.0;
    bound = l1 * lr;
  } else {
    out[2] = in[2] + shrunk - sigma_lr / lr;
    quadratic = new_power / lr + l2 * 2.0;
    bound = l1;
  }
  out[1] = accum;
  out[0] = (Minimum(Maximum(out[2], -bound), bound) - out[2]) / quadratic;
}
// var, accum, linear, grad, lr, l1, l2, lr_power
void Ftrl(const FormulaValue* in, bool multiply, FormulaValue* out) {
  FtrlStep(in, in[3], in[3], in[4], in[5], in[6], in[7], multiply, out);
}
// var, accum, linear, grad, lr, l1, l2, l2_shrinkage, lr_power
void FtrlV2(const FormulaValue* in, bool multiply, FormulaValue* out) {
  FtrlStep(in, in[3], in[3] + in[7] * in[0] * 2.0, in[4], in[5], in[6], in[8], multiply, out);
}

constexpr TypeMask kFC = kFloatMask | kComplexMask;
constexpr bool kSparse = true;
constexpr TypeMask kNoBFloat16 = kFloatMask & ~Mask(DType::kBFloat16);

}  // namespace

const std::vector<ApplyOp>& ApplyOps() {
  static const auto* ops = new std::vector<ApplyOp>{
      {"ResourceApplyGradientDescent", kFC, {"var"}, {"alpha", "delta"}, GradientDescent, nullptr, "delta"},
      {"ResourceApplyMomentum",
       kFC,
       {"var", "accum"},
       {"lr", "grad", "momentum"},
       Momentum,
       "use_nesterov",
       "grad",
       kSparse},
      {"ResourceApplyKerasMomentum",
       kFC,
       {"var", "accum"},
       {"lr", "grad", "momentum"},
       KerasMomentum,
       "use_nesterov",
       "grad",
       kSparse},
      {"ResourceApplyAdam",
       kFC,
       {"var", "m", "v"},
       {"beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon", "grad"},
       Adam,
       "use_nesterov"},
      {"ResourceApplyAdamWithAmsgrad",
       kFloatMask,
       {"var", "m", "v", "vhat"},
       {"beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon", "grad"},
       AdamWithAmsgrad},
      {"ResourceApplyAdaMax",
       kNoBFloat16,
       {"var", "m", "v"},
       {"beta1_power", "lr", "beta1", "beta2", "epsilon", "grad"},
       AdaMax},
      {"ResourceApplyRMSProp",
       kFC,
       {"var", "ms", "mom"},
       {"lr", "rho", "momentum", "epsilon", "grad"},
       RmsProp,
       nullptr,
       "grad",
       kSparse},
      {"ResourceApplyCenteredRMSProp",
       kFC,
       {"var", "mg", "ms", "mom"},
       {"lr", "rho", "momentum", "epsilon", "grad"},
       CenteredRmsProp,
       nullptr,
       "grad",
       kSparse},
      {"ResourceApplyAdagrad", kFC, {"var", "accum"}, {"lr", "grad"}, Adagrad, "update_slots", "grad", kSparse},
      {"ResourceApplyAdagradV2",
       kFC,
       {"var", "accum"},
       {"lr", "epsilon", "grad"},
       AdagradV2,
       "update_slots",
       "grad",
       kSparse},
      {"ResourceApplyAdadelta",
       kFC,
       {"var", "accum", "accum_update"},
       {"lr", "rho", "epsilon", "grad"},
       Adadelta,
       nullptr,
       "grad",
       kSparse},
      {"ResourceApplyAddSign", kFloatMask, {"var", "m"}, {"lr", "alpha", "sign_decay", "beta", "grad"}, AddSign},
      {"ResourceApplyPowerSign", kFloatMask, {"var", "m"}, {"lr", "logbase", "sign_decay", "beta", "grad"}, PowerSign},
      {"ResourceApplyProximalGradientDescent",
       kFloatDoubleMask,
       {"var"},
       {"alpha", "l1", "l2", "delta"},
       ProximalGradientDescent,
       nullptr,
       "delta",
       kSparse},
      {"ResourceApplyProximalAdagrad",
       kFloatDoubleMask,
       {"var", "accum"},
       {"lr", "l1", "l2", "grad"},
       ProximalAdagrad,
       nullptr,
       "grad",
       kSparse},
      {"ResourceApplyAdagradDA",
       kFloatDoubleMask,
       {"var", "gradient_accumulator", "gradient_squared_accumulator"},
       {"grad", "lr", "l1", "l2", "global_step"},
       AdagradDA,
       nullptr,
       "grad",
       kSparse},
      {"ResourceApplyFtrl",
       kFloatMask,
       {"var", "accum", "linear"},
       {"grad", "lr", "l1", "l2", "lr_power"},
       Ftrl,
       "multiply_linear_by_lr",
       "grad",
       kSparse},
      {"ResourceApplyFtrlV2",
       kFloatMask,
       {"var", "accum", "linear"},
       {"grad", "lr", "l1", "l2", "l2_shrinkage", "lr_power"},
       FtrlV2,
       "multiply_linear_by_lr",
       "grad",
       kSparse},
  };
  return *ops;
}

bool HasReferenceForm(const ApplyOp& op) {
  const std::string name = op.name;
  return name != "ResourceApplyKerasMomentum" && name != "ResourceApplyAdamWithAmsgrad";
}

UpdateProgram MakeUpdate(const ApplyOp& op, DType type, bool flag) {
  const int num_variables = static_cast<int>(op.variables.size());
  const int num_inputs = num_variables + static_cast<int>(op.arguments.size());
  UpdateProgram update;
  ProgramBuilder builder;
  FormulaValue in[Program::kMaxInputs], out[Program::kMaxOutputs];
  for (int i = 0; i < num_inputs; ++i) {
    const bool is_step = i >= num_variables && op.arguments[i - num_variables] == std::string("global_step");
    in[i] = {&builder, builder.Input(is_step ? DType::kInt64 : type)};
  }
  for (int i = 0; i < num_inputs; ++i) in[i] = Cast(in[i], ComputedIn(type));
  op.rule(in, flag, out);
  for (int i = 0; i < num_variables; ++i) {
    if (out[i].builder == nullptr) continue;
    builder.Output(Cast(out[i], type).reg);
    update.written.push_back(i);
  }
  update.program = builder.Build();
  update.error = builder.error();
  return update;
}

UpdateProgram ReadUpdate(Construction& c, const ApplyOp& op, DType type) {
  const bool flag = op.flag && c.Attr<bool>(op.flag);
  UpdateProgram update;
  if (!c.status().ok()) return update;
  update = MakeUpdate(op, type, flag);
  if (update.program == nullptr) c.Fail(errors::Internal("no program for ", op.name, ": ", update.error));
  return update;
}

Need NeedUpdate(const ApplyOp& op) {
  return [&op](Needs& n) {
    for (const bool flag : {false, true}) {
      const UpdateProgram update = MakeUpdate(op, n.type("T"), flag);
      n.AskProgram(update.program, update.error);
    }
  };
}

Status CheckVariables(const ApplyOp& op, DType type, const std::vector<LockedVariable>& variables) {
  const Tensor first = variables[0].value();
  for (size_t i = 0; i < variables.size(); ++i) {
    const Tensor value = variables[i].value();
    XPU_REQUIRE(value.dtype() == type,
                errors::InvalidArgument(op.variables[i], " is a variable of type ", Name(value.dtype()),
                                        ", the update is of type ", Name(type)));
    XPU_REQUIRE(value.dims() == first.dims(),
                errors::InvalidArgument("var and ", op.variables[i], " do not have the same shape", first.ShapeString(),
                                        " ", value.ShapeString()));
    for (size_t k = 0; k < i; ++k) {
      XPU_REQUIRE(!variables[k].IsSameAs(variables[i]),
                  errors::InvalidArgument(op.variables[k], " and ", op.variables[i], " are the same variable"));
    }
  }
  return OkStatus();
}

Status CheckScalar(const ApplyOp& op, int argument, const Tensor& value) {
  // TensorFlow takes any single number for this one.
  const bool any_rank = std::string_view(op.arguments[argument]) == "sign_decay";
  XPU_REQUIRE(any_rank ? value.num_elements() == 1 : value.IsScalar(),
              errors::InvalidArgument(op.arguments[argument], " is not a scalar: ", value.ShapeString()));
  return OkStatus();
}

}  // namespace xpu

// The rules of optimizers: what one step computes, as formulas over variables, hyperparameters and the gradient. One
// table serves the ops that update whole variables and those that update some of their rows.
#ifndef TENSORFLOW_PLUGIN_OPS_TRAINING_OPTIMIZER_RULES_H_
#define TENSORFLOW_PLUGIN_OPS_TRAINING_OPTIMIZER_RULES_H_

#include <string>
#include <vector>

#include "tensorflow_plugin/framework/variables.h"
#include "tensorflow_plugin/ops/math/elementwise.h"

namespace xpu {

// `in` are the op's inputs in order, the variables first. Sets out[i] to the new value of variable i, where it
// changes. `flag` is the op's boolean attribute.
using UpdateRule = void (*)(const FormulaValue* in, bool flag, FormulaValue* out);

struct ApplyOp {
  const char* name;  // ResourceApply<Rule>
  TypeMask types;
  std::vector<const char*> variables;
  // In order. The gradient is `gradient`, all others are scalars, of the op's type but for the int64 global_step.
  std::vector<const char*> arguments;
  UpdateRule rule;
  const char* flag = nullptr;
  const char* gradient = "grad";
  // There is a ResourceSparseApply<Rule> too: the same arguments, with indices after the gradient, called grad.
  bool sparse = false;

  bool IsGradient(int argument) const { return arguments[argument] == std::string(gradient); }
};

const std::vector<ApplyOp>& ApplyOps();
// True if TensorFlow has the op on the references of TensorFlow 1 too: Apply<Rule>, SparseApply<Rule>.
bool HasReferenceForm(const ApplyOp& op);

// The program of an update, and which variable each of its outputs is.
struct UpdateProgram {
  const Program* program = nullptr;
  std::vector<int> written;
  std::string error;
};
UpdateProgram MakeUpdate(const ApplyOp& op, DType type, bool flag);
// For a kernel's constructor: reads the flag, builds the program.
UpdateProgram ReadUpdate(Construction& c, const ApplyOp& op, DType type);
// The update's programs as what the backend must support.
Need NeedUpdate(const ApplyOp& op);

// Refuses variables of another type, of different shapes, or named twice.
Status CheckVariables(const ApplyOp& op, DType type, const std::vector<LockedVariable>& variables);
// Refuses hyperparameter `argument` if it is not a scalar.
Status CheckScalar(const ApplyOp& op, int argument, const Tensor& value);

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_OPS_TRAINING_OPTIMIZER_RULES_H_

// Programs written as formulas: FormulaValue is a register of a program under construction, with arithmetic.
//
//   FormulaValue Softsign(const FormulaValue* x, double) { return x[0] / (Abs(x[0]) + 1.0); }
//
// A formula is called once per type when a kernel is made; it emits instructions, it computes nothing.
#ifndef TENSORFLOW_PLUGIN_OPS_MATH_FORMULA_H_
#define TENSORFLOW_PLUGIN_OPS_MATH_FORMULA_H_

#include "tensorflow_plugin/primitives/program.h"

namespace xpu {

struct FormulaValue {
  ProgramBuilder* builder = nullptr;
  ProgramBuilder::Reg reg;

  DType type() const { return reg.type; }
  // A constant of this value's type.
  FormulaValue Const(double c) const { return {builder, builder->Const(reg.type, c)}; }
};

inline FormulaValue Apply(Opcode op, const FormulaValue& a) { return {a.builder, a.builder->Apply(op, a.reg)}; }
inline FormulaValue Apply(Opcode op, const FormulaValue& a, const FormulaValue& b) {
  return {a.builder, a.builder->Apply(op, a.reg, b.reg)};
}
inline FormulaValue Cast(const FormulaValue& a, DType to) { return {a.builder, a.builder->Cast(a.reg, to)}; }
inline FormulaValue Select(const FormulaValue& condition, const FormulaValue& then, const FormulaValue& otherwise) {
  return {then.builder, then.builder->Apply(Opcode::kSelect, condition.reg, then.reg, otherwise.reg)};
}

// Any other instruction is Apply(Opcode::k...).
#define XPU_VALUE_UNARY(name) \
  inline FormulaValue name(const FormulaValue& a) { return Apply(Opcode::k##name, a); }
XPU_VALUE_UNARY(Neg)
XPU_VALUE_UNARY(Abs)
XPU_VALUE_UNARY(Sign)
XPU_VALUE_UNARY(Square)
XPU_VALUE_UNARY(Sqrt)
XPU_VALUE_UNARY(Rsqrt)
XPU_VALUE_UNARY(Exp)
XPU_VALUE_UNARY(Expm1)
XPU_VALUE_UNARY(Log)
XPU_VALUE_UNARY(Log1p)
XPU_VALUE_UNARY(Tanh)
XPU_VALUE_UNARY(Sigmoid)
XPU_VALUE_UNARY(Ceil)
XPU_VALUE_UNARY(Floor)
XPU_VALUE_UNARY(LogicalNot)
#undef XPU_VALUE_UNARY
// Complex types only; a real value is its own conjugate.
inline FormulaValue Conj(const FormulaValue& a) { return IsComplex(a.type()) ? Apply(Opcode::kConj, a) : a; }

#define XPU_VALUE_BINARY(name, op)                                                                              \
  inline FormulaValue name(const FormulaValue& a, const FormulaValue& b) { return Apply(Opcode::k##op, a, b); } \
  inline FormulaValue name(const FormulaValue& a, double b) { return Apply(Opcode::k##op, a, a.Const(b)); }     \
  inline FormulaValue name(double a, const FormulaValue& b) { return Apply(Opcode::k##op, b.Const(a), b); }
XPU_VALUE_BINARY(operator+, Add)
XPU_VALUE_BINARY(operator-, Sub)
XPU_VALUE_BINARY(operator*, Mul)
XPU_VALUE_BINARY(operator/, Div)
XPU_VALUE_BINARY(operator<, Less)
XPU_VALUE_BINARY(operator<=, LessEqual)
XPU_VALUE_BINARY(operator>, Greater)
XPU_VALUE_BINARY(operator==, Equal)
XPU_VALUE_BINARY(Maximum, Maximum)
XPU_VALUE_BINARY(Minimum, Minimum)
XPU_VALUE_BINARY(Pow, Pow)
#undef XPU_VALUE_BINARY
inline FormulaValue operator&&(const FormulaValue& a, const FormulaValue& b) {
  return Apply(Opcode::kLogicalAnd, a, b);
}
inline FormulaValue operator||(const FormulaValue& a, const FormulaValue& b) { return Apply(Opcode::kLogicalOr, a, b); }
inline FormulaValue operator-(const FormulaValue& a) { return Neg(a); }

// `in` are the op's operands, `attribute` the value of its one float attribute, if it has one.
// Formulas over half and bfloat16 run in float: only the result is rounded.
using Formula = FormulaValue (*)(const FormulaValue* in, double attribute);

// The type that a formula over `t` computes in.
constexpr DType ComputedIn(DType t) { return IsReducedFloat(t) ? DType::kFloat : t; }

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_OPS_MATH_FORMULA_H_

#include "tensorflow_plugin/commands/divide_program.h"

#include <algorithm>
#include <vector>

namespace xpu::commands {
namespace {

template <typename Visit>
void ForEachOperand(const Instr& instr, Visit&& visit) {
  const int arity = Info(instr.op).arity;
  visit(instr.a);
  if (arity > 1) visit(instr.b);
  if (arity > 2) visit(instr.c);
}

class Divider {
 public:
  Divider(const Program& program, const std::vector<InputOfPart>& inputs)
      : p_(program),
        inputs_(inputs),
        element_(static_cast<int>(std::find(inputs.begin(), inputs.end(), InputOfPart::kElement) - inputs.begin())),
        live_(NeededFor({p_.outputs().begin(), p_.outputs().end()}, -1)) {
    for (InputOfPart input : inputs) kinds_.push_back(input);
    kinds_.resize(p_.first_instr_register(), InputOfPart::kAllowed);  // constants
    for (const Instr& instr : p_.instrs()) {
      InputOfPart kind = InputOfPart::kAllowed;
      ForEachOperand(instr, [&](int r) {
        if (kind != InputOfPart::kForeign && kinds_[r] != InputOfPart::kAllowed) kind = kinds_[r];
      });
      kinds_.push_back(kind);
    }
  }

  bool Divide(DividedProgram* divided) const {
    for (int value = p_.num_registers() - 1; value >= p_.first_instr_register(); --value) {
      if (!IsTheOneValue(value)) continue;
      return Make({value}, -1, &divided->first) &&
             Make({p_.outputs().begin(), p_.outputs().end()}, value, &divided->rest);
    }
    return false;
  }

 private:
  const Instr& InstrOf(int reg) const { return p_.instrs()[reg - p_.first_instr_register()]; }

  // The registers that the given ones are computed of, and themselves. Those of `known` are not needed for it.
  std::vector<bool> NeededFor(const std::vector<int>& registers, int known) const {
    std::vector<bool> needed(p_.num_registers(), false);
    for (int r : registers) needed[r] = true;
    for (int r = p_.num_registers() - 1; r >= p_.first_instr_register(); --r) {
      if (needed[r] && r != known) ForEachOperand(InstrOf(r), [&](int operand) { needed[operand] = true; });
    }
    return needed;
  }

  // True if the element reaches the outputs through this register alone.
  bool IsTheOneValue(int value) const {
    if (!live_[value] || kinds_[value] != InputOfPart::kElement) return false;
    const std::vector<bool> inside = NeededFor({value}, -1);
    const auto is_hidden = [&](int r) { return inside[r] && r != value && kinds_[r] == InputOfPart::kElement; };
    for (int r : p_.outputs()) {
      if (r == value || is_hidden(r)) return false;
    }
    for (int r = p_.first_instr_register(); r < p_.num_registers(); ++r) {
      bool reads_hidden = false;
      ForEachOperand(InstrOf(r), [&](int operand) { reads_hidden = reads_hidden || is_hidden(operand); });
      if (reads_hidden && live_[r] && !inside[r]) return false;
    }
    // Another input with the element may be read elsewhere.
    for (int k = 0; k < p_.num_inputs(); ++k) {
      if (inputs_[k] == InputOfPart::kElement && live_[k] && !inside[k]) return false;
    }
    return true;
  }

  // The instructions that these outputs need. The value of `known`, if it is a register, is there instead of the
  // element.
  bool Make(const std::vector<int>& outputs, int known, DividedProgram::Part* part) const {
    const std::vector<bool> needed = NeededFor(outputs, known);
    ProgramBuilder builder;
    std::vector<ProgramBuilder::Reg> registers(p_.num_registers());
    const auto add_input = [&](int input, DType type) {
      part->inputs.push_back(input);
      return builder.Input(type);
    };
    const bool is_first = known < 0;
    if (is_first) {
      const ProgramBuilder::Reg element = add_input(element_, p_.inputs()[element_]);
      for (int k = 0; k < p_.num_inputs(); ++k) {
        if (inputs_[k] == InputOfPart::kElement) registers[k] = element;
      }
    }
    for (int k = 0; k < p_.num_inputs(); ++k) {
      if (!is_first && k == element_) registers[known] = add_input(k, p_.type(known));
      if (inputs_[k] != InputOfPart::kElement && needed[k]) registers[k] = add_input(k, p_.inputs()[k]);
    }
    for (int r = p_.num_inputs(); r < p_.first_instr_register(); ++r) {
      if (needed[r]) registers[r] = builder.Const(p_.constants()[r - p_.num_inputs()]);
    }
    for (int r = p_.first_instr_register(); r < p_.num_registers(); ++r) {
      if (!needed[r] || r == known) continue;
      const Instr& instr = InstrOf(r);
      registers[r] = builder.Again(instr, registers[instr.a], registers[instr.b], registers[instr.c]);
    }
    for (int r : outputs) builder.Output(registers[r]);
    part->program = builder.Build();
    return part->program != nullptr;
  }

  const Program& p_;
  const std::vector<InputOfPart>& inputs_;
  const int element_;
  const std::vector<bool> live_;    // by register: an output needs it
  std::vector<InputOfPart> kinds_;  // by register: kElement if it depends on the element and on what is allowed
};

}  // namespace

bool Divide(const Program& program, const std::vector<InputOfPart>& inputs, DividedProgram* divided) {
  return Divider(program, inputs).Divide(divided);
}

}  // namespace xpu::commands

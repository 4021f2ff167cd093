// What instructions cost, roughly, on any device.
#ifndef TENSORFLOW_PLUGIN_COMMANDS_COST_H_
#define TENSORFLOW_PLUGIN_COMMANDS_COST_H_

#include <cstdint>

#include "tensorflow_plugin/primitives/program.h"

namespace xpu::commands {

// In simple instructions.
inline int64_t CostOf(const Instr& instr) {
  const bool simple = instr.op == EOp::kCast || instr.op == EOp::kNeg || instr.op == EOp::kAbs ||
                      instr.op == EOp::kSign || instr.op == EOp::kSquare || Info(instr.op).arity > 1;
  return simple && instr.op != EOp::kPow && instr.op != EOp::kAtan2 ? 1 : 8;
}
inline int64_t CostOf(const Program& program) {
  int64_t cost = 0;
  for (const Instr& instr : program.instrs()) cost += CostOf(instr);
  return cost;
}

}  // namespace xpu::commands

#endif  // TENSORFLOW_PLUGIN_COMMANDS_COST_H_

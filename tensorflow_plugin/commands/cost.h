// The rough cost of instructions on any device, for passes that weigh computing a value again against storing it. One
// backend's time, measured for each type, is another thing: backends/cpu/cost.cc, which chooses a command's thread.
#ifndef TENSORFLOW_PLUGIN_COMMANDS_COST_H_
#define TENSORFLOW_PLUGIN_COMMANDS_COST_H_

#include <cstdint>

#include "tensorflow_plugin/primitives/program.h"

namespace xpu::commands {

// In simple instructions. Those of several operands are simple but for some functions.
inline int64_t CostOf(const Instr& instr) {
  switch (instr.op) {
    case Opcode::kCast:
    case Opcode::kNeg:
    case Opcode::kAbs:
    case Opcode::kSign:
    case Opcode::kSquare:
    case Opcode::kPopulationCount:
      return 1;
    case Opcode::kPow:
    case Opcode::kAtan2:
      return 8;
    case Opcode::kIgamma:
    case Opcode::kIgammac:
    case Opcode::kIgammaGradA:
    case Opcode::kGammaSampleGrad:
    case Opcode::kPolygamma:
    case Opcode::kZeta:
    case Opcode::kBetainc:
      return 100;
    default:
      return Info(instr.op).arity > 1 ? 1 : 8;
  }
}
inline int64_t CostOf(const Program& program) {
  int64_t cost = 0;
  for (const Instr& instr : program.instrs()) cost += CostOf(instr);
  return cost;
}

}  // namespace xpu::commands

#endif  // TENSORFLOW_PLUGIN_COMMANDS_COST_H_

// What instructions cost, roughly, on any device.
#ifndef TENSORFLOW_PLUGIN_COMMANDS_COST_H_
#define TENSORFLOW_PLUGIN_COMMANDS_COST_H_

#include <cstdint>

#include "tensorflow_plugin/primitives/program.h"

namespace xpu::commands {

// In simple instructions. Those of several operands are simple but for some functions.
inline int64_t CostOf(const Instr& instr) {
  switch (instr.op) {
    case EOp::kCast:
    case EOp::kNeg:
    case EOp::kAbs:
    case EOp::kSign:
    case EOp::kSquare:
    case EOp::kPopulationCount:
      return 1;
    case EOp::kPow:
    case EOp::kAtan2:
      return 8;
    case EOp::kIgamma:
    case EOp::kIgammac:
    case EOp::kIgammaGradA:
    case EOp::kGammaSampleGrad:
    case EOp::kPolygamma:
    case EOp::kZeta:
    case EOp::kBetainc:
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

// The vectorised instructions of one instruction set, by op and type.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_INSTRUCTION_TABLE_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_INSTRUCTION_TABLE_H_

#include "tensorflow_plugin/backends/cpu/elementwise/instructions.h"

namespace xpu::cpu {

// Entries are null where there is no vectorised loop. Half and bfloat16 have none of their own: their registers are
// float's.
struct InstrTable {
  InstrFn op[kNumOpcodes][kNumDTypes] = {};
  InstrFn of_one[2][kNumOpcodes][kNumDTypes] = {};  // the first or the second operand is one element for all
  InstrFn cast[kNumDTypes][kNumDTypes] = {};        // [from][to]
  InstrFn load[kNumDTypes] = {};
  InstrFn store[kNumDTypes] = {};
};

// For the active instruction set.
void AddFloatInstrs(InstrTable* table);
void AddComplexInstrs(InstrTable* table);
void AddIntegerInstrs(InstrTable* table);

}  // namespace xpu::cpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_INSTRUCTION_TABLE_H_

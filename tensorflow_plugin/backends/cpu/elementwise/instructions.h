// The loops that programs run on tiles: vectorised for the active instruction set where there is one, else the
// reference's.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_INSTRUCTIONS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_INSTRUCTIONS_H_

#include "tensorflow_plugin/backends/plain/instructions.h"

namespace xpu::cpu {

using plain::InstrFn;

InstrFn FindInstr(Opcode op, DType type, DType result);
// The same of one element for all as its first (0) or second (1) operand; nullptr where that has no loop of its own.
InstrFn FindInstrOfOne(Opcode op, DType type, int operand);
// Storage <-> register; nullptr where they are the same.
InstrFn FindLoad(DType type);
InstrFn FindStore(DType type);

}  // namespace xpu::cpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_INSTRUCTIONS_H_

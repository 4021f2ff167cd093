#include "tensorflow_plugin/backends/cpu/elementwise/float_loops.h"
#include "tensorflow_plugin/backends/cpu/elementwise/instruction_table.h"
#include "tensorflow_plugin/backends/cpu/simd/isa.h"

namespace xpu::cpu {

void AddFloatInstrs(InstrTable* table) { XPU_PICK_ISA(AddFloatInstrs)(table); }

}  // namespace xpu::cpu

#include "tensorflow_plugin/backends/cpu/elementwise/instruction_table.h"
#include "tensorflow_plugin/backends/cpu/elementwise/integer_loops.h"
#include "tensorflow_plugin/backends/cpu/simd/isa.h"

namespace xpu::cpu {

void AddIntegerInstrs(InstrTable* table) { XPU_PICK_ISA(AddIntegerInstrs)(table); }

}  // namespace xpu::cpu

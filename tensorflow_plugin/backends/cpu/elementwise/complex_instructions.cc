#include "tensorflow_plugin/backends/cpu/elementwise/complex_loops.h"
#include "tensorflow_plugin/backends/cpu/elementwise/instruction_table.h"
#include "tensorflow_plugin/backends/cpu/simd/isa.h"

namespace xpu::cpu {

void AddComplexInstrs(InstrTable* table) { XPU_PICK_ISA(AddComplexInstrs)(table); }

}  // namespace xpu::cpu

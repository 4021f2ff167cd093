#include "tensorflow_plugin/backends/cpu/elementwise/instruction_table.h"
#include "tensorflow_plugin/backends/cpu/simd/isa.h"
#include "tensorflow_plugin/backends/plain/scalar_ops.h"

namespace xpu::cpu {
namespace {

#define XPU_ISA_FILE "tensorflow_plugin/backends/cpu/elementwise/integer_loops.inc"
#include "tensorflow_plugin/backends/cpu/simd/each_isa.inc"

}  // namespace

void AddIntegerInstrs(InstrTable* table) { XPU_PICK_ISA(AddIntegerInstrs)(table); }

}  // namespace xpu::cpu

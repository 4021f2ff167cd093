#include "tensorflow_plugin/backends/cpu/instruction_table.h"
#include "tensorflow_plugin/backends/cpu/isa.h"
#include "tensorflow_plugin/backends/plain/scalar_ops.h"

namespace xpu::cpu {
namespace {

#define XPU_ISA_FILE "tensorflow_plugin/backends/cpu/integer_loops.inc"
#include "tensorflow_plugin/backends/cpu/each_isa.inc"

}  // namespace

void AddIntegerInstrs(InstrTable* table) { XPU_PICK_ISA(AddIntegerInstrs)(table); }

}  // namespace xpu::cpu

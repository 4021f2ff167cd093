#include <type_traits>

#include "tensorflow_plugin/backends/cpu/function_tables.h"
#include "tensorflow_plugin/backends/cpu/instruction_table.h"
#include "tensorflow_plugin/backends/cpu/isa.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace xpu::cpu {
namespace {

#define XPU_ISA_FILE "tensorflow_plugin/backends/cpu/float_loops.inc"
#include "tensorflow_plugin/backends/cpu/each_isa.inc"

}  // namespace

void AddFloatInstrs(InstrTable* table) { XPU_PICK_ISA(AddFloatInstrs)(table); }

}  // namespace xpu::cpu

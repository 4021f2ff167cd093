#include <type_traits>

#include "tensorflow_plugin/backends/cpu/elementwise/function_tables.h"
#include "tensorflow_plugin/backends/cpu/elementwise/instruction_table.h"
#include "tensorflow_plugin/backends/cpu/simd/isa.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace xpu::cpu {
namespace {

#define XPU_ISA_FILE "tensorflow_plugin/backends/cpu/elementwise/float_loops.inc"
#include "tensorflow_plugin/backends/cpu/simd/each_isa.inc"

}  // namespace

void AddFloatInstrs(InstrTable* table) { XPU_PICK_ISA(AddFloatInstrs)(table); }

}  // namespace xpu::cpu

#include <type_traits>

#include "tensorflow_plugin/backends/host/function_tables.h"
#include "tensorflow_plugin/backends/host/instruction_table.h"
#include "tensorflow_plugin/backends/host/isa.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace xpu::host {
namespace {

#define XPU_ISA_FILE "tensorflow_plugin/backends/host/float_loops.inc"
#include "tensorflow_plugin/backends/host/each_isa.inc"

}  // namespace

void AddFloatInstrs(InstrTable* table) { XPU_PICK_ISA(AddFloatInstrs)(table); }

}  // namespace xpu::host

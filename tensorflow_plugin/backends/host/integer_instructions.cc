#include "tensorflow_plugin/backends/host/instruction_table.h"
#include "tensorflow_plugin/backends/host/isa.h"
#include "tensorflow_plugin/backends/plain/scalar_ops.h"

namespace xpu::host {
namespace {

#define XPU_ISA_FILE "tensorflow_plugin/backends/host/integer_loops.inc"
#include "tensorflow_plugin/backends/host/each_isa.inc"

}  // namespace

void AddIntegerInstrs(InstrTable* table) { XPU_PICK_ISA(AddIntegerInstrs)(table); }

}  // namespace xpu::host

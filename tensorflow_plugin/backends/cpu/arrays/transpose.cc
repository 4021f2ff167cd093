#include "tensorflow_plugin/backends/cpu/arrays/transpose.h"

#include <cstdint>
#include <cstring>
#include <utility>

#include "tensorflow_plugin/backends/cpu/simd/isa.h"

namespace xpu::cpu {
namespace {

#define XPU_ISA_FILE "tensorflow_plugin/backends/cpu/arrays/transpose_loops.inc"
#include "tensorflow_plugin/backends/cpu/simd/each_isa.inc"

}  // namespace

TransposeFunction TransposeFunctionFor(int64_t size) { return XPU_PICK_ISA(FunctionFor)(size); }

}  // namespace xpu::cpu

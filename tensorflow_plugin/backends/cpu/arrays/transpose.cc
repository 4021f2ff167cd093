#include "tensorflow_plugin/backends/cpu/arrays/transpose.h"

#include <cstdint>

#include "tensorflow_plugin/backends/cpu/arrays/transpose_loops.h"
#include "tensorflow_plugin/backends/cpu/simd/isa.h"

namespace xpu::cpu {

TransposeFunction TransposeFunctionFor(int64_t size) { return XPU_PICK_ISA(FunctionFor)(size); }

}  // namespace xpu::cpu

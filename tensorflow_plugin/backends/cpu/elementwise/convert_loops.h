// Conversions of arrays (convert.h), once per instruction set.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_CONVERT_LOOPS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_CONVERT_LOOPS_H_

#include <cstdint>

#include "tensorflow_plugin/backends/cpu/simd/vector_math.h"

#define XPU_ISA_FILE "tensorflow_plugin/backends/cpu/elementwise/convert_loops.h"
#define XPU_ISA baseline
#define XPU_VECTOR_BYTES 16
#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_CONVERT_LOOPS_H_

#if defined(XPU_ISA)
namespace xpu::cpu::XPU_ISA {

template <typename From, typename To>
static void Convert(const From* from, To* to, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) Store(to + i, Load(from + i));
  if (i < n) StoreFirst(to + i, static_cast<int>(n - i), LoadFirst(from + i, static_cast<int>(n - i), 0));
}

}  // namespace xpu::cpu::XPU_ISA
#include "tensorflow_plugin/backends/cpu/simd/each_isa.h"
#endif  // XPU_ISA

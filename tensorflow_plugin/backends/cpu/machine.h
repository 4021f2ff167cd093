// The facts beside a descriptor that decide which engine computes a product or a convolution (matmul/engine.h,
// convolution/engine.h). A test may ask for a machine that it does not run on.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_MACHINE_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_MACHINE_H_

#include <cstdint>

#include "tensorflow_plugin/backends/cpu/simd/isa.h"
#include "tensorflow_plugin/primitives/types.h"

namespace xpu::cpu {

struct Machine {
  int threads = 1;
  Isa isa = Isa::kBaseline;
  bool has_half = false, has_bfloat16 = false;  // oneDNN computes these at the speed of float or faster
  bool winograd = true;                         // TF_XPU_WINOGRAD is not 0
  int64_t last_cache_bytes = 0;                 // of the largest cache that the first processor has; 0: not known

  // This process's, for a team of so many threads. Inline, because it is made for each product.
  static Machine Here(int threads) {
    Machine machine = OfProcess();
    machine.threads = threads;
    machine.isa = ActiveIsa();
    return machine;
  }
  // The same without threads and instruction set.
  static const Machine& OfProcess();

  bool HasNative(DType type) const {
    return type == DType::kFloat || (type == DType::kHalf && has_half) || (type == DType::kBFloat16 && has_bfloat16);
  }
  // The width of the registers that the kernels use.
  constexpr int vector_bytes() const { return isa >= Isa::kAvx512 ? 64 : isa == Isa::kAvx2 ? 32 : 16; }
  constexpr int64_t float_lanes() const { return vector_bytes() / 4; }
};

// The most results of a part that an epilogue follows: they are still in the core's own cache then.
inline constexpr int64_t kPartElements = 1 << 17;

// A product's epilogue, as far as the choice of an engine depends on it.
enum class EpilogueForm : uint8_t {
  kNone,
  kChain,    // elementwise/chain_epilogue.h: some engines apply it to sums in registers
  kProgram,  // any other program
};

}  // namespace xpu::cpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_MACHINE_H_

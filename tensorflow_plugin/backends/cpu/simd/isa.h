// Which instruction set the vectorised kernels use. The same loops are compiled once per set:
//
// A file of loops (x_loops.inc) is plain C++ without includes. Its owner includes what it needs, then
//   #define XPU_ISA_FILE "tensorflow_plugin/backends/cpu/x_loops.inc"
//   #include "tensorflow_plugin/backends/cpu/simd/each_isa.inc"
// inside namespace xpu::cpu, and calls XPU_PICK_ISA(Function)(arguments). Inside the file XPU_VECTOR_BYTES is the
// width of a register. Lambdas and templates of other headers do not inherit the instruction set under GCC, and the
// linker could merge them with code for another one. So the loops are plain functions.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_SIMD_ISA_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_SIMD_ISA_H_

#include <string>

namespace xpu::cpu {

enum class Isa { kBaseline, kAvx2, kAvx512, kAvx512Vnni };  // each has what those before it have
inline constexpr int kNumIsas = 4;

// The spelling of the environment variable TF_XPU_ISA: "baseline", "avx2" (with FMA and F16C), "avx512" (F, BW, DQ
// and VL) or "avx512_vnni".
const char* Name(Isa isa);

// True if this CPU has it.
bool HasIsa(Isa isa);

// The set for a value of TF_XPU_ISA (nullptr: unset). It is the best this CPU has when the value is unset, unknown, or
// not on this CPU; for the latter two `warning` says so.
Isa ChooseIsa(const char* requested, std::string* warning);

// ChooseIsa of the environment, decided (and warned about on stderr) at the first call.
Isa ActiveIsa();

// Replaces ActiveIsa while alive, for tests that run every set. Not for use while kernels run.
class ScopedIsa {
 public:
  explicit ScopedIsa(Isa isa);
  ~ScopedIsa();
  ScopedIsa(const ScopedIsa&) = delete;
  ScopedIsa& operator=(const ScopedIsa&) = delete;

 private:
  int saved_;
};

#if defined(__x86_64__)
#define XPU_PICK_ISA(...)                                                     \
  (::xpu::cpu::ActiveIsa() >= ::xpu::cpu::Isa::kAvx512 ? &avx512::__VA_ARGS__ \
   : ::xpu::cpu::ActiveIsa() == ::xpu::cpu::Isa::kAvx2 ? &avx2::__VA_ARGS__   \
                                                       : &baseline::__VA_ARGS__)
#else
#define XPU_PICK_ISA(...) (&baseline::__VA_ARGS__)
#endif

}  // namespace xpu::cpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_SIMD_ISA_H_

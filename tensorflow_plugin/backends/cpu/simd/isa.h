// Which instruction set the vectorised kernels use. The same loops are compiled once per set:
//
// A file of loops (x_loops.h) is a header that is read again at its end, for each wider instruction set:
//
//   #ifndef <guard>
//   #define <guard>
//   #include ...                   // all that the loops need: nothing is included in a set of its own
//   namespace xpu::cpu { ... }     // what is the same for all sets, such as the types of arguments
//   #define XPU_ISA_FILE "tensorflow_plugin/backends/cpu/x_loops.h"
//   #define XPU_ISA baseline
//   #define XPU_VECTOR_BYTES 16
//   #endif
//
//   #if defined(XPU_ISA)           // it is not when the file is included once more
//   namespace xpu::cpu::XPU_ISA {
//   ...                            // the loops
//   }
//   #include "tensorflow_plugin/backends/cpu/simd/each_isa.h"
//   #endif
//
// So an editor sees the loops as those of the baseline. XPU_ISA becomes avx2 and avx512, and XPU_VECTOR_BYTES is the
// width of a register. With XPU_ISA_WITH_VNNI defined beside them there is also vnni, for which XPU_VNNI is defined.
// The file's owner, x.cc, includes it and calls XPU_PICK_ISA(Function)(arguments).
//
// Lambdas and templates of other headers do not inherit the instruction set under GCC, and the linker could merge them
// with code for another one. So the loops are plain functions, `static` or in an anonymous namespace.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_SIMD_ISA_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_SIMD_ISA_H_

#include <string>

namespace xpu::cpu {

enum class Isa { kBaseline, kAvx2, kAvx512, kAvx512Vnni, kAmx };  // each has what those before it have
inline constexpr int kNumIsas = 5;

// The spelling of the environment variable TF_XPU_ISA: "baseline", "avx2" (with FMA and F16C), "avx512" (F, BW, DQ
// and VL), "avx512_vnni" or "amx" (tiles of bytes).
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

// Functions of one element, for loops to call.
#define XPU_INLINE static inline __attribute__((always_inline))

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

// Includes XPU_ISA_FILE once per instruction set: see isa.h. Meant to be included inside namespace xpu::cpu.
#define XPU_VECTOR_BYTES 16
namespace baseline {
#include XPU_ISA_FILE
}
#undef XPU_VECTOR_BYTES

#if defined(__x86_64__)
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")
#define XPU_VECTOR_BYTES 32
namespace avx2 {
#include XPU_ISA_FILE
}
#undef XPU_VECTOR_BYTES
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")
#define XPU_VECTOR_BYTES 64
namespace avx512 {
#include XPU_ISA_FILE
}
#undef XPU_VECTOR_BYTES
#pragma GCC pop_options
#endif

#undef XPU_ISA_FILE

// At the end of a file of loops (isa.h), which has been read for the baseline: includes it for the wider instruction
// sets. At the end of those it does nothing.
#if !defined(XPU_ISA_PASS)
#define XPU_ISA_PASS
#undef XPU_ISA
#undef XPU_VECTOR_BYTES

#if defined(__x86_64__)
#include "tensorflow_plugin/backends/cpu/simd/target.h"

XPU_BEGIN_TARGET(XPU_AVX2)
#define XPU_ISA avx2
#define XPU_VECTOR_BYTES 32
#include XPU_ISA_FILE
#undef XPU_VECTOR_BYTES
#undef XPU_ISA
XPU_END_TARGET

XPU_BEGIN_TARGET(XPU_AVX512)
#define XPU_ISA avx512
#define XPU_VECTOR_BYTES 64
#include XPU_ISA_FILE
#undef XPU_VECTOR_BYTES
#undef XPU_ISA
XPU_END_TARGET

#if defined(XPU_ISA_WITH_VNNI)
XPU_BEGIN_TARGET(XPU_AVX512_VNNI)
#define XPU_ISA vnni
#define XPU_VECTOR_BYTES 64
#define XPU_VNNI
#include XPU_ISA_FILE
#undef XPU_VNNI
#undef XPU_VECTOR_BYTES
#undef XPU_ISA
XPU_END_TARGET
#endif
#endif

#undef XPU_ISA_WITH_VNNI
#undef XPU_ISA_FILE
#undef XPU_ISA_PASS
#endif

// At the end of a file of loops (isa.h), which has been read for the baseline: includes it for the wider instruction
// sets. At the end of those it does nothing. Clang, which editors use, has a pragma of its own.
#if !defined(XPU_ISA_PASS)
#define XPU_ISA_PASS
#undef XPU_ISA
#undef XPU_VECTOR_BYTES

#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")
#endif
#define XPU_ISA avx2
#define XPU_VECTOR_BYTES 32
#include XPU_ISA_FILE
#undef XPU_VECTOR_BYTES
#undef XPU_ISA
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl"))), \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")
#endif
#define XPU_ISA avx512
#define XPU_VECTOR_BYTES 64
#include XPU_ISA_FILE
#undef XPU_VECTOR_BYTES
#undef XPU_ISA
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#if defined(XPU_ISA_WITH_VNNI)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni"))), \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,prefer-vector-width=512")
#endif
#define XPU_ISA vnni
#define XPU_VECTOR_BYTES 64
#define XPU_VNNI
#include XPU_ISA_FILE
#undef XPU_VNNI
#undef XPU_VECTOR_BYTES
#undef XPU_ISA
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
#endif

#undef XPU_ISA_WITH_VNNI
#undef XPU_ISA_FILE
#undef XPU_ISA_PASS
#endif

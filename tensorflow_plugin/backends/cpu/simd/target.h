// Functions for a processor that has more than the baseline: those between XPU_BEGIN_TARGET(XPU_AVX2) and
// XPU_END_TARGET. Clang, which editors use, has a pragma of its own.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_SIMD_TARGET_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_SIMD_TARGET_H_

#define XPU_PRAGMA(text) _Pragma(#text)
#if defined(__clang__)
#define XPU_BEGIN_TARGET(features) \
  XPU_PRAGMA(clang attribute push(__attribute__((target(features))), apply_to = function))
#define XPU_END_TARGET XPU_PRAGMA(clang attribute pop)
#define XPU_WIDE_VECTORS
#else
#define XPU_BEGIN_TARGET(features) XPU_PRAGMA(GCC push_options) XPU_PRAGMA(GCC target features)
#define XPU_END_TARGET XPU_PRAGMA(GCC pop_options)
#define XPU_WIDE_VECTORS ",prefer-vector-width=512"
#endif

#define XPU_AVX2 "avx2,fma,f16c"
#define XPU_AVX512 XPU_AVX2 ",avx512f,avx512bw,avx512dq,avx512vl" XPU_WIDE_VECTORS
#define XPU_AVX512_VNNI XPU_AVX512 ",avx512vnni"
#define XPU_AMX "amx-tile,amx-int8"

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_SIMD_TARGET_H_

// The language of kernels: OpenCL C 1.2, with these macros where CUDA C++ has other words. prelude_cuda.cl has all of
// them, too, and OpenCL's words. Kernels for processors alone (product_processor.cl, product_complex.cl) need none.
#pragma OPENCL FP_CONTRACT OFF
#ifdef cl_khr_fp64
// double is in the core of OpenCL C 1.2, where there is one; earlier drivers want to be asked.
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

// Where memory lies. NVRTC writes `global` itself in __global__, so that it cannot be the name of a macro.
#define GLOBAL global
#define CONSTANT constant

// A parameter: an address in device memory. AT(type, name) is the array there. PASS(name) is the argument for such a
// parameter of a function.
#define MEMORY(name) global char *name##_base, const ulong name##_at
#define PASS(name) name##_base, name##_at
#define AT(type, name) ((global type *)(name##_base + name##_at))

// SHARED T name[n]; declares memory of a group in its kernel. A function has a parameter SHARED_POINTER(T) for it.
#define SHARED local
#define SHARED_POINTER(type) local type *

// Vectors: of parts, and of the same part throughout, which may be of a number, too. SELECT is `?:` for each part.
#define MAKE2(type, x, y) ((type)(x, y))
#define MAKE4(type, x, y, z, w) ((type)(x, y, z, w))
#define SPLAT(type, x) ((type)(x))
#define SELECT(condition, yes, no) ((condition) ? (yes) : (no))

// For an array, after its name.
#define ALIGNED(bytes) __attribute__((aligned(bytes)))

// 16-bit floats are stored in a ushort and computed in float.
#define LOAD_HALF(name, index) vload_half(index, (const global half *)(name##_base + name##_at))
#define STORE_HALF(name, index, value) vstore_half_rte(value, index, (global half *)(name##_base + name##_at))
float from_half(ushort bits) { return vload_half(0, (const half *)&bits); }
ushort to_half(float value) {
  ushort bits;
  vstore_half_rte(value, 0, (half *)&bits);
  return bits;
}

// CUDA C++ 17 for the language of kernels (prelude_opencl.cl says what that is). NVRTC compiles it without any header,
// with --device-as-default-execution-space and --fmad=false.
#define kernel extern "C" __global__
#define GLOBAL
#define CONSTANT const

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
static_assert(sizeof(long) == 8 && (char)-1 < 0, "types are as in OpenCL C");

// A parameter is an address in device memory.
#define MEMORY(name) char *name##_base
#define PASS(name) name##_base
#define AT(type, name) ((type *)name##_base)

#define SHARED __shared__
#define SHARED_POINTER(type) type *
#define ALIGNED(bytes) __attribute__((aligned(bytes)))

// Items and groups. An item's number does not change, so that the compiler need not read it again.
#define PLACE_ALONG(axis, of) ((axis) == 0 ? (of).x : (axis) == 1 ? (of).y : (of).z)
inline size_t get_local_id(uint axis) { return PLACE_ALONG(axis, threadIdx); }
inline size_t get_group_id(uint axis) { return PLACE_ALONG(axis, blockIdx); }
inline size_t get_local_size(uint axis) { return PLACE_ALONG(axis, blockDim); }
inline size_t get_num_groups(uint axis) { return PLACE_ALONG(axis, gridDim); }
inline size_t get_global_id(uint axis) { return get_group_id(axis) * get_local_size(axis) + get_local_id(axis); }
#undef PLACE_ALONG
#define CLK_LOCAL_MEM_FENCE 1
#define CLK_GLOBAL_MEM_FENCE 2
#define barrier(fences) __syncthreads()  // both

inline uint atomic_min(uint *at, uint value) { return atomicMin(at, value); }
inline uint atomic_cmpxchg(uint *at, uint expected, uint value) { return atomicCAS(at, expected, value); }

// Numbers.
inline float as_float(uint bits) { return __uint_as_float(bits); }
inline uint as_uint(float x) { return __float_as_uint(x); }
inline double as_double(ulong bits) { return __longlong_as_double((long long)bits); }
inline ulong as_ulong(double x) { return (ulong)__double_as_longlong(x); }
inline uint mul_hi(uint a, uint b) { return __umulhi(a, b); }
template <typename T>
inline int popcount(T x) {
  return sizeof(T) == 8 ? __popcll(x) : __popc((uint)x);
}
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fc00000)
#define INT_MIN (-2147483647 - 1)
#define UINT_MAX 0xffffffffu
#define LONG_MIN (-0x7fffffffffffffffl - 1)
#define FLT_MAX 0x1.fffffep127f
#define FLT_MIN 0x1p-126f
#define FLT_EPSILON 0x1p-23f
#define DBL_MAX 0x1.fffffffffffffp1023
#define DBL_MIN 0x1p-1022
#define DBL_EPSILON 0x1p-52
#define M_PI 3.141592653589793238462643383279502884
#define M_PI_2 1.570796326794896619231321691639751442
#define M_2_PI 0.636619772367581343075535053490057448
#define M_LN2 0.693147180559945309417232121458176568

#define LOAD_HALF(name, index) from_half(AT(ushort, name)[index])
#define STORE_HALF(name, index, value) AT(ushort, name)[index] = to_half(value)
inline float from_half(ushort bits) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
  return x;
}
inline ushort to_half(float x) {
  ushort bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}

// Vectors. CUDA's own have no operators; a type that is no vector here is a number.
struct alignas(16) Double4 {
  double x, y, z, w;
};
struct alignas(16) Long4 {
  long x, y, z, w;
};
#define double4 Double4
#define long4 Long4

template <typename T>
struct VectorOf {
  template <typename X>
  static T Splat(X x) {
    return (T)x;
  }
};
#define MAKE2(type, x, y) VectorOf<type>::Make(x, y)
#define MAKE4(type, x, y, z, w) VectorOf<type>::Make(x, y, z, w)
#define SPLAT(type, x) VectorOf<type>::Splat(x)
#define SELECT(condition, yes, no) select_parts(condition, yes, no)
template <typename T>
inline T select_parts(bool condition, T yes, T no) {
  return condition ? yes : no;
}

#define VECTOR2(V, R)                                                     \
  template <>                                                             \
  struct VectorOf<V> {                                                    \
    static V Make(R x, R y) {                                             \
      V v;                                                                \
      v.x = x;                                                            \
      v.y = y;                                                            \
      return v;                                                           \
    }                                                                     \
    static V Splat(R x) { return Make(x, x); }                            \
  };                                                                      \
  inline V operator-(V v) { return VectorOf<V>::Make(-v.x, -v.y); }
#define OPERATOR2(V, R, op)                                                                    \
  inline V operator op(V a, V b) { return VectorOf<V>::Make(a.x op b.x, a.y op b.y); }         \
  inline V operator op(V a, R b) { return VectorOf<V>::Make(a.x op b, a.y op b); }             \
  inline V operator op(R a, V b) { return VectorOf<V>::Make(a op b.x, a op b.y); }             \
  inline V &operator op##=(V &a, V b) { return a = a op b; }                                   \
  inline V &operator op##=(V &a, R b) { return a = a op b; }
#define VECTOR4(V, R)                                                                     \
  template <>                                                                             \
  struct VectorOf<V> {                                                                    \
    static V Make(R x, R y, R z, R w) {                                                   \
      V v;                                                                                \
      v.x = x;                                                                            \
      v.y = y;                                                                            \
      v.z = z;                                                                            \
      v.w = w;                                                                            \
      return v;                                                                           \
    }                                                                                     \
    static V Splat(R x) { return Make(x, x, x, x); }                                      \
  };
#define OPERATOR4(V, R, op)                                                                                \
  inline V operator op(V a, V b) {                                                                         \
    return VectorOf<V>::Make(a.x op b.x, a.y op b.y, a.z op b.z, a.w op b.w);                              \
  }                                                                                                        \
  inline V operator op(V a, R b) { return a op VectorOf<V>::Splat(b); }                                    \
  inline V &operator op##=(V &a, V b) { return a = a op b; }
// All bits of a part, or none.
#define COMPARISON4(V, R, Mask, op)                                                                        \
  inline Mask operator op(V a, V b) {                                                                      \
    return VectorOf<Mask>::Make(-(a.x op b.x), -(a.y op b.y), -(a.z op b.z), -(a.w op b.w));               \
  }
// In memory, where vectors are aligned as their parts are.
#define MEMORY4(V, R)                                                                                      \
  inline V vload4(size_t i, const R *from) {                                                               \
    from += 4 * i;                                                                                         \
    if (((size_t)from & (alignof(V) - 1)) == 0) return *(const V *)from;                                   \
    return VectorOf<V>::Make(from[0], from[1], from[2], from[3]);                                          \
  }                                                                                                        \
  inline void vstore4(V v, size_t i, R *to) {                                                              \
    to += 4 * i;                                                                                           \
    if (((size_t)to & (alignof(V) - 1)) == 0) {                                                            \
      *(V *)to = v;                                                                                        \
    } else {                                                                                               \
      to[0] = v.x;                                                                                         \
      to[1] = v.y;                                                                                         \
      to[2] = v.z;                                                                                         \
      to[3] = v.w;                                                                                         \
    }                                                                                                      \
  }
#define SELECT4(V, Mask)                                                                                   \
  inline V select_parts(Mask c, V yes, V no) {                                                             \
    return VectorOf<V>::Make(c.x != 0 ? yes.x : no.x, c.y != 0 ? yes.y : no.y, c.z != 0 ? yes.z : no.z,    \
                             c.w != 0 ? yes.w : no.w);                                                     \
  }

// Numbers that are complex.
VECTOR2(float2, float)
VECTOR2(double2, double)
OPERATOR2(float2, float, +)
OPERATOR2(float2, float, -)
OPERATOR2(float2, float, *)
OPERATOR2(float2, float, /)
OPERATOR2(double2, double, +)
OPERATOR2(double2, double, -)
OPERATOR2(double2, double, *)
OPERATOR2(double2, double, /)

VECTOR4(uint4, uint)
VECTOR4(int4, int)
VECTOR4(long4, long)
VECTOR4(float4, float)
VECTOR4(double4, double)
#define FLOATING4(V, R, Mask)   \
  OPERATOR4(V, R, +)            \
  OPERATOR4(V, R, -)            \
  OPERATOR4(V, R, *)            \
  OPERATOR4(V, R, /)            \
  COMPARISON4(V, R, Mask, <)    \
  COMPARISON4(V, R, Mask, >)    \
  SELECT4(V, Mask)              \
  inline V exp(V v) { return VectorOf<V>::Make(exp(v.x), exp(v.y), exp(v.z), exp(v.w)); }
#define MASK4(V, R)             \
  OPERATOR4(V, R, |)            \
  COMPARISON4(V, R, V, <)       \
  COMPARISON4(V, R, V, ==)      \
  SELECT4(V, V)
MASK4(int4, int)
MASK4(long4, long)
FLOATING4(float4, float, int4)
FLOATING4(double4, double, long4)
MEMORY4(int4, int)
MEMORY4(float4, float)
MEMORY4(double4, double)
inline int4 convert_int4(int4 v) { return v; }
inline int4 convert_int4(long4 v) { return VectorOf<int4>::Make((int)v.x, (int)v.y, (int)v.z, (int)v.w); }
inline long4 convert_long4(int4 v) { return VectorOf<long4>::Make(v.x, v.y, v.z, v.w); }
#undef VECTOR2
#undef OPERATOR2
#undef VECTOR4
#undef OPERATOR4
#undef COMPARISON4
#undef MEMORY4
#undef SELECT4
#undef FLOATING4
#undef MASK4

// CUDA C++ for g++, as far as the kernels need it. The stand-in for NVRTC puts this in front of a source. It defines
// STAND_IN_HAS_BARRIERS as 1 or 0.
//
// A group runs at a time. Its items are fibers if the kernel has barriers: one runs until its next barrier, then
// another. They begin in order, and go on behind each barrier in the opposite order.
#include <math.h>
#include <setjmp.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <type_traits>
#include <utility>
#include <vector>

struct StandInPlace {
  unsigned x, y, z;
};
static StandInPlace threadIdx, blockIdx, blockDim, gridDim;

#define __global__
#define __shared__ static
#define __syncthreads() StandInBarrier()

// Vectors.
#define STAND_IN_VECTOR2(name, type, bytes) \
  struct alignas(bytes) name {              \
    type x, y;                              \
  };
#define STAND_IN_VECTOR4(name, type, bytes) \
  struct alignas(bytes) name {              \
    type x, y, z, w;                        \
  };
STAND_IN_VECTOR2(float2, float, 8)
STAND_IN_VECTOR2(double2, double, 16)
STAND_IN_VECTOR2(int2, int, 8)
STAND_IN_VECTOR2(uint2, unsigned, 8)
STAND_IN_VECTOR2(ulong2, unsigned long, 16)
STAND_IN_VECTOR4(float4, float, 16)
STAND_IN_VECTOR4(int4, int, 16)
STAND_IN_VECTOR4(uint4, unsigned, 16)

// Bits.
template <typename To, typename From>
inline To StandInBits(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof(to));
  return to;
}
inline float __uint_as_float(unsigned x) { return StandInBits<float>(x); }
inline float __int_as_float(int x) { return StandInBits<float>(x); }
inline unsigned __float_as_uint(float x) { return StandInBits<unsigned>(x); }
inline int __float_as_int(float x) { return StandInBits<int>(x); }
inline double __longlong_as_double(long long x) { return StandInBits<double>(x); }
inline long long __double_as_longlong(double x) { return StandInBits<long long>(x); }
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>((static_cast<unsigned long>(a) * b) >> 32);
}
inline unsigned long __umul64hi(unsigned long a, unsigned long b) {
  return static_cast<unsigned long>((static_cast<unsigned __int128>(a) * b) >> 64);
}
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(x)); }

// 16-bit floats; the stand-in for NVRTC puts these where a source has PTX.
inline float StandInFromHalf(unsigned short bits) { return static_cast<float>(StandInBits<_Float16>(bits)); }
inline unsigned short StandInToHalf(float x) { return StandInBits<unsigned short>(static_cast<_Float16>(x)); }

// Other streams run kernels at other times.
template <typename T>
inline T atomicMin(T* at, T value) {
  const T old = *at;
  if (value < old) *at = value;
  return old;
}
template <typename T>
inline T atomicCAS(T* at, T expected, T value) {
  const T old = *at;
  if (old == expected) *at = value;
  return old;
}

// Functions of any numbers.
template <typename A, typename B>
inline std::common_type_t<A, B> min(A a, B b) {
  using T = std::common_type_t<A, B>;
  if constexpr (std::is_floating_point_v<T>) return std::fmin(static_cast<T>(a), static_cast<T>(b));
  return static_cast<T>(a) < static_cast<T>(b) ? static_cast<T>(a) : static_cast<T>(b);
}
template <typename A, typename B>
inline std::common_type_t<A, B> max(A a, B b) {
  using T = std::common_type_t<A, B>;
  if constexpr (std::is_floating_point_v<T>) return std::fmax(static_cast<T>(a), static_cast<T>(b));
  return static_cast<T>(a) < static_cast<T>(b) ? static_cast<T>(b) : static_cast<T>(a);
}
using std::copysign, std::erf, std::erfc, std::fma, std::ldexp, std::nextafter, std::rint, std::trunc;
inline float rsqrt(float x) { return 1 / std::sqrt(x); }
inline double rsqrt(double x) { return 1 / std::sqrt(x); }

#if STAND_IN_HAS_BARRIERS
struct StandInFiber {
  jmp_buf place;
  bool is_done;
};
static jmp_buf stand_in_scheduler;
static StandInFiber* stand_in_fiber;
static void (*stand_in_body)();
inline void StandInBarrier() {
  if (_setjmp(stand_in_fiber->place) == 0) _longjmp(stand_in_scheduler, 1);
}
static void StandInRunFiber() {
  for (;;) {
    stand_in_body();
    stand_in_fiber->is_done = true;
    StandInBarrier();  // and from there it goes on for the next group
  }
}
#endif

// Calls `body` for each item of each group of the grid.
static void StandInRunItems(void (*body)()) {
  const unsigned items = blockDim.x * blockDim.y * blockDim.z;
  const auto at_item = [](unsigned i) {
    threadIdx = {i % blockDim.x, i / blockDim.x % blockDim.y, i / blockDim.x / blockDim.y};
  };
#if STAND_IN_HAS_BARRIERS
  constexpr size_t kStack = 128 << 10;
  static auto& fibers = *new std::vector<StandInFiber*>;
  stand_in_body = body;
  static ucontext_t back;
  while (fibers.size() < items) {
    auto* const fiber = new StandInFiber;
    fiber->is_done = true;
    fibers.push_back(fiber);
    void* const stack =
        mmap(nullptr, kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    static ucontext_t start;
    getcontext(&start);
    start.uc_stack.ss_sp = stack;
    start.uc_stack.ss_size = kStack;
    start.uc_link = &back;
    // To the fiber's first stop, before any body.
    static StandInFiber* made;
    made = fiber;
    makecontext(
        &start,
        [] {
          stand_in_fiber = made;
          StandInBarrier();
          StandInRunFiber();
        },
        0);
    if (_setjmp(stand_in_scheduler) == 0) setcontext(&start);
  }
#endif
  for (blockIdx.z = 0; blockIdx.z < gridDim.z; ++blockIdx.z) {
    for (blockIdx.y = 0; blockIdx.y < gridDim.y; ++blockIdx.y) {
      for (blockIdx.x = 0; blockIdx.x < gridDim.x; ++blockIdx.x) {
#if STAND_IN_HAS_BARRIERS
        for (unsigned i = 0; i < items; ++i) fibers[i]->is_done = false;
        static unsigned left, round, i;
        left = items;
        for (round = 0; left > 0; ++round) {
          for (i = 0; i < items; ++i) {
            const unsigned item = round % 2 == 0 ? i : items - 1 - i;
            stand_in_fiber = fibers[item];
            if (stand_in_fiber->is_done) continue;
            at_item(item);
            if (_setjmp(stand_in_scheduler) == 0) _longjmp(stand_in_fiber->place, 1);
            left -= stand_in_fiber->is_done;
          }
        }
#else
        for (unsigned i = 0; i < items; ++i) {
          at_item(i);
          body();
        }
#endif
      }
    }
  }
}

// The kernel's arguments, each at an address.
static void** stand_in_arguments;
template <auto kKernel, typename... A, size_t... I>
inline void StandInCall(void (*)(A...), std::index_sequence<I...>) {
  kKernel(*static_cast<std::decay_t<A>*>(stand_in_arguments[I])...);
}
#define STAND_IN_ENTRY                                                                                                \
  template <typename... A>                                                                                            \
  static void StandInEntry(void (*)(A...)) {                                                                          \
    StandInRunItems([] { StandInCall<run>(static_cast<void (*)(A...)>(nullptr), std::index_sequence_for<A...>()); }); \
  }                                                                                                                   \
  extern "C" __attribute__((visibility("default"))) void StandInRun(const unsigned* grid, const unsigned* block,      \
                                                                    void** arguments) {                               \
    gridDim = {grid[0], grid[1], grid[2]};                                                                            \
    blockDim = {block[0], block[1], block[2]};                                                                        \
    stand_in_arguments = arguments;                                                                                   \
    StandInEntry(run);                                                                                                \
  }

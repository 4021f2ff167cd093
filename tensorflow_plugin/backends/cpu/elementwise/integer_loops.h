// Instructions on integer and bool registers, and the casts between them (see isa.h).
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_INTEGER_LOOPS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_INTEGER_LOOPS_H_

#include <cstdint>

#include "tensorflow_plugin/backends/cpu/elementwise/instruction_loops.h"
#include "tensorflow_plugin/backends/cpu/elementwise/instruction_table.h"
#include "tensorflow_plugin/backends/cpu/simd/isa.h"
#include "tensorflow_plugin/backends/plain/scalar_ops.h"

#define XPU_ISA_FILE "tensorflow_plugin/backends/cpu/elementwise/integer_loops.h"
#define XPU_ISA baseline
#define XPU_VECTOR_BYTES 16
#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_INTEGER_LOOPS_H_

#if defined(XPU_ISA)
namespace xpu::cpu::XPU_ISA {
namespace {

// The unsigned type of T's size: arithmetic wraps in it. 16 bits and fewer would be promoted to int, so they are cut
// back by the cast that ends each op.
template <int size>
struct UnsignedOf {
  using type = uint32_t;
};
template <>
struct UnsignedOf<8> {
  using type = uint64_t;
};
template <typename T>
using U = typename UnsignedOf<sizeof(T)>::type;

#define XPU_OP1(name, ...)                \
  struct name {                           \
    template <typename T>                 \
    XPU_INLINE T Do(T x) {                \
      return static_cast<T>(__VA_ARGS__); \
    }                                     \
  }
#define XPU_OP2(name, ...)                \
  struct name {                           \
    template <typename T>                 \
    XPU_INLINE T Do(T x, T y) {           \
      return static_cast<T>(__VA_ARGS__); \
    }                                     \
  }

XPU_OP1(Neg, U<T>(0) - U<T>(x));
XPU_OP1(Abs, x < T(0) ? U<T>(0) - U<T>(x) : U<T>(x));
XPU_OP1(Sign, (x > T(0)) - (x < T(0)));
XPU_OP1(Square, U<T>(x) * U<T>(x));
XPU_OP1(BitwiseNot, ~x);
XPU_OP2(Add, U<T>(x) + U<T>(y));
XPU_OP2(Sub, U<T>(x) - U<T>(y));
XPU_OP2(Mul, U<T>(x) * U<T>(y));
XPU_OP2(Maximum, x > y ? x : y);
XPU_OP2(Minimum, x < y ? x : y);
XPU_OP2(BitwiseAnd, x& y);
XPU_OP2(BitwiseOr, x | y);
XPU_OP2(BitwiseXor, x ^ y);

template <typename T>
XPU_INLINE T ClampShift(T y) {
  constexpr T last = static_cast<T>(sizeof(T) * 8 - 1);
  const T low = y < T(0) ? T(0) : y;
  return low > last ? last : low;
}
XPU_OP2(LeftShift, U<T>(x) << ClampShift(y));
XPU_OP2(RightShift, x >> ClampShift(y));

#define XPU_INT_OPS_1(V) V(Neg) V(Abs) V(Sign) V(Square) V(BitwiseNot)
#define XPU_INT_OPS_2(V) \
  V(Add) V(Sub) V(Mul) V(Maximum) V(Minimum) V(BitwiseAnd) V(BitwiseOr) V(BitwiseXor) V(LeftShift) V(RightShift)

// bool registers are bytes of 0 or 1.
XPU_OP1(LogicalNot, x ^ 1);
XPU_OP2(LogicalAnd, x& y);
XPU_OP2(LogicalOr, x | y);

template <typename To>
struct Convert {
  template <typename T>
  XPU_INLINE To Do(T x) {
    return static_cast<To>(x);
  }
};
struct NonZero {
  template <typename T>
  XPU_INLINE uint8_t Do(T x) {
    return x != 0;
  }
};

// Division. The processor's takes some 40 cycles for 64 bits and has no vectors. The division of doubles has, and is
// exact for operands below 2^52. A quotient that is no integer differs from the next one by more than the rounding.
XPU_INLINE int64_t Quotient(int64_t x, int64_t y) {
  return static_cast<int64_t>(static_cast<double>(x) / static_cast<double>(y));
}
// 1 where the cut to an integer went up, not down.
XPU_INLINE int64_t Borrow(int64_t remainder, int64_t y) { return (remainder != 0) & ((remainder ^ y) < 0); }

#define XPU_DIVISION(name, ...)                                                                                 \
  struct name {                                                                                                 \
    using Exact = plain::scalar::ops::name;                                                                     \
    XPU_INLINE int64_t Do(int64_t x, int64_t y) {                                                               \
      const int64_t q = Quotient(x, y);                                                                         \
      [[maybe_unused]] const int64_t r =                                                                        \
          static_cast<int64_t>(static_cast<uint64_t>(x) - static_cast<uint64_t>(q) * static_cast<uint64_t>(y)); \
      return __VA_ARGS__;                                                                                       \
    }                                                                                                           \
  }
XPU_DIVISION(TruncateDiv, q);
XPU_DIVISION(TruncateMod, r);
XPU_DIVISION(FloorDiv, q - Borrow(r, y));
XPU_DIVISION(FloorMod, r + Borrow(r, y) * y);
#define XPU_INT_DIVISIONS(V) V(TruncateDiv) V(TruncateMod) V(FloorDiv) V(FloorMod)

// A block at a time: all by doubles, unless an operand is too large for that or a divisor 0.
template <typename Op, typename T>
static bool Divide(void* dst, const void* a, const void* b, const void*, int64_t n) {
  constexpr int64_t kBlock = 512;
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  T* z = static_cast<T*>(dst);
  bool failed = false;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t end = begin + kBlock < n ? begin + kBlock : n;
    uint64_t large = 0;
    int64_t zeros = 0;
    for (int64_t i = begin; i < end; ++i) {
      if (sizeof(T) == 8) {
        // For a negative number, the complement, which is as large.
        const int64_t v = static_cast<int64_t>(x[i]), w = static_cast<int64_t>(y[i]);
        large |= static_cast<uint64_t>(v ^ (T(-1) < T(0) ? v >> 63 : 0));
        large |= static_cast<uint64_t>(w ^ (T(-1) < T(0) ? w >> 63 : 0));
      }
      zeros += y[i] == T(0);
    }
    if (zeros == 0 && large >> 51 == 0) {
#pragma GCC ivdep
      for (int64_t i = begin; i < end; ++i) {
        z[i] = static_cast<T>(Op::Do(static_cast<int64_t>(x[i]), static_cast<int64_t>(y[i])));
      }
    } else {
      for (int64_t i = begin; i < end; ++i) z[i] = Op::Exact::Apply(x[i], y[i], &failed);
    }
  }
  return failed;
}

template <typename From>
static void AddCasts(InstrTable* table, DType from) {
  auto set = [&](DType to, InstrFn fn) { table->cast[static_cast<int>(from)][static_cast<int>(to)] = fn; };
  set(DType::kBool, &Map1<NonZero, From>);
  // A cast to the other signedness is a copy of the bits.
  set(DType::kInt8, &Map1<Convert<uint8_t>, From>);
  set(DType::kUint8, &Map1<Convert<uint8_t>, From>);
  set(DType::kInt16, &Map1<Convert<uint16_t>, From>);
  set(DType::kUint16, &Map1<Convert<uint16_t>, From>);
  set(DType::kInt32, &Map1<Convert<uint32_t>, From>);
  set(DType::kUint32, &Map1<Convert<uint32_t>, From>);
  set(DType::kInt64, &Map1<Convert<uint64_t>, From>);
  set(DType::kUint64, &Map1<Convert<uint64_t>, From>);
}

template <typename T>
static void AddIntType(InstrTable* table, DType type) {
#define XPU_ADD(name) SetInstr(table, Opcode::k##name, type, &Map1<name, T>);
  XPU_INT_OPS_1(XPU_ADD)
#undef XPU_ADD
#define XPU_ADD(name) SetInstr(table, Opcode::k##name, type, &Map2<name, T>);
  XPU_INT_OPS_2(XPU_ADD)
#undef XPU_ADD
#define XPU_ADD(name, symbol) SetInstr(table, Opcode::k##name, type, &Map2<name, T>);
  XPU_COMPARE_OPS(XPU_ADD)
#undef XPU_ADD
#define XPU_ADD(name) SetInstr(table, Opcode::k##name, type, &Divide<name, T>);
  XPU_INT_DIVISIONS(XPU_ADD)
#undef XPU_ADD
  SetInstr(table, Opcode::kSelect, type, &Choose<T>);
  AddCasts<T>(table, type);
}

static void AddIntegerInstrs(InstrTable* table) {
  AddIntType<int8_t>(table, DType::kInt8);
  AddIntType<int16_t>(table, DType::kInt16);
  AddIntType<int32_t>(table, DType::kInt32);
  AddIntType<int64_t>(table, DType::kInt64);
  AddIntType<uint8_t>(table, DType::kUint8);
  AddIntType<uint16_t>(table, DType::kUint16);
  AddIntType<uint32_t>(table, DType::kUint32);
  AddIntType<uint64_t>(table, DType::kUint64);
  SetInstr(table, Opcode::kLogicalNot, DType::kBool, &Map1<LogicalNot, uint8_t>);
  SetInstr(table, Opcode::kLogicalAnd, DType::kBool, &Map2<LogicalAnd, uint8_t>);
  SetInstr(table, Opcode::kLogicalOr, DType::kBool, &Map2<LogicalOr, uint8_t>);
  SetInstr(table, Opcode::kEqual, DType::kBool, &Map2<Equal, uint8_t>);
  SetInstr(table, Opcode::kNotEqual, DType::kBool, &Map2<NotEqual, uint8_t>);
  SetInstr(table, Opcode::kSelect, DType::kBool, &Choose<uint8_t>);
  AddCasts<uint8_t>(table, DType::kBool);
}

#undef XPU_OP1
#undef XPU_OP2
#undef XPU_DIVISION
#undef XPU_INT_DIVISIONS
#undef XPU_INT_OPS_1
#undef XPU_INT_OPS_2

}  // namespace
}  // namespace xpu::cpu::XPU_ISA
#include "tensorflow_plugin/backends/cpu/simd/each_isa.h"
#endif  // XPU_ISA

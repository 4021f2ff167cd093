// The forms of loop that instructions take, over registers of a tile. Each op is a struct whose Do works on one
// element.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_INSTRUCTION_LOOPS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_INSTRUCTION_LOOPS_H_

#include <cstdint>

#include "tensorflow_plugin/backends/cpu/elementwise/instruction_table.h"
#include "tensorflow_plugin/backends/cpu/simd/isa.h"

// The comparisons and their operators.
#define XPU_COMPARE_OPS(V) V(Equal, ==) V(NotEqual, !=) V(Less, <) V(LessEqual, <=) V(Greater, >) V(GreaterEqual, >=)

#define XPU_ISA_FILE "tensorflow_plugin/backends/cpu/elementwise/instruction_loops.h"
#define XPU_ISA baseline
#define XPU_VECTOR_BYTES 16
#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_INSTRUCTION_LOOPS_H_

#if defined(XPU_ISA)
namespace xpu::cpu::XPU_ISA {
namespace {

// dst may be an operand itself, which leaves every iteration on its own element: no dependence to look for.
template <typename Op, typename T>
static bool Map1(void* dst, const void* a, const void*, const void*, int64_t n) {
  using R = decltype(Op::Do(T{}));
  const T* x = static_cast<const T*>(a);
  R* y = static_cast<R*>(dst);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = Op::Do(x[i]);
  return false;
}

template <typename Op, typename T>
static bool Map2(void* dst, const void* a, const void* b, const void*, int64_t n) {
  using R = decltype(Op::Do(T{}, T{}));
  const T* x1 = static_cast<const T*>(a);
  const T* x2 = static_cast<const T*>(b);
  R* y = static_cast<R*>(dst);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = Op::Do(x1[i], x2[i]);
  return false;
}

// The same where one of the two operands is one element for all.
template <typename Op, typename T, bool first>
static bool Map2One(void* dst, const void* a, const void* b, const void*, int64_t n) {
  using R = decltype(Op::Do(T{}, T{}));
  const T one = *static_cast<const T*>(first ? a : b);
  const T* x = static_cast<const T*>(first ? b : a);
  R* y = static_cast<R*>(dst);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = first ? Op::Do(one, x[i]) : Op::Do(x[i], one);
  return false;
}

template <typename T>
static bool Choose(void* dst, const void* a, const void* b, const void* c, int64_t n) {
  const uint8_t* condition = static_cast<const uint8_t*>(a);
  const T* x1 = static_cast<const T*>(b);
  const T* x2 = static_cast<const T*>(c);
  T* y = static_cast<T*>(dst);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = condition[i] ? x1[i] : x2[i];
  return false;
}

// Comparisons yield the byte that bool registers hold.
#define XPU_DEFINE(name, symbol)      \
  struct name {                       \
    template <typename T>             \
    XPU_INLINE uint8_t Do(T x, T y) { \
      return x symbol y;              \
    }                                 \
  };
XPU_COMPARE_OPS(XPU_DEFINE)
#undef XPU_DEFINE

XPU_INLINE void SetInstr(InstrTable* table, Opcode op, DType type, InstrFn fn) {
  table->op[static_cast<int>(op)][static_cast<int>(type)] = fn;
}

// A binary op of any two operands, and with one element as either.
template <typename Op, typename T>
XPU_INLINE void SetBinary(InstrTable* table, Opcode op, DType type) {
  SetInstr(table, op, type, &Map2<Op, T>);
  table->of_one[0][static_cast<int>(op)][static_cast<int>(type)] = &Map2One<Op, T, true>;
  table->of_one[1][static_cast<int>(op)][static_cast<int>(type)] = &Map2One<Op, T, false>;
}

}  // namespace
}  // namespace xpu::cpu::XPU_ISA
#include "tensorflow_plugin/backends/cpu/simd/each_isa.h"
#endif  // XPU_ISA

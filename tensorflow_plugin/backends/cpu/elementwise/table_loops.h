// Instructions that are tables of polynomials (function_tables.h).
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_TABLE_LOOPS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_TABLE_LOOPS_H_

#include <cstdint>

#include "tensorflow_plugin/backends/cpu/elementwise/function_tables.h"
#include "tensorflow_plugin/backends/cpu/elementwise/instruction_loops.h"
#include "tensorflow_plugin/backends/cpu/elementwise/instruction_table.h"
#include "tensorflow_plugin/backends/cpu/simd/float_math.h"
#include "tensorflow_plugin/backends/cpu/simd/isa.h"

#define XPU_ISA_FILE "tensorflow_plugin/backends/cpu/elementwise/table_loops.h"
#define XPU_ISA baseline
#define XPU_VECTOR_BYTES 16
#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_TABLE_LOOPS_H_

#if defined(XPU_ISA)
namespace xpu::cpu::XPU_ISA {
namespace {

// The number that has the two kinds of rows: it is below 1/2, or a rest.
template <typename F, typename T>
XPU_INLINE T Whole(T x) {
  return Magnitude(F::kArgument == TableArgument::kShare ? 2 * x - 1 : x);
}
// The argument of a table. All of these are exact.
template <typename F, typename T>
XPU_INLINE T ArgumentOf(T x, bool is_rest) {
  if constexpr (F::kArgument == TableArgument::kItself) return x;
  if constexpr (F::kArgument == TableArgument::kMagnitude) return Magnitude(x);
  const T a = Whole<F>(x), share = x < T(0.5) ? x : 1 - x;
  return is_rest ? (F::kArgument == TableArgument::kShare ? 2 * share : 1 - a) : a;
}

template <typename T>
XPU_INLINE T WithSignChangedBy(T x, T sign) {
  using B = typename Fp<T>::Bits;
  return BitCast<T>(BitCast<B>(x) ^ (BitCast<B>(sign) & Fp<T>::kSign));
}

template <typename F, typename T>
static bool Interpolate(void* dst, const void* a, const void* b, const void* c, int64_t n) {
  constexpr int64_t kBlock = 64;
  using Rows = TableRows<F, T>;
  using B = typename Fp<T>::Bits;
  constexpr DType kType = sizeof(T) == 4 ? DType::kFloat : DType::kDouble;
  const double* const table = RowsOf<T>(F::kOp);
  const T* x = static_cast<const T*>(a);
  T* y = static_cast<T*>(dst);
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t m = begin + kBlock < n ? kBlock : n - begin;
    // The result may replace the operand. The two loops that follow are one that the compiler would not vectorise.
    T operand[kBlock], argument[kBlock], behind[kBlock];
    uint32_t rest[kBlock];  // all bits, or none
    for (int64_t i = 0; i < m; ++i) {
      operand[i] = x[begin + i];
      const bool is_rest = Rows::kHasRest && !(Whole<F>(operand[i]) < T(0.5));
      argument[i] = ArgumentOf<F>(operand[i], is_rest);
      rest[i] = is_rest ? ~uint32_t{0} : 0;
    }
    // With rows of the rest, others end below 1/2 as the number itself does, and one comparison is enough.
    static_assert(!Rows::kHasRest || (F::kMost == -1 && Rows::kCount <= Rows::kCountRest));
    constexpr uint32_t count = Rows::kHasRest ? Rows::kCountRest : Rows::kCount;
    int32_t row[kBlock], found[kBlock];  // the first coefficient of a row
    int all_found = 1;
    for (int64_t i = 0; i < m; ++i) {
      const B bits = BitCast<B>(argument[i]);
      const uint32_t leading = static_cast<uint32_t>(bits >> (Rows::kMantissa - F::kBits));
      const uint32_t place = leading - Rows::kFirst - (rest[i] & (Rows::kFirstRest - Rows::kFirst));
      found[i] = place < count;
      row[i] = static_cast<int32_t>(place + (rest[i] & Rows::kCount)) * Rows::kTerms * found[i];
      // The bits behind those that name the row, as those of a number from 1 to 2.
      constexpr B mantissa = (B(1) << Rows::kMantissa) - 1, one = B(Rows::kBias) << Rows::kMantissa;
      behind[i] = BitCast<T>((bits << F::kBits & mantissa) | one) - 1;
      all_found &= found[i];
    }
    // Rows lie anywhere, so that this loop is one of single elements; what follows is not.
    double value[kBlock];
    for (int64_t i = 0; i < m; ++i) {
      const double t = 2 * static_cast<double>(behind[i]);
      const double* coefficients = table + row[i];
      double r = coefficients[Rows::kTerms - 1];
#pragma GCC unroll 16
      for (int k = Rows::kTerms - 2; k >= 0; --k) r = r * t + coefficients[k];
      value[i] = r;
    }
    T* result = y + begin;
    for (int64_t i = 0; i < m; ++i) {
      double r = value[i];
      if constexpr (F::kFactor == TableFactor::kExp) r *= Exp_(static_cast<double>(Magnitude(operand[i])));
      if constexpr (F::kFactor == TableFactor::kExpMinus) r *= Exp_(-static_cast<double>(operand[i]));
      T rounded = static_cast<T>(r);
      if constexpr (F::kSign == TableSign::kOfX) rounded = WithSignChangedBy(rounded, operand[i]);
      if constexpr (F::kSign == TableSign::kOfXMinusHalf) rounded = WithSignChangedBy(rounded, operand[i] - T(0.5));
      result[i] = rounded;
    }
    if (all_found) continue;
    const InstrFn exact = plain::FindInstr(F::kOp, kType, kType);
    for (int64_t i = 0; i < m; ++i) {
      if (!found[i]) exact(result + i, operand + i, b, c, 1);
    }
  }
  return false;
}

static void AddTables(InstrTable* table) {
#define XPU_ADD(name, ...)                                                                          \
  SetInstr(table, Opcode::k##name, DType::kFloat, &Interpolate<Tabulated<Opcode::k##name>, float>); \
  SetInstr(table, Opcode::k##name, DType::kDouble, &Interpolate<Tabulated<Opcode::k##name>, double>);
  XPU_TABULATED(XPU_ADD)
#undef XPU_ADD
}

}  // namespace
}  // namespace xpu::cpu::XPU_ISA
#include "tensorflow_plugin/backends/cpu/simd/each_isa.h"
#endif  // XPU_ISA

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

// Where an operand is in a table: the first coefficient of its row, and the bits of the float behind those that name
// it.
struct TablePlace {
  int32_t row;
  int32_t behind;
  bool found;
};

template <typename F>
XPU_INLINE float ArgumentOf(float x) {
  if constexpr (F::kArgument == TableArgument::kMagnitude) return Magnitude(x);
  // 1 - x is exact from 1/2 on.
  if constexpr (F::kArgument == TableArgument::kShare) return x < 0.5f ? x : 1.0f - x;
  if constexpr (F::kArgument == TableArgument::kMagnitudeOrRest) {
    const float a = Magnitude(x);
    return a < 0.5f ? a : 1.0f - a;
  }
  return x;
}

template <typename F>
XPU_INLINE TablePlace Find(float x) {
  const uint32_t bits = BitCast<uint32_t>(ArgumentOf<F>(x));
  const uint32_t leading = bits >> (23 - F::kBits);
  uint32_t row = leading - F::kFirst;
  bool found = row < F::kCount;
  if constexpr (F::kCountRest != 0) {
    const bool is_rest = !(Magnitude(x) < 0.5f);
    const uint32_t rest_row = leading - F::kFirstRest;
    found = is_rest ? rest_row < F::kCountRest : found;
    row = is_rest ? rest_row + F::kCount : row;
  }
  constexpr int32_t behind = (1 << (23 - F::kBits)) - 1;
  return {found ? static_cast<int32_t>(row) * kTableTerms : 0, static_cast<int32_t>(bits) & behind, found};
}

template <typename F>
static bool Interpolate(void* dst, const void* a, const void* b, const void* c, int64_t n) {
  constexpr int64_t kBlock = 64;
  const double* const table = *RowsOf(F::kOp);
  const float* x = static_cast<const float*>(a);
  float* y = static_cast<float*>(dst);
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t m = begin + kBlock < n ? kBlock : n - begin;
    // The result may replace the operand.
    float operand[kBlock];
    int32_t row[kBlock], behind[kBlock];
    int all_found = 1;
    for (int64_t i = 0; i < m; ++i) operand[i] = x[begin + i];
    for (int64_t i = 0; i < m; ++i) {
      const TablePlace place = Find<F>(operand[i]);
      row[i] = place.row;
      behind[i] = place.behind;
      all_found &= place.found;
    }
    float* result = y + begin;
#pragma GCC ivdep
    for (int64_t i = 0; i < m; ++i) {
      const double t = behind[i] * (1.0 / (1 << (22 - F::kBits)));
      const double* coefficients = table + row[i];
      double r = coefficients[kTableTerms - 1];
#pragma GCC unroll 8
      for (int k = kTableTerms - 2; k >= 0; --k) r = r * t + coefficients[k];
      if constexpr (F::kFactor == TableFactor::kExp) r *= Exp_(static_cast<double>(Magnitude(operand[i])));
      if constexpr (F::kFactor == TableFactor::kExpMinus) r *= Exp_(-static_cast<double>(operand[i]));
      float rounded = static_cast<float>(r);
      if constexpr (F::kSign == TableSign::kOfX) rounded = WithSignOf(rounded, operand[i]);
      if constexpr (F::kSign == TableSign::kOfXMinusHalf) rounded = WithSignOf(rounded, operand[i] - 0.5f);
      result[i] = rounded;
    }
    if (all_found) continue;
    const InstrFn exact = plain::FindInstr(F::kOp, DType::kFloat, DType::kFloat);
    for (int64_t i = 0; i < m; ++i) {
      if (!Find<F>(operand[i]).found) exact(result + i, operand + i, b, c, 1);
    }
  }
  return false;
}

static void AddTables(InstrTable* table) {
#define XPU_ADD(name, ...) SetInstr(table, Opcode::k##name, DType::kFloat, &Interpolate<Tabulated<Opcode::k##name>>);
  XPU_TABULATED(XPU_ADD)
#undef XPU_ADD
}

}  // namespace
}  // namespace xpu::cpu::XPU_ISA
#include "tensorflow_plugin/backends/cpu/simd/each_isa.h"
#endif  // XPU_ISA

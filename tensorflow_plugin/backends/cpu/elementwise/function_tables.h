// Functions of one float or double as tables of polynomials, made at first use from their definitions in double. An
// argument's exponent and leading bits are its row, the other bits the polynomial's argument: no branch. A float's
// tables have more digits than it holds, and a double's as many as the definitions.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_FUNCTION_TABLES_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_FUNCTION_TABLES_H_

#include <cstdint>

#include "tensorflow_plugin/primitives/program.h"

namespace xpu::cpu {

// A table is a function of u. This says how u follows from an instruction's operand x.
enum class TableArgument {
  kItself,
  kMagnitude,        // |x|
  kMagnitudeOrRest,  // |x|, and from 1/2 on 1 - |x|, which has rows of its own, from the least such one on
  kShare,            // the same of 2x - 1
};
// By what the polynomial is multiplied: nothing, exp(u) or exp(-u).
enum class TableFactor { kNone, kExp, kExpMinus };
// By what the sign of the polynomial is changed: nothing, that of x, or that of x - 1/2.
enum class TableSign { kOwn, kOfX, kOfXMinusHalf };

// V(instruction, argument, factor, sign, bits, least, most): u from 2^least to below 2^most, in 2^bits rows for each
// power of two. Wherever x is beyond, at zeros, infinities and NaN it is the plain instruction that computes.
#define XPU_TABULATED(V)                               \
  V(Erfinv, kMagnitudeOrRest, kNone, kOfX, 4, -12, -1) \
  V(Ndtri, kShare, kNone, kOfXMinusHalf, 4, -12, -1)   \
  V(Digamma, kItself, kNone, kOwn, 4, -12, 8)          \
  V(BesselI0, kMagnitude, kExp, kOwn, 4, -12, 7)       \
  V(BesselI0e, kMagnitude, kNone, kOwn, 4, -12, 7)     \
  V(BesselI1, kMagnitude, kExp, kOfX, 4, -12, 7)       \
  V(BesselI1e, kMagnitude, kNone, kOfX, 4, -12, 7)     \
  V(BesselK0, kItself, kExpMinus, kOwn, 4, -12, 7)     \
  V(BesselK0e, kItself, kNone, kOwn, 4, -12, 7)        \
  V(BesselK1, kItself, kExpMinus, kOwn, 4, -12, 7)     \
  V(BesselK1e, kItself, kNone, kOwn, 4, -12, 7)        \
  V(BesselJ0, kMagnitude, kNone, kOwn, 5, -12, 5)      \
  V(BesselJ1, kMagnitude, kNone, kOfX, 5, -12, 5)      \
  V(BesselY0, kItself, kNone, kOwn, 5, -12, 5)         \
  V(BesselY1, kItself, kNone, kOwn, 5, -12, 5)         \
  V(Dawsn, kMagnitude, kNone, kOfX, 4, -12, 7)         \
  V(Expint, kItself, kExp, kOwn, 4, -12, 7)            \
  V(FresnelCos, kMagnitude, kNone, kOfX, 5, -10, 2)    \
  V(FresnelSin, kMagnitude, kNone, kOfX, 5, -10, 2)    \
  V(Spence, kItself, kNone, kOwn, 4, -12, 8)

// The facts of a table that are known when loops are compiled.
template <TableArgument argument, TableFactor factor, TableSign sign, int bits, int least, int most>
struct TableLayout {
  static constexpr TableArgument kArgument = argument;
  static constexpr TableFactor kFactor = factor;
  static constexpr TableSign kSign = sign;
  static constexpr int kBits = bits, kLeast = least, kMost = most;
};
template <Opcode op>
struct Tabulated;
#define XPU_LAYOUT(name, argument, factor, sign, bits, least, most)                                     \
  template <>                                                                                           \
  struct Tabulated<Opcode::k##name>                                                                     \
      : TableLayout<TableArgument::argument, TableFactor::factor, TableSign::sign, bits, least, most> { \
    static constexpr Opcode kOp = Opcode::k##name;                                                      \
  };
XPU_TABULATED(XPU_LAYOUT)
#undef XPU_LAYOUT

// The facts of a type's tables. The coefficients of a row are of the powers of a number. It goes from 0 at the row's
// start, where the value is exact, to 2 at its end.
template <typename Layout, typename T>
struct TableRows {
  static constexpr bool kIsFloat = sizeof(T) == 4;
  static constexpr int kTerms = kIsFloat ? 8 : 12;
  static constexpr int kMantissa = kIsFloat ? 23 : 52;
  static constexpr int kBias = kIsFloat ? 127 : 1023;
  static constexpr int kLeastRest = -kMantissa - 2;
  // The leading bits of the first number that has a row, and the number of rows; the same for rows of the rest to 1.
  static constexpr uint32_t kFirst = static_cast<uint32_t>(kBias + Layout::kLeast) << Layout::kBits;
  static constexpr uint32_t kCount = static_cast<uint32_t>(Layout::kMost - Layout::kLeast) << Layout::kBits;
  static constexpr uint32_t kFirstRest = static_cast<uint32_t>(kBias + kLeastRest) << Layout::kBits;
  static constexpr bool kHasRest =
      Layout::kArgument == TableArgument::kMagnitudeOrRest || Layout::kArgument == TableArgument::kShare;
  static constexpr uint32_t kCountRest = kHasRest ? static_cast<uint32_t>(-kLeastRest) << Layout::kBits : 0;
};

// The coefficients of all rows of a tabulated instruction of floats or doubles. Thread-safe; the first call makes them,
// in a few milliseconds.
template <typename T>
const double* RowsOf(Opcode op);

}  // namespace xpu::cpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_FUNCTION_TABLES_H_

// Float functions of one argument as tables of polynomials, made at first use from their definitions in double. A
// float's exponent and leading bits are its row, the other bits the polynomial's argument: no branch, and more digits
// than a float holds.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_FUNCTION_TABLES_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_FUNCTION_TABLES_H_

#include <cstdint>

#include "tensorflow_plugin/primitives/program.h"

namespace xpu::cpu {

// A table is a function of u. This says how u follows from an instruction's operand x.
enum class TableArgument {
  kItself,
  kMagnitude,        // |x|
  kMagnitudeOrRest,  // |x|, and from 1/2 on 1 - |x|, which has rows of its own: from kLeastRest to 1
  kShare,            // x, and from 1/2 on 1 - x
};
// By what the polynomial is multiplied: nothing, exp(u) or exp(-u).
enum class TableFactor { kNone, kExp, kExpMinus };
// Whose sign the result has: its own, that of x, or that of x - 1/2.
enum class TableSign { kOwn, kOfX, kOfXMinusHalf };

// V(instruction, argument, factor, sign, bits, least, most): u from 2^least to below 2^most, in 2^bits rows for each
// power of two. Wherever x is beyond, at zeros, infinities and NaN it is the plain instruction that computes.
#define XPU_TABULATED(V)                               \
  V(Erfinv, kMagnitudeOrRest, kNone, kOfX, 4, -12, -1) \
  V(Ndtri, kShare, kNone, kOfXMinusHalf, 4, -30, -1)   \
  V(Digamma, kItself, kNone, kOwn, 4, -12, 8)          \
  V(BesselI0, kMagnitude, kExp, kOwn, 4, -12, 7)       \
  V(BesselI0e, kMagnitude, kNone, kOwn, 4, -12, 7)     \
  V(BesselI1, kMagnitude, kExp, kOfX, 4, -12, 7)       \
  V(BesselI1e, kMagnitude, kNone, kOfX, 4, -12, 7)     \
  V(BesselK0, kItself, kExpMinus, kOwn, 4, -12, 7)     \
  V(BesselK0e, kItself, kNone, kOwn, 4, -12, 7)        \
  V(BesselK1, kItself, kExpMinus, kOwn, 4, -12, 7)     \
  V(BesselK1e, kItself, kNone, kOwn, 4, -12, 7)        \
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
  static constexpr int kLeastRest = -25;
  // The leading bits of the first float that has a row, and the number of rows; the same for rows of the rest to 1.
  static constexpr uint32_t kFirst = static_cast<uint32_t>(127 + least) << bits;
  static constexpr uint32_t kCount = static_cast<uint32_t>(most - least) << bits;
  static constexpr uint32_t kFirstRest = static_cast<uint32_t>(127 + kLeastRest) << bits;
  static constexpr uint32_t kCountRest =
      argument == TableArgument::kMagnitudeOrRest ? static_cast<uint32_t>(-kLeastRest) << bits : 0;
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

// The coefficients of a row. They are of the powers of a number that goes from 0 at its start, where the value is
// exact, to 2 at its end.
inline constexpr int kTableTerms = 8;
using TableRow = double[kTableTerms];

// The rows of a tabulated instruction. Thread-safe; the first call makes them, in about a millisecond.
const TableRow* RowsOf(Opcode op);

}  // namespace xpu::cpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_FUNCTION_TABLES_H_

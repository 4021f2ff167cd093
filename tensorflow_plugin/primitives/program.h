// Elementwise programs: a short list of typed instructions over virtual registers, in single-assignment form.
//
// One mechanism serves every unary, binary, comparison, cast, select and activation op, the optimizer updates, and
// every fused chain of them. A single op is a program of one instruction. Programs are built once, interned for the
// life of the process and shared by pointer. So launching one copies nothing, and a backend may keep a program in
// compiled form in a table keyed by the pointer.
#ifndef TENSORFLOW_PLUGIN_PRIMITIVES_PROGRAM_H_
#define TENSORFLOW_PLUGIN_PRIMITIVES_PROGRAM_H_

#include <complex>
#include <cstdint>
#include <string>
#include <vector>

#include "tensorflow_plugin/primitives/types.h"

namespace xpu {

// Operand type classes, for the table below.
enum TypeClass : uint8_t { kF = 1, kI = 2, kU = 4, kB = 8, kC = 16 };

// The type of an instruction's result, given operand type T.
enum class ResultRule : uint8_t {
  kSame,  // T
  kBool,  // bool
  kReal,  // the real type of a complex T, else T
  kCast,  // the type named by the instruction
};

// V(name, arity, operand type classes, result rule). The types half and bfloat16 are computed in float, and a register
// of theirs keeps the whole float. A value is rounded when it is stored, and by a Cast to half or bfloat16, even from
// that same type. Where not said otherwise the meaning is C++'s <cmath> function of that name, complex ones included.
#define XPU_OPCODES(V)                                                                                         \
  V(Cast, 1, kF | kI | kU | kB | kC,                                                                           \
    kCast) /* static_cast; float to int truncates, and saturates in 8 and 16 bits; to bool: != 0; */           \
  /* complex to real: real part */                                                                             \
  V(Neg, 1, kF | kI | kU | kC, kSame)                                                                          \
  V(Abs, 1, kF | kI | kU | kC, kReal)                                                                          \
  V(Sign, 1, kF | kI | kU | kC, kSame) /* -1, 0, 1; NaN stays; complex: x / |x|, 0 at 0 */                     \
  V(Reciprocal, 1, kF | kC, kSame)                                                                             \
  V(Square, 1, kF | kI | kU | kC, kSame)                                                                       \
  V(Sqrt, 1, kF | kC, kSame)                                                                                   \
  V(Rsqrt, 1, kF | kC, kSame)                                                                                  \
  V(Exp, 1, kF | kC, kSame)                                                                                    \
  V(Expm1, 1, kF | kC, kSame)                                                                                  \
  V(Log, 1, kF | kC, kSame)                                                                                    \
  V(Log1p, 1, kF | kC, kSame)                                                                                  \
  V(Sin, 1, kF | kC, kSame)                                                                                    \
  V(Cos, 1, kF | kC, kSame)                                                                                    \
  V(Tan, 1, kF | kC, kSame)                                                                                    \
  V(Asin, 1, kF | kC, kSame)                                                                                   \
  V(Acos, 1, kF | kC, kSame)                                                                                   \
  V(Atan, 1, kF | kC, kSame)                                                                                   \
  V(Sinh, 1, kF | kC, kSame)                                                                                   \
  V(Cosh, 1, kF | kC, kSame)                                                                                   \
  V(Tanh, 1, kF | kC, kSame)                                                                                   \
  V(Asinh, 1, kF | kC, kSame)                                                                                  \
  V(Acosh, 1, kF | kC, kSame)                                                                                  \
  V(Atanh, 1, kF | kC, kSame)                                                                                  \
  V(Sigmoid, 1, kF | kC, kSame) /* 1 / (1 + exp(-x)) */                                                        \
  V(Erf, 1, kF, kSame)                                                                                         \
  V(Erfc, 1, kF, kSame)                                                                                        \
  V(Erfinv, 1, kF, kSame)                                                                                      \
  V(Ndtri, 1, kF, kSame) /* the quantile function of the normal distribution */                                \
  V(Lgamma, 1, kF, kSame)                                                                                      \
  V(Digamma, 1, kF, kSame)                                                                                     \
  V(BesselI0, 1, kF, kSame) /* modified Bessel functions; an e: divided by exp(|x|) or exp(-x) */              \
  V(BesselI0e, 1, kF, kSame)                                                                                   \
  V(BesselI1, 1, kF, kSame)                                                                                    \
  V(BesselI1e, 1, kF, kSame)                                                                                   \
  V(BesselJ0, 1, kF, kSame)                                                                                    \
  V(BesselJ1, 1, kF, kSame)                                                                                    \
  V(BesselK0, 1, kF, kSame)                                                                                    \
  V(BesselK0e, 1, kF, kSame)                                                                                   \
  V(BesselK1, 1, kF, kSame)                                                                                    \
  V(BesselK1e, 1, kF, kSame)                                                                                   \
  V(BesselY0, 1, kF, kSame)                                                                                    \
  V(BesselY1, 1, kF, kSame)                                                                                    \
  V(Dawsn, 1, kF, kSame)      /* exp(-x^2) times the integral of exp(t^2) from 0 to x */                       \
  V(Expint, 1, kF, kSame)     /* the exponential integral Ei */                                                \
  V(FresnelCos, 1, kF, kSame) /* the integral of cos(pi t^2 / 2) from 0 to x */                                \
  V(FresnelSin, 1, kF, kSame)                                                                                  \
  V(Spence, 1, kF, kSame)               /* the integral of log(t) / (1 - t) from 1 to x */                     \
  V(PopulationCount, 1, kI | kU, kSame) /* bits that are 1 */                                                  \
  V(Ceil, 1, kF, kSame)                                                                                        \
  V(Floor, 1, kF, kSame)                                                                                       \
  V(Rint, 1, kF, kSame) /* halves to even */                                                                   \
  V(IsNan, 1, kF, kBool)                                                                                       \
  V(IsInf, 1, kF, kBool)                                                                                       \
  V(IsFinite, 1, kF, kBool)                                                                                    \
  V(LogicalNot, 1, kB, kSame)                                                                                  \
  V(BitwiseNot, 1, kI | kU, kSame)                                                                             \
  V(Real, 1, kC, kReal)                                                                                        \
  V(Imag, 1, kC, kReal)                                                                                        \
  V(Angle, 1, kC, kReal)                                                                                       \
  V(Conj, 1, kC, kSame)                                                                                        \
  V(Add, 2, kF | kI | kU | kC, kSame) /* integers wrap, here and below */                                      \
  V(Sub, 2, kF | kI | kU | kC, kSame)                                                                          \
  V(Mul, 2, kF | kI | kU | kC, kSame)                                                                          \
  V(Div, 2, kF | kC, kSame)                                                                                    \
  V(TruncateDiv, 2, kI | kU, kSame)      /* by zero: 0, and the command fails; so do the integer ones below */ \
  V(FloorDiv, 2, kF | kI | kU, kSame)    /* float: floor(a / b), no failure */                                 \
  V(FloorMod, 2, kF | kI | kU, kSame)    /* sign of the divisor */                                             \
  V(TruncateMod, 2, kF | kI | kU, kSame) /* sign of the dividend */                                            \
  V(Maximum, 2, kF | kI | kU, kSame)     /* NaN if either is NaN */                                            \
  V(Minimum, 2, kF | kI | kU, kSame)                                                                           \
  V(Pow, 2, kF | kI | kC, kSame) /* integer to a negative power: 0, and the command fails */                   \
  V(Atan2, 2, kF, kSame)                                                                                       \
  V(NextAfter, 2, kF, kSame)                                                                                   \
  V(Igamma, 2, kF, kSame) /* the regularised incomplete gamma function P(a, x), and 1 - P */                   \
  V(Igammac, 2, kF, kSame)                                                                                     \
  V(IgammaGradA, 2, kF, kSame)     /* dP(a, x) / da */                                                         \
  V(GammaSampleGrad, 2, kF, kSame) /* d sample / d alpha of a gamma(alpha, 1) sample */                        \
  V(Polygamma, 2, kF, kSame)       /* the derivative of order a of digamma, at b */                            \
  V(Zeta, 2, kF, kSame)            /* Hurwitz's: the sum of (k + b)^-a over k = 0, 1, ... */                   \
  V(Equal, 2, kF | kI | kU | kB | kC, kBool)                                                                   \
  V(NotEqual, 2, kF | kI | kU | kB | kC, kBool)                                                                \
  V(Less, 2, kF | kI | kU, kBool)                                                                              \
  V(LessEqual, 2, kF | kI | kU, kBool)                                                                         \
  V(Greater, 2, kF | kI | kU, kBool)                                                                           \
  V(GreaterEqual, 2, kF | kI | kU, kBool)                                                                      \
  V(LogicalAnd, 2, kB, kSame)                                                                                  \
  V(LogicalOr, 2, kB, kSame)                                                                                   \
  V(BitwiseAnd, 2, kI | kU, kSame)                                                                             \
  V(BitwiseOr, 2, kI | kU, kSame)                                                                              \
  V(BitwiseXor, 2, kI | kU, kSame)                                                                             \
  V(LeftShift, 2, kI | kU, kSame) /* the count is clamped to 0 .. bits-1 */                                    \
  V(RightShift, 2, kI | kU, kSame)                                                                             \
  V(Betainc, 3, kF, kSame)                    /* the regularised incomplete beta function I_c(a, b) */         \
  V(Select, 3, kF | kI | kU | kB | kC, kSame) /* a (bool) ? b : c; T is the type of b and c */

enum class Opcode : uint8_t {
#define XPU_ENUM(name, ...) k##name,
  XPU_OPCODES(XPU_ENUM)
#undef XPU_ENUM
};

struct OpcodeInfo {
  const char* name;
  uint8_t arity;
  uint8_t types;  // TypeClass bits
  ResultRule result;
};
extern const OpcodeInfo kOpcodeInfo[];
#define XPU_COUNT(name, ...) +1
inline constexpr int kNumOpcodes = 0 XPU_OPCODES(XPU_COUNT);
#undef XPU_COUNT
inline const OpcodeInfo& Info(Opcode op) { return kOpcodeInfo[static_cast<int>(op)]; }

// The type class bit of a type.
TypeClass ClassOf(DType t);

// True if `op` is defined on operand type `t`.
inline bool IsDefined(Opcode op, DType t) { return t != DType::kInvalid && (Info(op).types & ClassOf(t)); }

// One instruction. Its operands are register numbers, its result is the next register.
struct Instr {
  Opcode op;
  DType type;    // type of the operands (of b and c for Select)
  DType result;  // type of the result
  uint16_t a = 0, b = 0, c = 0;
};

// True if the instruction can fail on its data: an integer division, by zero, or an integer power, by a negative one.
bool CanFail(const Instr& instr);

struct Constant {
  DType type;
  // Real and imaginary part; integers up to 2^53 and bool are exact in `re`, int64 and uint64 beyond use `bits`.
  double re = 0, im = 0;
  int64_t bits = 0;
};

// Immutable. Registers are numbered: inputs, then constants, then instruction results in order.
class Program {
 public:
  static constexpr int kMaxInputs = 16;
  static constexpr int kMaxOutputs = 8;
  static constexpr int kMaxRegisters = 128;

  const std::vector<DType>& inputs() const { return inputs_; }
  const std::vector<Constant>& constants() const { return constants_; }
  const std::vector<Instr>& instrs() const { return instrs_; }
  // The registers that are stored, in output order.
  const std::vector<uint16_t>& outputs() const { return outputs_; }

  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  int num_outputs() const { return static_cast<int>(outputs_.size()); }
  int num_registers() const { return static_cast<int>(inputs_.size() + constants_.size() + instrs_.size()); }
  int first_instr_register() const { return static_cast<int>(inputs_.size() + constants_.size()); }
  DType type(int reg) const;
  DType output_type(int i) const { return type(outputs_[i]); }
  // True if an instruction can fail on its data (CanFail).
  bool can_fail() const { return can_fail_; }
  // "r2:float = Add r0, r1" lines: for tests, logs and people.
  std::string ToString() const;

 private:
  friend class ProgramBuilder;
  std::vector<DType> inputs_;
  std::vector<Constant> constants_;
  std::vector<Instr> instrs_;
  std::vector<uint16_t> outputs_;
  bool can_fail_ = false;
};

// Builds a program. Misuse (a wrong operand type, too many registers) is a programmer's error: it makes Build()
// return nullptr and error() say why.
class ProgramBuilder {
 public:
  struct Reg {
    enum Kind : uint8_t { kInput, kConstant, kResult } kind;
    uint16_t index;
    DType type;
  };

  Reg Input(DType type);
  Reg Const(DType type, double value);
  Reg ConstComplex(DType type, std::complex<double> value);
  Reg ConstInt(DType type, int64_t value);  // exact for 64-bit integers
  Reg Const(const Constant& constant);      // another program's
  Reg Apply(Opcode op, Reg a);
  Reg Apply(Opcode op, Reg a, Reg b);
  Reg Apply(Opcode op, Reg a, Reg b, Reg c);
  Reg Cast(Reg a, DType to);  // a itself when it has that type already
  Reg Round(Reg a);           // as a would be stored and read again; a itself but for half and bfloat16
  Reg Again(const Instr& instr, Reg a, Reg b, Reg c);  // another program's; operands beyond its arity are ignored
  // Another program's instructions. The registers are its own, by number; its inputs are given, and so may its
  // constants be.
  std::vector<Reg> Inline(const Program& program, std::vector<Reg> registers);
  void Output(Reg r);

  // The interned program: equal programs give the same pointer, valid for ever.
  const Program* Build();
  const std::string& error() const { return error_; }

 private:
  Reg Emit(Opcode op, DType type, DType result, const Reg* operands, int n);
  void Fail(std::string message);

  struct Pending {
    Opcode op;
    DType type, result;
    Reg operands[3];
    int n;
  };
  std::vector<DType> inputs_;
  std::vector<Constant> constants_;
  std::vector<Pending> instrs_;
  std::vector<Reg> outputs_;
  std::string error_;
};

// The program of no instruction: its one output is its one input. Nothing but a copy.
const Program* IdentityProgram(DType type);
// The program of one instruction on inputs of one type (Select: bool, T, T).
const Program* SingleOpProgram(Opcode op, DType type);
// One input cast to another type.
const Program* CastProgram(DType from, DType to);

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_PRIMITIVES_PROGRAM_H_

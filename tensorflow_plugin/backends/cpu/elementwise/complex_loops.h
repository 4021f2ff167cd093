// Functions of complex registers (see isa.h), in double for both types. Each is a formula for ordinary operands: these
// are so far from 0 and infinity that no square overflows or loses digits. The plain instruction computes the others.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_COMPLEX_LOOPS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_COMPLEX_LOOPS_H_

#include <cstdint>

#include "tensorflow_plugin/backends/cpu/elementwise/instruction_loops.h"
#include "tensorflow_plugin/backends/cpu/elementwise/instruction_table.h"
#include "tensorflow_plugin/backends/cpu/simd/float_math.h"
#include "tensorflow_plugin/backends/cpu/simd/isa.h"

#define XPU_ISA_FILE "tensorflow_plugin/backends/cpu/elementwise/complex_loops.h"
#define XPU_ISA baseline
#define XPU_VECTOR_BYTES 16
#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_COMPLEX_LOOPS_H_

#if defined(XPU_ISA)
namespace xpu::cpu::XPU_ISA {
namespace {

struct Complex {
  double re, im;
};

XPU_INLINE bool IsBelow(Complex z, double limit) { return (Magnitude(z.re) < limit) & (Magnitude(z.im) < limit); }
XPU_INLINE bool IsZero(Complex z) { return (z.re == 0) & (z.im == 0); }
XPU_INLINE bool IsBetween(Complex z, double least, double most) {
  return IsBelow(z, most) & ((Magnitude(z.re) > least) | (Magnitude(z.im) > least));
}
XPU_INLINE bool IsOrdinary(Complex z) { return IsBetween(z, 0x1p-480, 0x1p480); }
// Its exponential, and that one's square, are numbers in range, and it has a sine.
XPU_INLINE bool HasExponential(Complex z) { return (Magnitude(z.re) < 350) & (Magnitude(z.im) < kWideTrigLimit); }

XPU_INLINE double Square(Complex z) { return z.re * z.re + z.im * z.im; }
XPU_INLINE Complex Product(Complex x, Complex y) { return {x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re}; }
XPU_INLINE Complex Quotient(Complex x, Complex y) {
  const double scale = 1 / Square(y);
  return {(x.re * y.re + x.im * y.im) * scale, (x.im * y.re - x.re * y.im) * scale};
}

XPU_INLINE Complex SquareRoot(Complex z) {
  const double large = RootOf((RootOf(Square(z)) + Magnitude(z.re)) * 0.5), small = Magnitude(z.im) / (2 * large);
  const bool right = z.re >= 0;
  return {right ? large : small, WithSignOf(right ? small : large, z.im)};
}

XPU_INLINE Complex Exponential(Complex z) {
  const double size = Exp_(z.re);
  const SineAndCosine angle = SineAndCosine_(z.im);
  return {size * angle.cosine, size * angle.sine};
}

// log |z| is half the logarithm of the square. Near 1 that comes from `beyond`, what the square is more than 1.
XPU_INLINE Complex Logarithm(Complex z, bool is_near, double beyond) {
  const double square = is_near ? 1 + beyond : Square(z);
  const double lost = is_near ? beyond - (square - 1) : 0;
  return {0.5 * (Log_(square) + lost / square), Atan2_(z.im, z.re)};
}
XPU_INLINE Complex Logarithm(Complex z) {
  const double x = Magnitude(z.re), y = Magnitude(z.im), large = x > y ? x : y, small = x > y ? y : x;
  const double square = Square(z);
  return Logarithm(z, (square > 0.5) & (square < 2), (large - 1) * (large + 1) + small * small);
}

// sinh and cosh of x, without cancellation near 0.
struct Hyperbolic {
  double sine, cosine;
};
XPU_INLINE Hyperbolic HyperbolicOf(double x) {
  const double beyond = Expm1_(Magnitude(x)), inverse = 1 / (1 + beyond);
  return {WithSignOf(0.5 * (beyond + beyond * inverse), x), 0.5 * ((1 + beyond) + inverse)};
}

// Each op has Do, which is for what Takes, and the plain instruction's number.
#define XPU_OP1(name, takes, ...)                               \
  struct name {                                                 \
    static constexpr Opcode kOp = Opcode::k##name;              \
    static constexpr int kOperands = 1;                         \
    XPU_INLINE bool Takes(Complex z, Complex) { return takes; } \
    XPU_INLINE auto Do(Complex z, Complex) { __VA_ARGS__ }      \
  }
#define XPU_OP2(name, takes, ...)                                 \
  struct name {                                                   \
    static constexpr Opcode kOp = Opcode::k##name;                \
    static constexpr int kOperands = 2;                           \
    XPU_INLINE bool Takes(Complex x, Complex y) { return takes; } \
    XPU_INLINE auto Do(Complex x, Complex y) { __VA_ARGS__ }      \
  }

XPU_OP1(Abs, IsOrdinary(z) | IsZero(z), return RootOf(Square(z)););
XPU_OP1(Angle, true, return Atan2_(z.im, z.re););
XPU_OP1(Sign, IsOrdinary(z), const double scale = 1 / RootOf(Square(z)); return Complex{z.re * scale, z.im * scale};);
XPU_OP1(Reciprocal, IsOrdinary(z), return Quotient({1, 0}, z););
XPU_OP1(Sqrt, IsOrdinary(z), return SquareRoot(z););
XPU_OP1(Rsqrt, IsOrdinary(z), const Complex root = SquareRoot(z); const double scale = 1 / Square(root);
        return Complex{root.re * scale, -root.im * scale};);
XPU_OP1(Exp, HasExponential(z), return Exponential(z););
XPU_OP1(Expm1, HasExponential(z), const double beyond = Expm1_(z.re);
        const SineAndCosine half = SineAndCosine_(0.5 * z.im); const double less = 2 * half.sine * half.sine;
        return Complex{beyond * (1 - less) - less, (1 + beyond) * (2 * half.sine * half.cosine)};);
XPU_OP1(Log, IsOrdinary(z), return Logarithm(z););
XPU_OP1(Log1p, IsOrdinary(z) & IsOrdinary({1 + z.re, z.im}),
        return Logarithm({1 + z.re, z.im}, IsBelow(z, 0.5), z.re * (2 + z.re) + z.im * z.im););
XPU_OP1(Sigmoid, HasExponential(z), const Complex e = Exponential({-z.re, -z.im});
        return Quotient({1, 0}, {1 + e.re, e.im}););
XPU_OP1(Sin, HasExponential({z.im, z.re}), const SineAndCosine a = SineAndCosine_(z.re);
        const Hyperbolic b = HyperbolicOf(z.im); return Complex{a.sine * b.cosine, a.cosine * b.sine};);
XPU_OP1(Cos, HasExponential({z.im, z.re}), const SineAndCosine a = SineAndCosine_(z.re);
        const Hyperbolic b = HyperbolicOf(z.im); return Complex{a.cosine * b.cosine, -a.sine * b.sine};);
XPU_OP1(Tan, HasExponential({z.im, z.re}), const SineAndCosine a = SineAndCosine_(z.re);
        const Hyperbolic b = HyperbolicOf(z.im); const double scale = 1 / (a.cosine * a.cosine + b.sine * b.sine);
        return Complex{a.sine * a.cosine * scale, b.sine * b.cosine * scale};);
XPU_OP1(Sinh, HasExponential(z), const Hyperbolic a = HyperbolicOf(z.re); const SineAndCosine b = SineAndCosine_(z.im);
        return Complex{a.sine * b.cosine, a.cosine * b.sine};);
XPU_OP1(Cosh, HasExponential(z), const Hyperbolic a = HyperbolicOf(z.re); const SineAndCosine b = SineAndCosine_(z.im);
        return Complex{a.cosine * b.cosine, a.sine * b.sine};);
XPU_OP1(Tanh, HasExponential(z), const Hyperbolic a = HyperbolicOf(z.re); const SineAndCosine b = SineAndCosine_(z.im);
        const double scale = 1 / (a.sine * a.sine + b.cosine * b.cosine);
        return Complex{a.sine * a.cosine * scale, b.sine * b.cosine * scale};);
XPU_OP2(Div, IsOrdinary(y) & (IsOrdinary(x) | IsZero(x)), return Quotient(x, y););
// Such an x has a logarithm whose parts are below 36, and the parts of the product stay below 350.
XPU_OP2(Pow, IsBetween(x, 0x1p-50, 0x1p50) & IsBelow(y, 6), return Exponential(Product(y, Logarithm(x))););

#define XPU_COMPLEX_OPS(V) \
  V(Abs)                   \
  V(Angle)                 \
  V(Sign)                  \
  V(Reciprocal)            \
  V(Sqrt)                  \
  V(Rsqrt)                 \
  V(Exp)                   \
  V(Expm1)                 \
  V(Log)                   \
  V(Log1p)                 \
  V(Sigmoid)               \
  V(Sin)                   \
  V(Cos)                   \
  V(Tan)                   \
  V(Sinh)                  \
  V(Cosh)                  \
  V(Tanh)                  \
  V(Div)                   \
  V(Pow)

// The parts of some numbers, each for itself: loops over them vectorise well.
constexpr int64_t kBlock = 64;
struct Block {
  double re[kBlock], im[kBlock];
};
XPU_INLINE Complex At(const Block& block, int64_t i) { return {block.re[i], block.im[i]}; }
XPU_INLINE void Set(Block* block, int64_t i, Complex z) { block->re[i] = z.re, block->im[i] = z.im; }
XPU_INLINE void Set(Block* block, int64_t i, double x) { block->re[i] = x; }
template <typename T>
XPU_INLINE void Read(const T* x, int64_t n, Block* block) {
  for (int64_t i = 0; i < n; ++i) Set(block, i, Complex{x[2 * i], x[2 * i + 1]});
}

template <typename T>
XPU_INLINE void Store(T* to, Complex z, int parts) {
  to[0] = static_cast<T>(z.re);
  if (parts == 2) to[1] = static_cast<T>(z.im);
}

// T is the type of the parts. Results may replace an operand, so that they are stored last.
template <typename Op, typename T, DType type>
static bool MapComplex(void* dst, const void* a, const void* b, const void*, int64_t n) {
  constexpr int kParts = sizeof(decltype(Op::Do({}, {}))) / sizeof(double);
  const T* const x = static_cast<const T*>(a);
  const T* const y = static_cast<const T*>(b);
  T* const z = static_cast<T*>(dst);
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t m = begin + kBlock < n ? kBlock : n - begin;
    Block first, second, result;
    Read(x + 2 * begin, m, &first);
    if (Op::kOperands == 2) Read(y + 2 * begin, m, &second);
    int takes_all = 1;
    for (int64_t i = 0; i < m; ++i) takes_all &= Op::Takes(At(first, i), At(second, i));
    for (int64_t i = 0; i < m; ++i) Set(&result, i, Op::Do(At(first, i), At(second, i)));
    T* const to = z + kParts * begin;
    if (takes_all) {
      for (int64_t i = 0; i < m; ++i) Store(to + kParts * i, At(result, i), kParts);
      continue;
    }
    const InstrFn plain = plain::FindInstr(Op::kOp, type, type);
    for (int64_t i = 0; i < m; ++i) {
      if (Op::Takes(At(first, i), At(second, i))) {
        Store(to + kParts * i, At(result, i), kParts);
      } else {
        const int64_t at = 2 * (begin + i);
        plain(to + kParts * i, x + at, Op::kOperands == 2 ? y + at : nullptr, nullptr, 1);
      }
    }
  }
  return false;
}

static void AddComplexInstrs(InstrTable* table) {
#define XPU_ADD(name)                                                                               \
  SetInstr(table, Opcode::k##name, DType::kComplex64, &MapComplex<name, float, DType::kComplex64>); \
  SetInstr(table, Opcode::k##name, DType::kComplex128, &MapComplex<name, double, DType::kComplex128>);
  XPU_COMPLEX_OPS(XPU_ADD)
#undef XPU_ADD
}

#undef XPU_OP1
#undef XPU_OP2
#undef XPU_COMPLEX_OPS

}  // namespace
}  // namespace xpu::cpu::XPU_ISA
#include "tensorflow_plugin/backends/cpu/simd/each_isa.h"
#endif  // XPU_ISA

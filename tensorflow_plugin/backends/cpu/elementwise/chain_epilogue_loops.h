// The steps of chain_epilogue.h on vectors of sums, once per instruction set.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_CHAIN_EPILOGUE_LOOPS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_CHAIN_EPILOGUE_LOOPS_H_

#include "tensorflow_plugin/backends/cpu/elementwise/chain_epilogue.h"
#include "tensorflow_plugin/backends/cpu/simd/float_math.h"
#include "tensorflow_plugin/backends/cpu/simd/vector_math.h"

// For each vector `v` of `kVectors` in each row `i` of `kRows`. The last vector has `tail` lanes. This one has `here`.
#define XPU_EACH(statement)                                                  \
  _Pragma("GCC unroll 16") for (int v = 0; v < kVectors; ++v) {              \
    [[maybe_unused]] const int here = v + 1 < kVectors ? int{kLanes} : tail; \
    _Pragma("GCC unroll 16") for (int i = 0; i < kRows; ++i) { statement; }  \
  }

#define XPU_ISA_FILE "tensorflow_plugin/backends/cpu/elementwise/chain_epilogue_loops.h"
#define XPU_ISA baseline
#define XPU_VECTOR_BYTES 16
#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_CHAIN_EPILOGUE_LOOPS_H_

#if defined(XPU_ISA)
namespace xpu::cpu::XPU_ISA {

// A NaN of either stays.
static inline VF MaximumOf(VF x, VF y) { return x < y ? y : y == y ? x : y; }

// An infinite exponential gives 0.
static inline VF SigmoidOf(VF x) { return 1.0f / (1.0f + Exp(-x)); }

#if XPU_VECTOR_BYTES == 64
// The same as Erfc_, with instructions that only AVX-512 has. A NaN stays.
static inline VF ErfcOf(VF x) {
  const VF a = AtMost((VF)_mm512_abs_ps((__m512)x), Splat<VF>(kErfcIsZero));
  const VF divisor = 1.0f + 0.5f * a;
  const VF guess = (VF)_mm512_maskz_rcp14_ps(0xffff, (__m512)divisor);
  const VF t = guess + guess * (1.0f - guess * divisor);
  const VF square = a * a, lost = (VF)_mm512_fmsub_ps((__m512)a, (__m512)a, (__m512)square);
  const ReducedVector exponent = ReducedByLn2(-square);
  const VF p = ExpOfReduced(exponent.rest - lost) * (t * Poly(t, kErfcTerms));
  const auto tail = (__m512)TimesPowerOfTwo(p, exponent.n);
  return (VF)_mm512_mask_sub_ps(tail, _mm512_cmp_ps_mask((__m512)x, __m512{}, _CMP_LT_OQ), _mm512_set1_ps(2), tail);
}
#endif

// Apart, since it needs all registers.
template <int64_t n>
static __attribute__((noinline)) void ErfcOfAll(float* values) {
#if XPU_VECTOR_BYTES == 64
  for (int64_t i = 0; i < n; i += kLanes) Store(values + i, ErfcOf(Load(values + i)));
#else
  for (int64_t i = 0; i < n; ++i) values[i] = Erfc_(values[i]);
#endif
}

// The steps of AffineChain on sums that are in registers: kRows rows of kVectors vectors. The other arguments are
// those of ApplyChain. kHasShiftAlone: there is no scale, and no operand for each element.
template <int kRows, int kVectors, bool kHasShiftAlone = false>
static inline void ApplyAffineChain(const AffineChain& chain, const VF (&sum)[kRows][kVectors], int count, float* out,
                                    int64_t ld, int64_t offset, int64_t col, int tail) {
  const VF low = Splat<VF>(chain.low), high = Splat<VF>(chain.high);
#pragma GCC unroll 16
  for (int v = 0; v < kVectors; ++v) {
    const int here = v + 1 < kVectors ? int{kLanes} : tail;
    const int64_t at = v * kLanes;
    // Neither changes a number, nor the sign of zero.
    const VF scale = !kHasShiftAlone && chain.scale != nullptr ? Load(chain.scale + col + at) : Splat<VF>(1.0f);
    const VF shift = chain.shift != nullptr ? Load(chain.shift + col + at) : Splat<VF>(-0.0f);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      if (i >= count) break;
      VF x = Uncontracted(kHasShiftAlone ? sum[i][v] : sum[i][v] * scale) + shift;
      if (!kHasShiftAlone && chain.elements != nullptr) x += LoadUpTo(chain.elements + offset + i * ld + at, here);
      StoreUpTo(out + i * ld + at, here, AtMost(AtLeast(x, low), high));
    }
  }
}

// A sum, product or bound. Nothing happens at other steps.
template <int kRows, int kVectors>
static inline __attribute__((always_inline)) void ApplyArithmetic(const ChainStep& step, VF (&x)[kRows][kVectors],
                                                                  int64_t ld, int64_t offset, int64_t col, int tail) {
  using Kind = ChainStep::Kind;
  using Reads = ChainStep::Reads;
  // `y` is the number of a step, its column's, or its element's.
#define XPU_STEP(kind, expression)                                                                        \
  case ChainStep::Code(kind, Reads::kOne): {                                                              \
    const VF y = Splat<VF>(step.one);                                                                     \
    XPU_EACH(x[i][v] = expression)                                                                        \
    break;                                                                                                \
  }                                                                                                       \
  case ChainStep::Code(kind, Reads::kColumns):                                                            \
    _Pragma("GCC unroll 16") for (int v = 0; v < kVectors; ++v) {                                         \
      const VF y = Load(step.data + col + v * kLanes);                                                    \
      _Pragma("GCC unroll 16") for (int i = 0; i < kRows; ++i) { x[i][v] = expression; }                  \
    }                                                                                                     \
    break;                                                                                                \
  case ChainStep::Code(kind, Reads::kElements):                                                           \
    XPU_EACH(const VF y = LoadUpTo(step.data + offset + i * ld + v * kLanes, here); x[i][v] = expression) \
    break;
  switch (ChainStep::Code(step.kind, step.reads)) {
    XPU_STEP(Kind::kAdd, (x[i][v] + y))
    XPU_STEP(Kind::kSub, (x[i][v] - y))
    XPU_STEP(Kind::kMul, (x[i][v] * y))
    XPU_STEP(Kind::kMaximum, MaximumOf(x[i][v], y))
    // A NaN of either stays.
    XPU_STEP(Kind::kMinimum, (y < x[i][v] ? y : y == y ? x[i][v] : y))
    case ChainStep::Code(Kind::kMulAdd, Reads::kColumns):
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) {
        const VF scale = Load(step.data + col + v * kLanes), shift = Load(step.more + col + v * kLanes);
#pragma GCC unroll 16
        for (int i = 0; i < kRows; ++i) x[i][v] = Uncontracted(x[i][v] * scale) + shift;
      }
      break;
    case ChainStep::Code(Kind::kBounds, Reads::kNothing): {
      const VF low = Splat<VF>(step.low), high = Splat<VF>(step.high);
      XPU_EACH(x[i][v] = AtMost(AtLeast(x[i][v], low), high))
      break;
    }
    case ChainStep::Code(Kind::kBounds, Reads::kOne): {
      const VF y = Splat<VF>(step.one), low = Splat<VF>(step.low), high = Splat<VF>(step.high);
      XPU_EACH(x[i][v] = AtMost(AtLeast(x[i][v] + y, low), high))
      break;
    }
    default:
      break;
  }
#undef XPU_STEP
}

// kRows rows of kVectors vectors from sums + i * ld_sums on are finished and stored to out + i * ld. Their elements are
// at `offset` + i * ld in operands for each element, and begin with column `col`. `tail` is how many lanes of the last
// vector there are.
template <int kRows, int kVectors>
static inline void ApplyChain(const ChainStep* steps, int num_steps, const float* sums, int64_t ld_sums, float* out,
                              int64_t ld, int64_t offset, int64_t col, int tail) {
  VF x[kRows][kVectors], kept[kRows][kVectors];
  using Kind = ChainStep::Kind;
  using Reads = ChainStep::Reads;
  XPU_EACH(x[i][v] = LoadUpTo(sums + i * ld_sums + v * kLanes, here); kept[i][v] = x[i][v])
  for (int s = 0; s < num_steps; ++s) {
    const ChainStep& step = steps[s];
    switch (ChainStep::Code(step.kind, step.reads)) {
      case ChainStep::Code(Kind::kSigmoid, Reads::kNothing):
        XPU_EACH(x[i][v] = SigmoidOf(x[i][v]))
        break;
      case ChainStep::Code(Kind::kErfc, Reads::kNothing): {
        alignas(64) float values[kVectors * kRows * kLanes];
        XPU_EACH(Store(values + (v * kRows + i) * kLanes, x[i][v]))
        ErfcOfAll<kVectors * kRows * kLanes>(values);
        XPU_EACH(x[i][v] = Load(values + (v * kRows + i) * kLanes))
        break;
      }
      case ChainStep::Code(Kind::kTimesKept, Reads::kNothing):
        XPU_EACH(x[i][v] = x[i][v] * kept[i][v])
        break;
      case ChainStep::Code(Kind::kTimesKept, Reads::kOne): {
        const VF y = Splat<VF>(step.one);
        XPU_EACH(x[i][v] = x[i][v] * y * kept[i][v])
        break;
      }
      case ChainStep::Code(Kind::kMaximumKept, Reads::kNothing):
        XPU_EACH(x[i][v] = MaximumOf(x[i][v], kept[i][v]))
        break;
      case ChainStep::Code(Kind::kMaximumKept, Reads::kOne): {
        const VF y = Splat<VF>(step.one);
        XPU_EACH(x[i][v] = MaximumOf(x[i][v] * y, kept[i][v]))
        break;
      }
      case ChainStep::Code(Kind::kKeep, Reads::kNothing):
        XPU_EACH(kept[i][v] = x[i][v])
        break;
      default:
        ApplyArithmetic(step, x, ld, offset, col, tail);
    }
  }
  XPU_EACH(StoreUpTo(out + i * ld + v * kLanes, here, x[i][v]))
}

// Rows at a time: what is computed and what is kept are in registers.
template <int kVectors>
inline constexpr int kChainRows = (XPU_VECTOR_BYTES == 64 ? 12 : 6) / kVectors;

// The same for any number of rows.
template <int kVectors, int kRows = kChainRows<kVectors>>
static inline void ApplyChainToTile(const ChainEpilogue& chain, int64_t rows, const float* sums, int64_t ld_sums,
                                    float* out, int64_t ld, int64_t offset, int64_t col, int tail) {
  constexpr int kHalf = kRows / 2;
  int64_t i = 0;
  for (; i + kRows <= rows; i += kRows) {
    ApplyChain<kRows, kVectors>(chain.steps, chain.num_steps, sums + i * ld_sums, ld_sums, out + i * ld, ld,
                                offset + i * ld, col, tail);
  }
  for (; i + kHalf <= rows; i += kHalf) {
    ApplyChain<kHalf, kVectors>(chain.steps, chain.num_steps, sums + i * ld_sums, ld_sums, out + i * ld, ld,
                                offset + i * ld, col, tail);
  }
  for (; kHalf > 1 && i < rows; ++i) {
    ApplyChain<1, kVectors>(chain.steps, chain.num_steps, sums + i * ld_sums, ld_sums, out + i * ld, ld,
                            offset + i * ld, col, tail);
  }
}

}  // namespace xpu::cpu::XPU_ISA
#include "tensorflow_plugin/backends/cpu/simd/each_isa.h"
#endif  // XPU_ISA

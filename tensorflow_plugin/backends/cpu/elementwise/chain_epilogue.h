// An epilogue that is a chain of steps. A kernel may apply it to its sums in registers, before it stores them. Or it is
// applied in place to sums that are stored (epilogue.h). Each step changes the value of the step before; the first one
// begins with the sum. One value at a time may be kept for a later step, as in x * sigmoid(x) and in max(x * 0.1, x).
// ChainStep lists the steps, and docs/clusters.md (Epilogues) says which programs qualify.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_CHAIN_EPILOGUE_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_CHAIN_EPILOGUE_H_

#include <cstdint>

#include "tensorflow_plugin/backends/cpu/scratch.h"
#include "tensorflow_plugin/primitives/backend.h"
#include "tensorflow_plugin/primitives/descriptors.h"

namespace xpu::cpu {

struct ChainStep {
  // The last four may be several steps in one:
  //
  //   kMulAdd       multiplies, rounds, and adds
  //   kBounds       takes a maximum and a minimum; with kOne it adds first
  //   kTimesKept    multiplies by the kept value; with kOne it multiplies by the number first
  //   kMaximumKept  takes the maximum with the kept value; with kOne it multiplies by the number first
  enum class Kind : uint8_t {
    kAdd,
    kSub,
    kMul,
    kMaximum,
    kMinimum,
    kSigmoid,
    kErfc,
    kKeep,
    kMulAdd,
    kBounds,
    kTimesKept,
    kMaximumKept
  };
  // The other operand: one number, one for each column, or one for each element.
  enum class Reads : uint8_t { kNothing, kOne, kColumns, kElements };

  static constexpr int Code(Kind kind, Reads reads) { return static_cast<int>(kind) * 4 + static_cast<int>(reads); }

  Kind kind;
  Reads reads = Reads::kNothing;
  const float* data = nullptr;
  const float* more = nullptr;  // of kMulAdd: what is added
  float one = 0, low = 0, high = 0;
};

// The commonest steps: sum * scale + shift, by column, + an element, within bounds. A null one is left out.
struct AffineChain {
  const float* scale = nullptr;
  const float* shift = nullptr;
  const float* elements = nullptr;
  float low = 0, high = 0;
};

struct ChainEpilogue {
  static constexpr int kMaxSteps = 16;
  int64_t columns = 0;  // of a row; 0: no step reads columns
  int num_steps = 0;
  ChainStep steps[kMaxSteps];
  bool is_affine = false;  // then the steps are those of `affine`
  AffineChain affine;
};

// The steps of an epilogue; false if it is no chain. Operands for each column get room for whole vectors in
// `frame`. `desc` and `args` are those of the program, input 0 the sums. An operand for each element that lies where
// the results shall be makes no chain.
bool MakeChainEpilogue(const ElementwiseDesc& desc, const Args& args, ScratchFrame* frame, ChainEpilogue* chain);

// True if an epilogue is a chain on rows of so many elements, unless operands lie where the results shall be.
bool IsChainOfRows(const ElementwiseDesc& desc, int64_t columns);

// Applies a chain to sums that lie where the results shall be: `n` elements of `out`, from element `begin` on. If a
// step reads columns, these are whole rows.
void ApplyChainInPlace(const ChainEpilogue& chain, int64_t begin, int64_t n, float* out);

}  // namespace xpu::cpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_CHAIN_EPILOGUE_H_

// An epilogue that is a chain of steps. A kernel may apply it to its sums in registers, before it stores them. Or it is
// applied in place to sums that are stored (epilogue.h). Each step changes the value of the step before; the first one
// begins with the sum. One value at a time may be kept and multiplied in later, as in x * sigmoid(x). ChainStep lists
// the steps, and docs/clusters.md (Epilogues) says which programs qualify.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_CHAIN_EPILOGUE_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_CHAIN_EPILOGUE_H_

#include <cstdint>

#include "tensorflow_plugin/backends/cpu/scratch.h"
#include "tensorflow_plugin/primitives/backend.h"
#include "tensorflow_plugin/primitives/descriptors.h"

namespace xpu::cpu {

struct ChainStep {
  // The last three are several steps in one. kMulAdd rounds between them, kBounds adds first, kTimesKept multiplies.
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
    kTimesKept
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

// A chain of sums that are integers, as those of a product of bytes. They become floats, which the steps change. The
// floats are stored before one of the steps or after the last one, or bytes are made of them, or both. The steps are
// sums, products and bounds.
struct IntegerChain : ChainEpilogue {
  bool begins_with_floats = false;  // instead of integers
  int store_before = -1;            // the number of a step, or of all steps; -1: floats are not stored
  float* floats = nullptr;
  // The operands of FakeQuantizeToBytes (primitives/quantize_programs.h). No bytes are made if `bytes` is null.
  uint8_t* bytes = nullptr;
  float low = 0, factor = 0, zero = 0;
  int32_t shift = 0;
  float least = 0, most = 0;  // the bounds of FakeQuantizeToBytes, within those of the last step
  // How a difference becomes a number of steps: it is multiplied by the factor, or divided by it. A division of vectors
  // takes several times as long as a product with the inverse, which is corrected by what is left.
  enum class Quotient : uint8_t { kProduct, kDivided, kCorrectedOnce, kCorrectedTwice };
  Quotient quotient = Quotient::kProduct;
  float inverse = 0;
};

// The steps of an epilogue; false if it is no chain. Operands for each column get room for whole vectors in
// `frame`. `desc` and `args` are those of the program, input 0 the sums. An operand for each element that lies where
// the results shall be makes no chain.
bool MakeChainEpilogue(const ElementwiseDesc& desc, const Args& args, ScratchFrame* frame, ChainEpilogue* chain);

// True if an epilogue is a chain on rows of so many elements, unless operands lie where the results shall be.
bool IsChainOfRows(const ElementwiseDesc& desc, int64_t columns);

// Applies a chain to sums that lie where the results shall be: rows [first, first + count) of `columns` elements of
// `out`.
void ApplyChainInPlace(const ChainEpilogue& chain, int64_t first, int64_t count, float* out);

// The same for sums that are integers. A chain that makes bytes has some address of bytes without arguments, too.
bool MakeIntegerChain(const ElementwiseDesc& desc, const Args& args, ScratchFrame* frame, IntegerChain* chain);
bool IsIntegerChainOfRows(const ElementwiseDesc& desc, int64_t columns);

// The same for a program that begins with floats, one for each element, and makes bytes.
bool MakeByteChain(const ElementwiseDesc& desc, const Args& args, ScratchFrame* frame, IntegerChain* chain);

// Applies it to a block of sums in rows of `ld_sums`, and stores what becomes of them. The block is rows
// [first, first + rows) and columns [col, col + cols) of results in rows of `ld`. `shift` is added to the sums first,
// by column of the block; nothing if it is null.
void ApplyIntegerChain(const IntegerChain& chain, const int32_t* sums, int64_t ld_sums, const int32_t* shift,
                       int64_t first, int64_t rows, int64_t col, int64_t cols, int64_t ld);

}  // namespace xpu::cpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_CHAIN_EPILOGUE_H_

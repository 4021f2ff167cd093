// Chains of steps (chain_epilogue.h) on sums that are integers, as those of a product of bytes, and programs that make
// bytes of floats.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_INTEGER_CHAIN_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_INTEGER_CHAIN_H_

#include <cstdint>

#include "tensorflow_plugin/backends/cpu/elementwise/chain_epilogue.h"
#include "tensorflow_plugin/backends/cpu/scratch.h"
#include "tensorflow_plugin/primitives/backend.h"
#include "tensorflow_plugin/primitives/descriptors.h"

namespace xpu::cpu {

// The sums become floats, which the steps change. The floats are stored before one of the steps or after the last one,
// or bytes are made of them, or both. The steps are sums, products and bounds.
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

// As MakeChainEpilogue and IsChainOfRows. Without arguments, a chain that makes
// bytes has a `bytes` that is not null and is never written.
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

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_INTEGER_CHAIN_H_

// Chains of steps (chain_epilogue.h) on sums that are integers, as those of a product of bytes, and programs that make
// bytes of floats.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_QUANTIZED_CHAIN_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_QUANTIZED_CHAIN_H_

#include <cstdint>

#include "tensorflow_plugin/backends/cpu/elementwise/chain_epilogue.h"
#include "tensorflow_plugin/backends/cpu/scratch.h"
#include "tensorflow_plugin/primitives/backend.h"
#include "tensorflow_plugin/primitives/descriptors.h"

namespace xpu::cpu {

// The sums become floats, which the steps change. The floats are stored before one of the steps or after the last one,
// or bytes are made of them, or both. The steps are sums, products and bounds.
struct QuantizedChain : ChainEpilogue {
  int store_before = -1;  // the number of a step, or of all steps; -1: floats are not stored
  float* floats = nullptr;
  // The operands of FakeQuantizeToBytes (primitives/quantize_programs.h). No bytes are made if `bytes` is null.
  uint8_t* bytes = nullptr;
  float low = 0, factor = 0, zero_point = 0;
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
bool MakeQuantizedChain(const ElementwiseDesc& desc, const Args& args, ScratchFrame* frame, QuantizedChain* chain);
bool IsQuantizedChainOfRows(const ElementwiseDesc& desc, int64_t columns);

// The same for a program that begins with floats, one for each element, and makes bytes.
bool MakeByteChain(const ElementwiseDesc& desc, const Args& args, ScratchFrame* frame, QuantizedChain* chain);

// Rows [row, row + rows) and columns [col, col + cols) of results in rows of `ld`.
struct ResultBlock {
  int64_t row, rows, col, cols, ld;
};

// Numbers by column, from so many columns further on; null if there are none.
inline const int32_t* FromColumn(const int32_t* by_column, int64_t col) {
  return by_column == nullptr ? nullptr : by_column + col;
}

// Integers in rows of `ld`. `compensation` is added to them, by column; nothing if it is null.
struct SumsInRows {
  const int32_t* sums;
  int64_t ld;
  const int32_t* compensation;

  SumsInRows At(int64_t row, int64_t col) const { return {sums + row * ld + col, ld, FromColumn(compensation, col)}; }
};
// Floats in rows of `ld`.
struct FloatsInRows {
  const float* floats;
  int64_t ld;

  FloatsInRows At(int64_t row, int64_t col) const { return {floats + row * ld + col, ld}; }
};

// Applies the chain to the values of a block, and stores what becomes of them.
void ApplyQuantizedChain(const QuantizedChain& chain, const SumsInRows& from, const ResultBlock& to);
void ApplyQuantizedChain(const QuantizedChain& chain, const FloatsInRows& from, const ResultBlock& to);

}  // namespace xpu::cpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_ELEMENTWISE_QUANTIZED_CHAIN_H_

#include "tensorflow_plugin/backends/cpu/elementwise/chain_epilogue.h"

#include <limits>

#include "tensorflow_plugin/backends/cpu/elementwise/chain_epilogue_in_place_loops.h"
#include "tensorflow_plugin/backends/cpu/elementwise/chain_maker.h"
#include "tensorflow_plugin/backends/cpu/simd/isa.h"
#include "tensorflow_plugin/primitives/types.h"

namespace xpu::cpu {
namespace {

using Kind = ChainStep::Kind;
using Reads = ChainStep::Reads;

// Finds out whether the steps are those of AffineChain.
void FindAffineForm(ChainEpilogue* chain) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  AffineChain& affine = chain->affine;
  affine = {nullptr, nullptr, nullptr, -kInfinity, kInfinity};
  int at = 0;
  const auto next_is = [&](Kind kind, Reads reads) {
    return at < chain->num_steps && chain->steps[at].kind == kind && chain->steps[at].reads == reads;
  };
  if (next_is(Kind::kMulAdd, Reads::kColumns)) {
    affine.scale = chain->steps[at].data;
    affine.shift = chain->steps[at++].more;
  } else if (next_is(Kind::kMul, Reads::kColumns)) {
    affine.scale = chain->steps[at++].data;
  } else if (next_is(Kind::kAdd, Reads::kColumns)) {
    affine.shift = chain->steps[at++].data;
  }
  if (next_is(Kind::kAdd, Reads::kElements)) affine.elements = chain->steps[at++].data;
  if (next_is(Kind::kBounds, Reads::kNothing)) {
    affine.low = chain->steps[at].low;
    affine.high = chain->steps[at++].high;
  }
  chain->is_affine = at == chain->num_steps;
}

// Without arguments the steps have no operands.
bool Make(const ElementwiseDesc& desc, const Args* args, ScratchFrame* frame, ChainEpilogue* chain) {
  const Program& p = *desc.program;
  chain->num_steps = 0;
  chain->columns = 0;
  if (p.num_outputs() != 1 || p.instrs().empty() || p.outputs()[0] != p.num_registers() - 1) return false;
  for (int r = 0; r < p.num_registers(); ++r) {
    if (p.type(r) != DType::kFloat) return false;
  }
  ChainMaker maker(desc, args, frame, chain);
  for (size_t k = 0; k < p.instrs().size(); ++k) {
    if (!maker.Add(k)) return false;
  }
  if (!maker.IsComplete()) return false;
  FindAffineForm(chain);
  return true;
}

}  // namespace

bool MakeChainEpilogue(const ElementwiseDesc& desc, const Args& args, ScratchFrame* frame, ChainEpilogue* chain) {
  return Make(desc, &args, frame, chain);
}

bool IsChainOfRows(const ElementwiseDesc& desc, int64_t columns) {
  ChainEpilogue chain;
  return Make(desc, nullptr, nullptr, &chain) && (chain.columns == 0 || chain.columns == columns);
}

void ApplyChainInPlace(const ChainEpilogue& chain, int64_t begin, int64_t n, float* out) {
  constexpr int64_t kAnyColumns = 64;  // vectors of each instruction set
  const auto apply = XPU_PICK_ISA(ApplyChainToRows);
  const int64_t columns = chain.columns == 0 ? kAnyColumns : chain.columns, rest = n % columns;
  apply(chain, n / columns, columns, begin, out);
  if (rest != 0) apply(chain, 1, rest, begin + n - rest, out);
}

}  // namespace xpu::cpu

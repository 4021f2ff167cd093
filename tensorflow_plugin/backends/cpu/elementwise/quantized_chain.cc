#include "tensorflow_plugin/backends/cpu/elementwise/quantized_chain.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "tensorflow_plugin/backends/cpu/elementwise/chain_maker.h"
#include "tensorflow_plugin/backends/cpu/elementwise/quantized_chain_loops.h"
#include "tensorflow_plugin/backends/cpu/simd/isa.h"
#include "tensorflow_plugin/primitives/types.h"

namespace xpu::cpu {
namespace {

// Makes the steps of one program. Without arguments they have no operands.
class QuantizedChainMaker {
 public:
  QuantizedChainMaker(const ElementwiseDesc& desc, const Args* args, ScratchFrame* frame, QuantizedChain* chain)
      : p_(*desc.program), args_(args), chain_(chain), maker_(desc, args, frame, chain) {}

  bool MakeOfIntegers() {
    *chain_ = {};
    const std::vector<Instr>& instrs = p_.instrs();
    if (instrs.empty() || instrs[0].op != Opcode::kCast || instrs[0].a != 0 || instrs[0].type != DType::kInt32 ||
        instrs[0].result != DType::kFloat || maker_.IsRead(0, 1)) {
      return false;
    }
    maker_.BeginWith(p_.first_instr_register());
    return MakeSteps(1);
  }

  bool MakeOfFloats() {
    *chain_ = {};
    const std::vector<Instr>& instrs = p_.instrs();
    return instrs.size() >= kInstrsToBytes && instrs.back().result == DType::kUint8 && p_.type(0) == DType::kFloat &&
           MakeSteps(0) && chain_->bytes != nullptr;
  }

 private:
  using Kind = ChainStep::Kind;
  using Reads = ChainStep::Reads;

  // The length of FakeQuantizeToBytes.
  static constexpr size_t kInstrsToBytes = 10;

  // The steps of a chain of integers from instruction `first` on.
  bool MakeSteps(size_t first) {
    const std::vector<Instr>& instrs = p_.instrs();
    int outputs = NoteOutput();
    for (size_t k = first; k < instrs.size(); ++k) {
      if (k + kInstrsToBytes == instrs.size() && ToBytes(k)) {
        ++outputs;
        break;
      }
      if (!maker_.Add(k)) return false;
      outputs += NoteOutput();
    }
    return maker_.IsComplete() && outputs == p_.num_outputs() && HasSimpleSteps();
  }

  // 1 if the value is an output, whose place is noted. A value is one output at most.
  int NoteOutput() {
    int found = 0;
    for (int o = 0; o < p_.num_outputs(); ++o) {
      if (p_.outputs()[o] != maker_.current()) continue;
      ++found;
      if (chain_->store_before >= 0) return kTooMany;
      chain_->store_before = chain_->num_steps;
      maker_.NoteStored();
      chain_->floats = args_ == nullptr ? nullptr : static_cast<float*>(args_->out[o]);
    }
    return found;
  }
  static constexpr int kTooMany = Program::kMaxOutputs + 1;

  bool HasSimpleSteps() const {
    for (int s = 0; s < chain_->num_steps; ++s) {
      switch (chain_->steps[s].kind) {
        case Kind::kSigmoid:
        case Kind::kErfc:
        case Kind::kKeep:
        case Kind::kTimesKept:
        case Kind::kMaximumKept:
          return false;
        default:
          break;
      }
    }
    return true;
  }

  // True if the instructions from number `first` on are those of FakeQuantizeToBytes, by ranges of one element. The
  // value that they begin with may be an output.
  bool ToBytes(size_t first) {
    const Instr* const i = &p_.instrs()[first];
    const int result = p_.first_instr_register() + static_cast<int>(first);
    const bool divides = i[4].op == Opcode::kDiv;
    const Opcode ops[kInstrsToBytes] = {
        Opcode::kLess, Opcode::kSelect, Opcode::kMaximum, Opcode::kSub, divides ? Opcode::kDiv : Opcode::kMul,
        Opcode::kSub,  Opcode::kAdd,    Opcode::kFloor,   Opcode::kAdd, Opcode::kCast};
    for (size_t k = 0; k < kInstrsToBytes; ++k) {
      if (i[k].op != ops[k] || i[k].type != DType::kFloat) return false;
      if (k >= 2 && i[k].a != result + static_cast<int>(k) - 1) return false;
    }
    if (i[0].a != maker_.current() || i[1].a != result || i[1].b != maker_.current() || i[1].c != i[0].b ||
        i[3].b != i[2].b || i[9].result != DType::kUint8) {
      return false;
    }
    ChainStep high, low, factor, zero_point, half, shift;
    if (!maker_.Operand(i[0].b, &high) || !maker_.Operand(i[2].b, &low) || !maker_.Operand(i[4].b, &factor) ||
        !maker_.Operand(i[5].b, &zero_point) || !maker_.Operand(i[6].b, &half) || !maker_.Operand(i[8].b, &shift)) {
      return false;
    }
    for (const ChainStep* step : {&high, &low, &factor, &zero_point, &half, &shift}) {
      if (step->reads != Reads::kOne) return false;
    }
    if (half.one != 0.5f) return false;
    int output = 0;
    while (output < p_.num_outputs() && p_.outputs()[output] != p_.num_registers() - 1) ++output;
    if (output == p_.num_outputs()) return false;
    static uint8_t some;
    chain_->bytes = args_ == nullptr ? &some : static_cast<uint8_t*>(args_->out[output]);
    chain_->low = low.one;
    chain_->factor = factor.one;
    chain_->zero_point = zero_point.one;
    chain_->shift = static_cast<int32_t>(shift.one);
    chain_->least = low.one;
    chain_->most = high.one;
    using Quotient = QuantizedChain::Quotient;
    chain_->quotient = divides ? QuotientBy(factor.one) : Quotient::kProduct;
    chain_->inverse = 1 / factor.one;
    JoinBounds();
    return true;
  }

  // By Markstein's theorem a correction gives the quotient as a division rounds it. The inverse must be rounded right,
  // and the quotient before may be less than a unit wrong. The latter has a rounding of its own, and that of the
  // inverse.
  static QuantizedChain::Quotient QuotientBy(float factor) {
    using Quotient = QuantizedChain::Quotient;
    // Within these bounds nothing overflows, and what is left of a quotient is exact. A factor whose last bits are all
    // ones is the exception of the theorem.
    uint32_t bits;
    std::memcpy(&bits, &factor, sizeof(bits));
    if (!(factor > 1e-20f && factor < 1e20f) || (bits & 0x7fffff) == 0x7fffff) return Quotient::kDivided;
    const double wrong = std::abs(static_cast<double>(1 / factor) * static_cast<double>(factor) - 1);
    return wrong < 0x1p-25 ? Quotient::kCorrectedOnce : Quotient::kCorrectedTwice;
  }

  // Has the bounds of the last step become part of those of the bytes.
  void JoinBounds() {
    QuantizedChain& chain = *chain_;
    if (chain.num_steps == 0 || chain.store_before == chain.num_steps) return;
    const ChainStep& last = chain.steps[chain.num_steps - 1];
    const float low = chain.least, high = chain.most;
    if (last.kind != Kind::kBounds || last.reads != Reads::kNothing || last.low > last.high || low > high) return;
    chain.least = std::min(std::max(last.low, low), high);
    chain.most = std::min(std::max(last.high, low), high);
    --chain.num_steps;
  }

  const Program& p_;
  const Args* const args_;
  QuantizedChain* const chain_;
  ChainMaker maker_;
};

}  // namespace

bool MakeQuantizedChain(const ElementwiseDesc& desc, const Args& args, ScratchFrame* frame, QuantizedChain* chain) {
  return QuantizedChainMaker(desc, &args, frame, chain).MakeOfIntegers();
}

bool MakeByteChain(const ElementwiseDesc& desc, const Args& args, ScratchFrame* frame, QuantizedChain* chain) {
  return QuantizedChainMaker(desc, &args, frame, chain).MakeOfFloats();
}

bool IsQuantizedChainOfRows(const ElementwiseDesc& desc, int64_t columns) {
  QuantizedChain chain;
  return QuantizedChainMaker(desc, nullptr, nullptr, &chain).MakeOfIntegers() &&
         (chain.columns == 0 || chain.columns == columns);
}

void ApplyQuantizedChain(const QuantizedChain& chain, const SumsInRows& from, const ResultBlock& to) {
  XPU_PICK_ISA(ApplyToBlock<SumsInRows>)(chain, from, to);
}

void ApplyQuantizedChain(const QuantizedChain& chain, const FloatsInRows& from, const ResultBlock& to) {
  XPU_PICK_ISA(ApplyToBlock<FloatsInRows>)(chain, from, to);
}

}  // namespace xpu::cpu

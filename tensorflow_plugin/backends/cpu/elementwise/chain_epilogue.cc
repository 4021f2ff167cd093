#include "tensorflow_plugin/backends/cpu/elementwise/chain_epilogue.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "tensorflow_plugin/backends/cpu/elementwise/chain_epilogue_in_place_loops.h"
#include "tensorflow_plugin/backends/cpu/elementwise/integer_chain_loops.h"
#include "tensorflow_plugin/backends/cpu/simd/isa.h"
#include "tensorflow_plugin/primitives/types.h"

namespace xpu::cpu {
namespace {

// Lanes that may be read behind the last column: those of four vectors of any instruction set.
constexpr int64_t kMostLanes = 64;

// Makes the steps of one program. Without arguments they have no operands.
class ChainMaker {
 public:
  ChainMaker(const ElementwiseDesc& desc, const Args* args, ScratchFrame* frame, ChainEpilogue* chain)
      : desc_(desc), p_(*desc.program), args_(args), frame_(frame), chain_(*chain) {}
  // For integers.
  ChainMaker(const ElementwiseDesc& desc, const Args* args, ScratchFrame* frame, IntegerChain* chain)
      : desc_(desc), p_(*desc.program), args_(args), frame_(frame), chain_(*chain), integers_(chain) {}

  bool Make() {
    chain_.num_steps = 0;
    chain_.columns = 0;
    if (p_.num_outputs() != 1 || p_.instrs().empty() || p_.outputs()[0] != p_.num_registers() - 1) return false;
    for (int r = 0; r < p_.num_registers(); ++r) {
      if (p_.type(r) != DType::kFloat) return false;
    }
    for (size_t k = 0; k < p_.instrs().size(); ++k) {
      if (!Step(p_.instrs()[k], static_cast<int>(k))) return false;
    }
    if (kept_ >= 0) return false;
    SumUp();
    return true;
  }

  bool MakeOfIntegers() {
    *integers_ = {};
    const std::vector<Instr>& instrs = p_.instrs();
    if (instrs.empty() || instrs[0].op != Opcode::kCast || instrs[0].a != 0 || instrs[0].type != DType::kInt32 ||
        instrs[0].result != DType::kFloat || IsRead(0, 1)) {
      return false;
    }
    current_ = p_.first_instr_register();
    return MakeSteps(1);
  }

  bool MakeOfFloats() {
    *integers_ = {};
    integers_->begins_with_floats = true;
    const std::vector<Instr>& instrs = p_.instrs();
    return instrs.size() >= kInstrsToBytes && instrs.back().result == DType::kUint8 && p_.type(0) == DType::kFloat &&
           MakeSteps(0) && integers_->bytes != nullptr;
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
      if (!Step(instrs[k], static_cast<int>(k))) return false;
      outputs += NoteOutput();
    }
    return kept_ < 0 && outputs == p_.num_outputs() && HasSimpleSteps();
  }

  // 1 if the value is an output, whose place is noted. A value is one output at most.
  int NoteOutput() {
    int found = 0;
    for (int o = 0; o < p_.num_outputs(); ++o) {
      if (p_.outputs()[o] != current_) continue;
      ++found;
      if (integers_->store_before >= 0) return kTooMany;
      integers_->store_before = chain_.num_steps;
      integers_->floats = args_ == nullptr ? nullptr : static_cast<float*>(args_->out[o]);
    }
    return found;
  }
  static constexpr int kTooMany = Program::kMaxOutputs + 1;

  bool HasSimpleSteps() const {
    for (int s = 0; s < chain_.num_steps; ++s) {
      switch (chain_.steps[s].kind) {
        case Kind::kSigmoid:
        case Kind::kErfc:
        case Kind::kKeep:
        case Kind::kTimesKept:
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
    if (i[0].a != current_ || i[1].a != result || i[1].b != current_ || i[1].c != i[0].b || i[3].b != i[2].b ||
        i[9].result != DType::kUint8) {
      return false;
    }
    ChainStep high, low, factor, zero, half, shift;
    if (!Operand(i[0].b, &high) || !Operand(i[2].b, &low) || !Operand(i[4].b, &factor) || !Operand(i[5].b, &zero) ||
        !Operand(i[6].b, &half) || !Operand(i[8].b, &shift)) {
      return false;
    }
    for (const ChainStep* step : {&high, &low, &factor, &zero, &half, &shift}) {
      if (step->reads != Reads::kOne) return false;
    }
    if (half.one != 0.5f) return false;
    int output = 0;
    while (output < p_.num_outputs() && p_.outputs()[output] != p_.num_registers() - 1) ++output;
    if (output == p_.num_outputs()) return false;
    static uint8_t some;
    integers_->bytes = args_ == nullptr ? &some : static_cast<uint8_t*>(args_->out[output]);
    integers_->low = low.one;
    integers_->factor = factor.one;
    integers_->zero = zero.one;
    integers_->shift = static_cast<int32_t>(shift.one);
    integers_->least = low.one;
    integers_->most = high.one;
    using Quotient = IntegerChain::Quotient;
    integers_->quotient = divides ? QuotientBy(factor.one) : Quotient::kProduct;
    integers_->inverse = 1 / factor.one;
    JoinBounds();
    return true;
  }

  // By Markstein's theorem a correction gives the quotient as a division rounds it. The inverse must be rounded right,
  // and the quotient before may be less than a unit wrong. The latter has a rounding of its own, and that of the
  // inverse.
  static IntegerChain::Quotient QuotientBy(float factor) {
    using Quotient = IntegerChain::Quotient;
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
    IntegerChain& chain = *integers_;
    if (chain.num_steps == 0 || chain.store_before == chain.num_steps) return;
    const ChainStep& last = chain.steps[chain.num_steps - 1];
    const float low = chain.least, high = chain.most;
    if (last.kind != Kind::kBounds || last.reads != Reads::kNothing || last.low > last.high || low > high) return;
    chain.least = std::min(std::max(last.low, low), high);
    chain.most = std::min(std::max(last.high, low), high);
    --chain.num_steps;
  }

  // Finds out whether the steps are those of AffineChain.
  void SumUp() {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    AffineChain& affine = chain_.affine;
    affine = {nullptr, nullptr, nullptr, -kInfinity, kInfinity};
    int at = 0;
    const auto next_is = [&](Kind kind, Reads reads) {
      return at < chain_.num_steps && chain_.steps[at].kind == kind && chain_.steps[at].reads == reads;
    };
    if (next_is(Kind::kMulAdd, Reads::kColumns)) {
      affine.scale = chain_.steps[at].data;
      affine.shift = chain_.steps[at++].more;
    } else if (next_is(Kind::kMul, Reads::kColumns)) {
      affine.scale = chain_.steps[at++].data;
    } else if (next_is(Kind::kAdd, Reads::kColumns)) {
      affine.shift = chain_.steps[at++].data;
    }
    if (next_is(Kind::kAdd, Reads::kElements)) affine.elements = chain_.steps[at++].data;
    if (next_is(Kind::kBounds, Reads::kNothing)) {
      affine.low = chain_.steps[at].low;
      affine.high = chain_.steps[at++].high;
    }
    chain_.is_affine = at == chain_.num_steps;
  }

  // True if it has become part of the last step.
  bool Joins(const ChainStep& step) {
    if (chain_.num_steps == 0 || (integers_ != nullptr && integers_->store_before == chain_.num_steps)) return false;
    ChainStep& last = chain_.steps[chain_.num_steps - 1];
    const bool is_bound = step.reads == Reads::kOne && step.one == step.one;
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    if (step.kind == Kind::kAdd && step.reads == Reads::kColumns && last.kind == Kind::kMul &&
        last.reads == Reads::kColumns) {
      last.kind = Kind::kMulAdd;
      last.more = step.data;
      return true;
    }
    if (step.kind == Kind::kMaximum && is_bound && last.kind == Kind::kAdd && last.reads == Reads::kOne) {
      last.kind = Kind::kBounds;
      last.low = step.one;
      last.high = kInfinity;
      return true;
    }
    if (step.kind == Kind::kMinimum && is_bound && last.kind == Kind::kBounds && last.high == kInfinity) {
      last.high = step.one;
      return true;
    }
    if (step.kind == Kind::kTimesKept && last.kind == Kind::kMul && last.reads == Reads::kOne) {
      last.kind = Kind::kTimesKept;
      return true;
    }
    return false;
  }

  bool Add(ChainStep step) {
    if (Joins(step)) return true;
    if (chain_.num_steps == ChainEpilogue::kMaxSteps) return false;
    if (step.kind == Kind::kMaximum && step.reads == Reads::kOne && step.one == step.one) {
      step = {Kind::kBounds, Reads::kNothing, nullptr, nullptr, 0, step.one, std::numeric_limits<float>::infinity()};
    }
    chain_.steps[chain_.num_steps++] = step;
    return true;
  }

  // True if an instruction from number `first` on reads a register.
  bool IsRead(int reg, size_t first) const {
    for (size_t k = first; k < p_.instrs().size(); ++k) {
      const Instr& i = p_.instrs()[k];
      if (i.a == reg || (Info(i.op).arity > 1 && i.b == reg) || (Info(i.op).arity > 2 && i.c == reg)) return true;
    }
    return false;
  }

  bool Step(const Instr& instr, int number) {
    const int result = p_.first_instr_register() + number, arity = Info(instr.op).arity;
    if (arity == 2 && kept_ >= 0 && instr.op == Opcode::kMul &&
        ((instr.a == current_ && instr.b == kept_) || (instr.a == kept_ && instr.b == current_))) {
      if (IsRead(kept_, number + 1) || IsRead(current_, number + 1)) return false;
      kept_ = -1;
      current_ = result;
      return Add({Kind::kTimesKept});
    }
    if (instr.a != current_ && (arity != 2 || instr.b != current_)) return false;
    if (IsRead(current_, number + 1)) {
      if (kept_ >= 0) return false;
      kept_ = current_;
      if (!Add({Kind::kKeep})) return false;
    }
    const bool swapped = instr.a != current_;
    const int other = swapped ? instr.a : instr.b;
    current_ = result;
    if (instr.op == Opcode::kSigmoid) return Add({Kind::kSigmoid});
    if (instr.op == Opcode::kErfc) return Add({Kind::kErfc});
    if (instr.op == Opcode::kNeg) return Add({Kind::kMul, Reads::kOne, nullptr, nullptr, -1});
    if (arity != 2) return false;
    ChainStep step;
    switch (instr.op) {
      case Opcode::kAdd:
        step.kind = Kind::kAdd;
        break;
      case Opcode::kSub:
        if (swapped) return false;
        step.kind = Kind::kSub;
        break;
      case Opcode::kMul:
        step.kind = Kind::kMul;
        break;
      case Opcode::kMaximum:
        step.kind = Kind::kMaximum;
        break;
      case Opcode::kMinimum:
        step.kind = Kind::kMinimum;
        break;
      default:
        return false;
    }
    return Operand(other, &step) && Add(step);
  }

  bool Operand(int reg, ChainStep* step) {
    if (reg == 0 || reg >= p_.first_instr_register()) return false;  // the sums, or something computed
    if (reg >= p_.num_inputs()) {
      step->reads = Reads::kOne;
      step->one = static_cast<float>(p_.constants()[reg - p_.num_inputs()].re);
      return true;
    }
    const Dims &shape = desc_.shape, &strides = desc_.in_strides[reg];
    int64_t elements = 1, columns = 1;
    bool repeats = false, of_columns = true;  // the innermost axes are dense, and all others repeat them
    for (int d = shape.rank() - 1; d >= 0; --d) {
      if (shape[d] == 1) continue;
      repeats = repeats || strides[d] == 0;
      of_columns = of_columns && strides[d] == (repeats ? 0 : elements);
      elements *= shape[d];
      if (!repeats) columns = elements;
    }
    if (!of_columns) return false;
    if (columns == 1 && elements > 1) {
      step->reads = Reads::kOne;
    } else if (!repeats) {
      step->reads = Reads::kElements;
    } else {
      if (chain_.columns != 0 && chain_.columns != columns) return false;
      chain_.columns = columns;
      step->reads = Reads::kColumns;
    }
    return args_ == nullptr || Read(static_cast<const float*>(args_->in[reg]), step);
  }

  // Gives the step its operand, which begins at `data`.
  bool Read(const float* data, ChainStep* step) {
    step->data = data;
    if (step->reads == Reads::kOne) {
      step->one = *data;
    } else if (step->reads == Reads::kElements) {
      return data != args_->out[0];  // each is read when others have been stored
    } else {
      float* const padded = frame_->Get<float>(chain_.columns + kMostLanes);
      std::memcpy(padded, data, chain_.columns * sizeof(float));
      std::memset(padded + chain_.columns, 0, kMostLanes * sizeof(float));
      step->data = padded;
    }
    return true;
  }

  const ElementwiseDesc& desc_;
  const Program& p_;
  const Args* const args_;
  ScratchFrame* const frame_;
  ChainEpilogue& chain_;
  IntegerChain* const integers_ = nullptr;  // chain_, if it is one of integers
  int current_ = 0, kept_ = -1;             // the register that the last step made, and one that is needed again
};

}  // namespace

bool MakeChainEpilogue(const ElementwiseDesc& desc, const Args& args, ScratchFrame* frame, ChainEpilogue* chain) {
  return ChainMaker(desc, &args, frame, chain).Make();
}

bool IsChainOfRows(const ElementwiseDesc& desc, int64_t columns) {
  ChainEpilogue chain;
  return ChainMaker(desc, nullptr, nullptr, &chain).Make() && (chain.columns == 0 || chain.columns == columns);
}

void ApplyChainInPlace(const ChainEpilogue& chain, int64_t first, int64_t count, float* out) {
  XPU_PICK_ISA(ApplyChainToRows)(chain, first, count, out);
}

bool MakeIntegerChain(const ElementwiseDesc& desc, const Args& args, ScratchFrame* frame, IntegerChain* chain) {
  return ChainMaker(desc, &args, frame, chain).MakeOfIntegers();
}

bool MakeByteChain(const ElementwiseDesc& desc, const Args& args, ScratchFrame* frame, IntegerChain* chain) {
  return ChainMaker(desc, &args, frame, chain).MakeOfFloats();
}

bool IsIntegerChainOfRows(const ElementwiseDesc& desc, int64_t columns) {
  IntegerChain chain;
  return ChainMaker(desc, nullptr, nullptr, &chain).MakeOfIntegers() &&
         (chain.columns == 0 || chain.columns == columns);
}

void ApplyIntegerChain(const IntegerChain& chain, const int32_t* sums, int64_t ld_sums, const int32_t* shift,
                       int64_t first, int64_t rows, int64_t col, int64_t cols, int64_t ld) {
  XPU_PICK_ISA(ApplyToBlock)(chain, sums, ld_sums, shift, first, rows, col, cols, ld);
}

}  // namespace xpu::cpu

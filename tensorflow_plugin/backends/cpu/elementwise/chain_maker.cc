#include "tensorflow_plugin/backends/cpu/elementwise/chain_maker.h"

#include <cstdint>
#include <cstring>
#include <limits>

#include "tensorflow_plugin/primitives/types.h"

namespace xpu::cpu {
namespace {

// Lanes that may be read behind the last column: those of four vectors of any instruction set.
constexpr int64_t kMostLanes = 64;

}  // namespace

bool ChainMaker::Add(size_t number) {
  const Instr& instr = p_.instrs()[number];
  const int result = p_.first_instr_register() + static_cast<int>(number), arity = Info(instr.op).arity;
  if (arity == 2 && kept_ >= 0 && (instr.op == Opcode::kMul || instr.op == Opcode::kMaximum) &&
      ((instr.a == current_ && instr.b == kept_) || (instr.a == kept_ && instr.b == current_))) {
    if (IsRead(kept_, number + 1) || IsRead(current_, number + 1)) return false;
    kept_ = -1;
    current_ = result;
    return Append({instr.op == Opcode::kMul ? Kind::kTimesKept : Kind::kMaximumKept});
  }
  if (instr.a != current_ && (arity != 2 || instr.b != current_)) return false;
  if (IsRead(current_, number + 1)) {
    if (kept_ >= 0) return false;
    kept_ = current_;
    if (!Append({Kind::kKeep})) return false;
  }
  const bool swapped = instr.a != current_;
  const int other = swapped ? instr.a : instr.b;
  current_ = result;
  if (instr.op == Opcode::kSigmoid) return Append({Kind::kSigmoid});
  if (instr.op == Opcode::kErfc) return Append({Kind::kErfc});
  if (instr.op == Opcode::kNeg) return Append({Kind::kMul, Reads::kOne, nullptr, nullptr, -1});
  if (arity != 2) return false;
  ChainStep step;
  switch (instr.op) {
    case Opcode::kAdd:
      step.kind = Kind::kAdd;
      break;
    case Opcode::kSub:
      // y - x is -x + y.
      if (swapped && !Append({Kind::kMul, Reads::kOne, nullptr, nullptr, -1})) return false;
      step.kind = swapped ? Kind::kAdd : Kind::kSub;
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
  return Operand(other, &step) && Append(step);
}

bool ChainMaker::Append(ChainStep step) {
  if (Joins(step)) return true;
  if (chain_.num_steps == ChainEpilogue::kMaxSteps) return false;
  if (step.kind == Kind::kMaximum && step.reads == Reads::kOne && step.one == step.one) {
    step = {Kind::kBounds, Reads::kNothing, nullptr, nullptr, 0, step.one, std::numeric_limits<float>::infinity()};
  }
  chain_.steps[chain_.num_steps++] = step;
  return true;
}

bool ChainMaker::Joins(const ChainStep& step) {
  if (chain_.num_steps == 0 || chain_.num_steps == stored_before_) return false;
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
  const bool takes_kept = step.kind == Kind::kTimesKept || step.kind == Kind::kMaximumKept;
  if (takes_kept && last.kind == Kind::kMul && last.reads == Reads::kOne) {
    last.kind = step.kind;
    return true;
  }
  return false;
}

bool ChainMaker::IsRead(int reg, size_t first) const {
  for (size_t k = first; k < p_.instrs().size(); ++k) {
    const Instr& i = p_.instrs()[k];
    if (i.a == reg || (Info(i.op).arity > 1 && i.b == reg) || (Info(i.op).arity > 2 && i.c == reg)) return true;
  }
  return false;
}

bool ChainMaker::Operand(int reg, ChainStep* step) {
  if (reg == 0 || reg >= p_.first_instr_register()) return false;  // the sums, or something computed
  if (reg >= p_.num_inputs()) {
    step->reads = Reads::kOne;
    step->one = static_cast<float>(p_.constants()[reg - p_.num_inputs()].re);
    return true;
  }
  const int64_t columns = ElementsOfRepeatedBlock(desc_.shape, desc_.in_strides[reg]);
  if (columns < 0) return false;
  if (columns == desc_.shape.num_elements()) {
    step->reads = Reads::kElements;
  } else if (columns == 1) {
    step->reads = Reads::kOne;
  } else {
    if (chain_.columns != 0 && chain_.columns != columns) return false;
    chain_.columns = columns;
    step->reads = Reads::kColumns;
  }
  return args_ == nullptr || Read(static_cast<const float*>(args_->in[reg]), step);
}

bool ChainMaker::Read(const float* data, ChainStep* step) {
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

}  // namespace xpu::cpu

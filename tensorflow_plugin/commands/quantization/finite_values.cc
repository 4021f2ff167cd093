#include "tensorflow_plugin/commands/quantization/finite_values.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

namespace xpu::commands {
namespace {

// Floats end just below 2^128. Sums of bounds are exact below that.
constexpr int kMostLog2 = 126;

bool IsWhole(DType type) { return IsInteger(type) || type == DType::kBool; }

// An exponent of a power of two, 0 or more, that bounds the magnitude. It is at most one larger than needed.
int Log2(double magnitude) { return magnitude <= 1 ? 0 : std::ilogb(magnitude) + 1; }

int BoundOf(DType integer) { return static_cast<int>(8 * SizeOf(integer)); }

// The bound of a result, from those of the operands; none where it can be anything.
std::optional<int> BoundOf(const Instr& instr, int a, int b, int c) {
  if (IsWhole(instr.result)) return BoundOf(instr.result);
  if (instr.result != DType::kFloat) return std::nullopt;
  switch (instr.op) {
    case Opcode::kCast:
    case Opcode::kNeg:
    case Opcode::kAbs:
      return a;
    case Opcode::kAdd:
    case Opcode::kSub:
      return std::max(a, b) + 1;
    case Opcode::kMul:
      return a + b;
    case Opcode::kSquare:
      return 2 * a;
    case Opcode::kMaximum:
    case Opcode::kMinimum:
      return std::max(a, b);
    case Opcode::kSelect:
      return std::max(b, c);
    case Opcode::kFloor:
    case Opcode::kCeil:
    case Opcode::kRint:
      return a + 1;
    case Opcode::kErfc:
      return 1;
    case Opcode::kSign:
    case Opcode::kSigmoid:
    case Opcode::kTanh:
    case Opcode::kErf:
      return 0;
    default:
      return std::nullopt;
  }
}

std::optional<int> BoundOf(const float* values, size_t n) {
  int bound = 0;
  for (size_t i = 0; i < n; ++i) {
    if (!std::isfinite(values[i])) return std::nullopt;
    bound = std::max(bound, Log2(std::abs(values[i])));
  }
  return bound;
}

// The bound of floats that a command has with it; none if it has no such.
std::optional<int> BoundOfConstants(const Descriptor& desc) {
  if (const auto* fill = std::get_if<FillBytes>(&desc)) return fill->value == 0 ? std::optional<int>(0) : std::nullopt;
  if (const auto* fill = std::get_if<FillWords>(&desc)) {
    float value;
    std::memcpy(&value, &fill->value, sizeof(value));
    return BoundOf(&value, 1);
  }
  if (const auto* constant = std::get_if<CopyConstant>(&desc)) {
    std::vector<float> values(constant->bytes->size() / sizeof(float));
    std::memcpy(values.data(), constant->bytes->data(), values.size() * sizeof(float));
    return BoundOf(values.data(), values.size());
  }
  return std::nullopt;
}

}  // namespace

void FiniteValues::Fact::Add(const Fact& other) {
  log2 = std::max(log2, other.log2);
  for (const auto& [buffer, source] : other.sources) {
    const auto [at, is_new] = sources.try_emplace(buffer, source);
    ByteRange& range = at->second.range;
    if (!is_new) range = {std::min(range.begin, source.range.begin), std::max(range.end, source.range.end)};
  }
}

std::optional<FiniteValues::Sources> FiniteValues::SourcesOfInput(int command, int k) {
  std::optional<Fact> fact = OfInput(list_.commands[command], k);
  if (!fact) return std::nullopt;
  return std::move(fact->sources);
}

std::optional<FiniteValues::Fact> FiniteValues::OfInput(const Command& command, int k) {
  const BufferSlice& place = command.in[k];
  // Copies know no type. Those that are looked at here copy what is read as floats.
  const DType type = k < command.footprint.num_in ? command.footprint.in[k].type : DType::kInvalid;
  if (place.buffer == BufferSlice::kNowhere) return std::nullopt;
  if (IsWhole(type)) return Fact{BoundOf(type), {}};
  if (type != DType::kFloat && type != DType::kInvalid) return std::nullopt;
  if (list_.buffers[place.buffer].kind == Buffer::Kind::kComputed) return OfComputed(place.buffer);
  if (!uses_.buffers[place.buffer].writers.empty()) return std::nullopt;
  const ByteRange range = RangeOfInput(command, k);
  if (range.begin % static_cast<int64_t>(sizeof(float)) != 0) return std::nullopt;
  return Fact{Log2Of(place.buffer), {{place.buffer, {range, -1}}}};
}

std::optional<FiniteValues::Fact> FiniteValues::OfComputed(int buffer) {
  OfBuffer& known = of_buffers_[buffer];
  if (known.begun) return known.fact;
  known.begun = true;  // a value that depends on itself has no proof
  std::optional<Fact> fact;
  if (known_[buffer] || depth_ == kMostDepth) fact = OfWriter(buffer);
  if (!fact && depth_ < kMostDepth) {
    ++depth_;
    fact.emplace();
    for (int writer : uses_.buffers[buffer].writers) {
      const std::optional<Fact> of_writer = OfOutput(writer, buffer);
      if (!of_writer || of_writer->log2 > kMostLog2) {
        fact = std::nullopt;
        break;
      }
      fact->Add(*of_writer);
    }
    --depth_;
    if (!fact) fact = OfWriter(buffer);
  }
  known.fact = fact;
  return fact;
}

std::optional<FiniteValues::Fact> FiniteValues::OfWriter(int buffer) const {
  const std::vector<int>& writers = uses_.buffers[buffer].writers;
  if (writers.size() != 1) return std::nullopt;
  const Command& writer = list_.commands[writers[0]];
  for (size_t k = 0; k < writer.out.size(); ++k) {
    if (writer.out[k].buffer != buffer) continue;
    const ByteRange written = RangeOfOutput(writer, k);
    const bool is_whole = std::holds_alternative<CopyFromHost>(writer.desc)
                              ? written.begin == 0 && written.end == list_.buffers[buffer].bytes
                              : WritesWhole(list_, writer, static_cast<int>(k));
    if (is_whole) {
      return Fact{Log2Of(buffer), {{buffer, {{0, list_.buffers[buffer].bytes}, writers[0]}}}};
    }
  }
  return std::nullopt;
}

std::optional<FiniteValues::Fact> FiniteValues::OfOutput(int number, int buffer) {
  const auto given = of_commands_.find(number);
  if (given != of_commands_.end()) return Fact{given->second, {}};
  const Command& command = list_.commands[number];
  if (const auto* desc = std::get_if<ElementwiseDesc>(&command.desc)) {
    Fact all;
    for (size_t k = 0; k < command.out.size(); ++k) {
      if (command.out[k].buffer != buffer) continue;
      const std::optional<Fact> fact = OfProgram(command, *desc, desc->program->outputs()[k]);
      if (!fact) return std::nullopt;
      all.Add(*fact);
    }
    return all;
  }
  if (const auto* desc = std::get_if<ReduceDesc>(&command.desc)) {
    std::optional<Fact> fact = OfProgram(command, desc->source, desc->source.program->outputs()[0]);
    const int64_t elements = desc->source.shape.num_elements(), results = command.footprint.out[0].elements;
    if (!fact || results == 0 || elements == 0) return std::nullopt;
    // A mean is a sum first.
    const int log2_of_sum = fact->log2 + Log2(static_cast<double>(elements / results));
    if (desc->kind == ReduceKind::kSum) fact->log2 = log2_of_sum;
    const bool is_sum = desc->kind == ReduceKind::kSum || desc->kind == ReduceKind::kMean;
    const bool is_extremum = desc->kind == ReduceKind::kMax || desc->kind == ReduceKind::kMin;
    return (is_sum && log2_of_sum <= kMostLog2) || is_extremum ? fact : std::nullopt;
  }
  if (const auto* desc = std::get_if<PoolDesc>(&command.desc)) {
    const bool is_known = !desc->gradient && desc->type == DType::kFloat && command.out.size() == 1;
    return is_known ? OfInput(command, 0) : std::nullopt;
  }
  const auto* copy = std::get_if<CopyStridedDesc>(&command.desc);
  if ((copy != nullptr && copy->element_size == sizeof(float)) || std::holds_alternative<CopyBytes>(command.desc)) {
    return OfInput(command, 0);
  }
  const std::optional<int> bound = BoundOfConstants(command.desc);
  return bound ? std::optional<Fact>({*bound, {}}) : std::nullopt;
}

std::optional<FiniteValues::Fact> FiniteValues::OfProgram(const Command& command, const ElementwiseDesc& desc,
                                                          int reg) {
  const Program& p = *desc.program;
  if (p.type(reg) != DType::kFloat) return std::nullopt;  // the bits of others may be any float
  Fact all;
  std::vector<int> bounds;
  for (int k = 0; k < p.num_inputs(); ++k) {
    const std::optional<Fact> fact = OfInput(command, k);
    if (!fact) return std::nullopt;
    all.Add(*fact);
    bounds.push_back(fact->log2);
  }
  for (const Constant& constant : p.constants()) {
    if (!(std::abs(constant.re) < HUGE_VAL) || constant.im != 0) return std::nullopt;
    bounds.push_back(IsWhole(constant.type) ? BoundOf(constant.type) : Log2(std::abs(constant.re)));
  }
  for (const Instr& instr : p.instrs()) {
    const int arity = Info(instr.op).arity;
    const std::optional<int> bound =
        BoundOf(instr, bounds[instr.a], arity > 1 ? bounds[instr.b] : 0, arity > 2 ? bounds[instr.c] : 0);
    if (!bound || *bound > kMostLog2) return std::nullopt;
    bounds.push_back(*bound);
  }
  all.log2 = bounds[reg];
  return all;
}

}  // namespace xpu::commands

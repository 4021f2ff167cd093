// Fuses elementwise commands into the product that makes their elements: a matmul, also one of 4-bit weights, or a
// convolution. docs/clusters.md lists the conditions (Epilogues).
#include <algorithm>
#include <type_traits>
#include <utility>
#include <vector>

#include "tensorflow_plugin/commands/cost.h"
#include "tensorflow_plugin/commands/dependencies.h"
#include "tensorflow_plugin/commands/divide_program.h"
#include "tensorflow_plugin/commands/passes.h"
#include "tensorflow_plugin/commands/strided_view.h"
#include "tensorflow_plugin/primitives/check.h"

namespace xpu::commands {
namespace {

bool IsProductWithoutEpilogue(const Descriptor& descriptor) {
  return std::visit(
      [](const auto& desc) {
        if constexpr (kIsProduct<std::decay_t<decltype(desc)>>) return !HasEpilogue(desc);
        return false;
      },
      descriptor);
}

// Gives the product this epilogue. False if the result makes no sense or the backend denies it.
bool AttachEpilogue(const ElementwiseDesc& epilogue, const Capabilities& can, Command* product) {
  return std::visit(
      [&](auto& desc) {
        if constexpr (kIsProduct<std::decay_t<decltype(desc)>>) {
          desc.epilogue = epilogue;
          return Check(desc, &product->footprint).ok() && can.Supports(desc);
        }
        return false;
      },
      product->desc);
}

// True if the epilogue's first output, of type `output`, may lie where the product's result, of type `c`, would lie.
bool MayReplace(const Descriptor& product, DType c, DType output) {
  return std::visit(
      [&](const auto& desc) {
        if constexpr (kIsProduct<std::decay_t<decltype(desc)>>) return MayReplaceResult(desc, c, output);
        return false;
      },
      product);
}

// The way of a product's epilogue.
EpilogueWay WayOfEpilogue(const Capabilities& can, const Command& product) {
  return std::visit(
      [&](const auto& desc) {
        if constexpr (kIsProduct<std::decay_t<decltype(desc)>>) return can.WayOfEpilogue(desc);
        return EpilogueWay::kAfterwards;
      },
      product.desc);
}

// True if a walk over the shape reads a row, or one number, again and again.
bool RepeatsRows(const Dims& shape, const Dims& strides) {
  const int64_t row = ElementsOfRepeatedBlock(shape, strides);
  return row == 1 || (row > 0 && row < shape.num_elements());
}

// True if the last bit of an instruction may depend on the way of the epilogue, as that of exp does.
bool HasFunction(const Program& program) {
  return std::any_of(program.instrs().begin(), program.instrs().end(),
                     [](const Instr& instr) { return CostOf(instr) > 1 && instr.op != Opcode::kFloor; });
}

class EpilogueFuser {
 public:
  EpilogueFuser(const Capabilities& can, EpilogueWay slowest, CommandList* list)
      : can_(can), slowest_(slowest), list_(*list), uses_(UsesOf(*list)) {}

  void Run() {
    bool has_divided = false;
    for (size_t i = 0; i < list_.commands.size(); ++i) has_divided |= DivideReader(static_cast<int>(i));
    if (has_divided) uses_ = UsesOf(list_);
    std::vector<bool> gone(list_.commands.size(), false);
    for (size_t i = 0; i < list_.commands.size(); ++i) {
      const int reader = FindReader(static_cast<int>(i));
      Command fused;
      if (reader < 0 || !Fuse(list_.commands[i], list_.commands[reader], &fused)) continue;
      if (WayOfEpilogue(can_, fused) > slowest_) continue;
      list_.commands[reader] = std::move(fused);
      gone[i] = true;
    }
    Remove(gone, &list_);
  }

 private:
  // Divides the reader's program among the products that it reads. A product gets the part that needs no other
  // product's elements. The program stays whole unless that improves the way of some instruction and worsens none.
  // False if nothing changes.
  bool DivideReader(int product) {
    const int reader = FindReader(product);
    if (reader < 0) return false;
    Command rest = list_.commands[reader];
    const Program& whole = *std::get<ElementwiseDesc>(rest.desc).program;
    const std::vector<int> others = OtherProductsOf(reader, product);
    if (others.empty() || whole.can_fail() || HasFunction(whole)) return false;
    Command fused;
    const bool fits = Fuse(list_.commands[product], rest, &fused);
    const EpilogueWay before = fits ? WayOfEpilogue(can_, fused) : EpilogueWay::kAfterwards;
    if (before == EpilogueWay::kInRegisters) return false;
    EpilogueWay best = before;
    std::vector<std::pair<int, Command>> changed;
    for (int other : others) {
      Command with_part;
      Command without_part;
      if (!MovePart(other, rest, reader, &with_part, &without_part)) continue;
      const EpilogueWay way = WayOfEpilogue(can_, with_part);
      if (way == EpilogueWay::kAfterwards || way > before) continue;
      best = std::min(best, way);
      changed.emplace_back(other, std::move(with_part));
      rest = std::move(without_part);
    }
    if (changed.empty() || !Fuse(list_.commands[product], rest, &fused)) return false;
    const EpilogueWay after = WayOfEpilogue(can_, fused);
    if (after > before || std::min(after, best) == before) return false;
    for (auto& [other, command] : changed) list_.commands[other] = std::move(command);
    list_.commands[reader] = std::move(rest);
    return true;
  }

  // The products whose results this command alone reads, but for one.
  std::vector<int> OtherProductsOf(int reader, int product) const {
    std::vector<int> found;
    for (const BufferSlice& place : list_.commands[reader].in) {
      if (place.buffer == BufferSlice::kNowhere) continue;
      const BufferUses::OfBuffer& uses = uses_.buffers[place.buffer];
      if (uses.kept || uses.writers.size() != 1 || uses.readers.size() != 1) continue;
      const int writer = uses.writers[0];
      const Command& command = list_.commands[writer];
      if (writer < reader && writer != product && IsProductWithoutEpilogue(command.desc) &&
          command.workspace.buffer == BufferSlice::kNowhere && WritesWhole(list_, command, 0) &&
          std::find(found.begin(), found.end(), writer) == found.end()) {
        found.push_back(writer);
      }
    }
    return found;
  }

  // Divides the program of `command`, at `reader` in the list, which reads this product. The product gets a part that
  // reads its elements, and values that are the same in all rows. The command keeps the rest.
  bool MovePart(int product, const Command& command, int reader, Command* with_part, Command* without_part) const {
    const Command& other = list_.commands[product];
    const auto& source = std::get<ElementwiseDesc>(command.desc);
    const Operand& result = other.footprint.out[0];
    const int c = other.out[0].buffer;
    std::vector<InputOfPart> inputs;
    for (int k = 0; k < source.program->num_inputs(); ++k) {
      const BufferSlice& place = command.in[k];
      if (place.buffer == c) {
        if (!IsElement(command, source, k, result)) return false;
        inputs.push_back(InputOfPart::kElement);
      } else if (RepeatsRows(source.shape, source.in_strides[k]) &&
                 !IsWritten(list_, uses_, place.buffer, RangeOfInput(command, k), product, reader - 1)) {
        inputs.push_back(InputOfPart::kAllowed);
      } else {
        inputs.push_back(InputOfPart::kForeign);
      }
    }
    DividedProgram divided;
    if (!Divide(*source.program, inputs, &divided)) return false;
    const DType type = divided.first.program->output_type(0);
    // Values of 16 bits would be rounded when they are stored.
    if (IsReducedFloat(type) || !MayReplace(other.desc, result.type, type)) return false;
    with_part->desc = other.desc;
    with_part->in = other.in;
    with_part->out = other.out;
    with_part->origin = other.origin;
    for (size_t k = 1; k < divided.first.inputs.size(); ++k) {
      with_part->in.push_back(command.in[divided.first.inputs[k]]);
    }
    if (!AttachEpilogue(PartOf(source, divided.first), can_, with_part)) return false;
    const ElementwiseDesc rest = PartOf(source, divided.rest);
    without_part->desc = rest;
    for (int k : divided.rest.inputs) without_part->in.push_back(command.in[k]);
    without_part->out = command.out;
    without_part->origin = command.origin;
    return Check(rest, &without_part->footprint).ok() && can_.Supports(rest);
  }

  static ElementwiseDesc PartOf(const ElementwiseDesc& whole, const DividedProgram::Part& part) {
    ElementwiseDesc desc;
    desc.program = part.program;
    desc.shape = whole.shape;
    for (size_t k = 0; k < part.inputs.size(); ++k) desc.in_strides[k] = whole.in_strides[part.inputs[k]];
    return desc;
  }

  // The first command that reads this product, if it is elementwise and the product can be moved to the reader's place.
  // Nothing in between writes the product's operands, nor does the reader.
  int FindReader(int product) const {
    const Command& command = list_.commands[product];
    if (!IsProductWithoutEpilogue(command.desc) || command.workspace.buffer != BufferSlice::kNowhere ||
        !WritesWhole(list_, command, 0)) {
      return -1;
    }
    const BufferUses::OfBuffer& uses = uses_.buffers[command.out[0].buffer];
    if (list_.buffers[command.out[0].buffer].kind != Buffer::Kind::kComputed || uses.writers.size() != 1 ||
        uses.readers.empty()) {
      return -1;
    }
    const int reader = uses.readers[0];
    if (reader < product || !std::holds_alternative<ElementwiseDesc>(list_.commands[reader].desc)) return -1;
    for (size_t k = 0; k < command.in.size(); ++k) {
      if (IsWritten(list_, uses_, command.in[k].buffer, RangeOfInput(command, k), product, reader)) return -1;
    }
    return reader;
  }

  // Makes the product with `reader` as its epilogue.
  bool Fuse(const Command& product, const Command& reader, Command* result) const {
    const int c = product.out[0].buffer;
    const auto& source = std::get<ElementwiseDesc>(reader.desc);
    const Program& p = *source.program;
    if (p.can_fail()) return false;

    Command fused;
    fused.desc = product.desc;
    fused.in = product.in;
    fused.origin = product.origin;
    const DType type = product.footprint.out[0].type;
    ElementwiseDesc epilogue;
    ProgramBuilder builder;
    const ProgramBuilder::Reg element = builder.Input(type);
    std::vector<ProgramBuilder::Reg> inputs;
    int num_inputs = 1;
    for (int k = 0; k < p.num_inputs(); ++k) {
      if (reader.in[k].buffer == c) {
        if (!IsElement(reader, source, k, product.footprint.out[0])) return false;
        inputs.push_back(element);
        continue;
      }
      // An epilogue reads no buffer that it writes.
      for (const BufferSlice& out : reader.out) {
        if (out.buffer == reader.in[k].buffer) return false;
      }
      if (num_inputs == Program::kMaxInputs - static_cast<int>(product.in.size()) + 1) return false;
      epilogue.in_strides[num_inputs++] = source.in_strides[k];
      fused.in.push_back(reader.in[k]);
      inputs.push_back(builder.Input(p.inputs()[k]));
    }

    const std::vector<ProgramBuilder::Reg> registers = builder.Inline(p, std::move(inputs));
    const auto output = [&](ProgramBuilder::Reg reg, const BufferSlice& place) {
      builder.Output(reg);
      fused.out.push_back(place);
    };
    // The first output takes the place of the product's result and has its type. It is the result itself if somebody
    // else reads that. After a product of several types the same size is enough.
    int first = -1;
    if (uses_.buffers[c].kept || uses_.buffers[c].readers.size() > 1) {
      output(element, product.out[0]);
    } else {
      while (++first < p.num_outputs() && !MayReplace(product.desc, type, p.output_type(first))) {
      }
      if (first == p.num_outputs()) return false;
      output(registers[p.outputs()[first]], reader.out[first]);
    }
    for (int o = 0; o < p.num_outputs(); ++o) {
      if (o != first) output(registers[p.outputs()[o]], reader.out[o]);
    }

    epilogue.shape = source.shape;
    epilogue.in_strides[0] = DenseStrides(source.shape);
    epilogue.program = builder.Build();
    if (epilogue.program == nullptr || !AttachEpilogue(epilogue, can_, &fused)) return false;
    *result = std::move(fused);
    return true;
  }

  // True if an elementwise command reads the product element by element at its input k.
  static bool IsElement(const Command& reader, const ElementwiseDesc& desc, int k, const Operand& product) {
    return IsDense(desc.shape, desc.in_strides[k]) && desc.program->inputs()[k] == product.type &&
           desc.shape.num_elements() == product.elements;
  }

  const Capabilities& can_;
  const EpilogueWay slowest_;
  CommandList& list_;
  BufferUses uses_;
};

}  // namespace

void FuseEpilogues(const Capabilities& can, EpilogueWay slowest, CommandList* list) {
  EpilogueFuser(can, slowest, list).Run();
}

}  // namespace xpu::commands

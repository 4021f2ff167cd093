// Fuses elementwise commands into the product that makes their elements: a matmul, also one of 4-bit weights, or a
// convolution. docs/clusters.md lists the conditions (Epilogues).
#include <algorithm>
#include <type_traits>
#include <utility>
#include <vector>

#include "tensorflow_plugin/commands/dependencies.h"
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

class EpilogueFuser {
 public:
  EpilogueFuser(const Capabilities& can, CommandList* list) : can_(can), list_(*list), uses_(UsesOf(*list)) {}

  void Run() {
    std::vector<bool> gone(list_.commands.size(), false);
    for (size_t i = 0; i < list_.commands.size(); ++i) {
      const int reader = FindReader(static_cast<int>(i));
      if (reader < 0 || !Fuse(list_.commands[i], &list_.commands[reader])) continue;
      gone[i] = true;
    }
    Remove(gone, &list_);
  }

 private:
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

  // Makes `reader` the product with an epilogue.
  bool Fuse(const Command& product, Command* reader) const {
    const int c = product.out[0].buffer;
    const auto& source = std::get<ElementwiseDesc>(reader->desc);
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
      if (reader->in[k].buffer == c) {
        if (!IsElement(*reader, source, k, product.footprint.out[0])) return false;
        inputs.push_back(element);
        continue;
      }
      // An epilogue reads no buffer that it writes.
      for (const BufferSlice& out : reader->out) {
        if (out.buffer == reader->in[k].buffer) return false;
      }
      if (num_inputs == Program::kMaxInputs - static_cast<int>(product.in.size()) + 1) return false;
      epilogue.in_strides[num_inputs++] = source.in_strides[k];
      fused.in.push_back(reader->in[k]);
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
      output(registers[p.outputs()[first]], reader->out[first]);
    }
    for (int o = 0; o < p.num_outputs(); ++o) {
      if (o != first) output(registers[p.outputs()[o]], reader->out[o]);
    }

    epilogue.shape = source.shape;
    epilogue.in_strides[0] = DenseStrides(source.shape);
    epilogue.program = builder.Build();
    if (epilogue.program == nullptr || !AttachEpilogue(epilogue, can_, &fused)) return false;
    *reader = std::move(fused);
    return true;
  }

  // True if an elementwise command reads the product element by element at its input k.
  static bool IsElement(const Command& reader, const ElementwiseDesc& desc, int k, const Operand& product) {
    return IsDense(desc.shape, desc.in_strides[k]) && desc.program->inputs()[k] == product.type &&
           desc.shape.num_elements() == product.elements;
  }

  const Capabilities& can_;
  CommandList& list_;
  const BufferUses uses_;
};

}  // namespace

void FuseEpilogues(const Capabilities& can, CommandList* list) { EpilogueFuser(can, list).Run(); }

}  // namespace xpu::commands

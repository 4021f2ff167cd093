// Fuses elementwise commands into the reduction that alone reads their results, so that these are never stored.
#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "tensorflow_plugin/commands/cost.h"
#include "tensorflow_plugin/commands/dependencies.h"
#include "tensorflow_plugin/commands/passes.h"
#include "tensorflow_plugin/commands/strided_view.h"
#include "tensorflow_plugin/primitives/check.h"

namespace xpu::commands {
namespace {

// Where a command goes on all the same, what is computed twice is this cheap, and reads no more than this many arrays.
constexpr int64_t kMaxTwice = 4;
constexpr int kMaxArrays = 2;

// An input of a program in the making.
struct ExcerptInput {
  BufferSlice place;
  Dims shape, strides;
  int command_output = -1;  // which of those of the command whose excerpt this is; -1: none
};

// Parts of an elementwise command's program, in another program.
class Excerpt {
 public:
  // Values that the command stores, but at output `but`, are read from there, unless this is null.
  Excerpt(const Command& command, const int* but, ProgramBuilder* builder, std::vector<ExcerptInput>* sources)
      : command_(command),
        desc_(std::get<ElementwiseDesc>(command.desc)),
        but_(but),
        builder_(*builder),
        sources_(*sources) {}

  // A register of the command's program.
  ProgramBuilder::Reg Of(int r) {
    const auto found = known_.find(r);
    if (found != known_.end()) return found->second;
    const ProgramBuilder::Reg reg = Make(r);
    known_.emplace(r, reg);
    return reg;
  }
  // In simple instructions.
  int64_t cost() const { return cost_; }

 private:
  ProgramBuilder::Reg Make(int r) {
    const Program& p = *desc_.program;
    if (r < p.num_inputs()) return Read({command_.in[r], desc_.shape, desc_.in_strides[r]}, p.type(r));
    if (r < p.first_instr_register()) return builder_.Const(p.constants()[r - p.num_inputs()]);
    for (int o = 0; but_ != nullptr && o < p.num_outputs(); ++o) {
      // A value that is stored in 16 bits is rounded.
      if (o == *but_ || p.outputs()[o] != r || IsReducedFloat(p.type(r))) continue;
      return Read({command_.out[o], desc_.shape, DenseStrides(desc_.shape), o}, p.type(r));
    }
    const Instr& instr = p.instrs()[r - p.first_instr_register()];
    cost_ += CostOf(instr);
    const ProgramBuilder::Reg a = Of(instr.a);
    const ProgramBuilder::Reg b = Info(instr.op).arity > 1 ? Of(instr.b) : a;
    return builder_.Again(instr, a, b, Info(instr.op).arity > 2 ? Of(instr.c) : a);
  }
  ProgramBuilder::Reg Read(ExcerptInput source, DType type) {
    sources_.push_back(std::move(source));
    return builder_.Input(type);
  }

  const Command& command_;
  const ElementwiseDesc& desc_;
  const int* const but_;
  ProgramBuilder& builder_;
  std::vector<ExcerptInput>& sources_;
  std::map<int, ProgramBuilder::Reg> known_;
  int64_t cost_ = 0;
};

// The strides over another shape of as many elements; false if an axis of it has no one stride.
bool StridesOver(const Dims& shape, const ExcerptInput& source, Dims* strides) {
  StridedView view{source.shape, source.strides};
  Dims* const merged[] = {&view.strides};
  MergeDims(&view.shape, merged, 1);
  std::vector<std::vector<ViewAxis>> pieces;
  int64_t offset = 0;
  if (!ComposeViews(view, 0, shape, DenseStrides(shape), &pieces, &offset)) return false;
  *strides = Dims();
  for (const std::vector<ViewAxis>& axis : pieces) {
    if (axis.size() != 1) return false;
    strides->push_back(axis[0].stride);
  }
  return true;
}

class ReductionFuser {
 public:
  ReductionFuser(const Capabilities& can, CommandList* list) : can_(can), list_(*list), uses_(UsesOf(*list)) {}

  void Run() {
    std::vector<bool> gone(list_.commands.size(), false);
    for (size_t i = 0; i < list_.commands.size(); ++i) {
      const auto* reduce = std::get_if<ReduceDesc>(&list_.commands[i].desc);
      for (int k = 0; reduce != nullptr && k < reduce->source.program->num_inputs(); ++k) {
        int output = 0;
        const int writer = WriterOf(static_cast<int>(i), k, &output);
        if (writer < 0 || !Fuse(writer, output, static_cast<int>(i), k)) continue;
        gone[writer] = list_.commands[writer].out.size() == 1;
        if (!gone[writer]) RemoveOutput(output, &list_.commands[writer]);
        break;
      }
    }
    Remove(gone, &list_);
  }

 private:
  // The elementwise command that computes, at an output, what a reduction alone reads at its input k, all of it; or -1.
  int WriterOf(int reduction, int k, int* output) const {
    const Command& command = list_.commands[reduction];
    const BufferSlice& place = command.in[k];
    if (place.buffer == BufferSlice::kNowhere || place.offset != 0) return -1;
    const BufferUses::OfBuffer& uses = uses_.buffers[place.buffer];
    if (uses.kept || uses.writers.size() != 1 || uses.readers.size() != 1) return -1;
    const Command& writer = list_.commands[uses.writers[0]];
    const auto* desc = std::get_if<ElementwiseDesc>(&writer.desc);
    if (desc == nullptr || desc->program->can_fail() || writer.workspace.buffer != BufferSlice::kNowhere) return -1;
    for (*output = 0; writer.out[*output].buffer != place.buffer;) ++*output;
    const ElementwiseDesc& source = std::get<ReduceDesc>(command.desc).source;
    const bool reads_all = WritesWhole(list_, writer, *output) && IsDense(source.shape, source.in_strides[k]) &&
                           source.shape.num_elements() == desc->shape.num_elements() &&
                           source.program->inputs()[k] == desc->program->output_type(*output);
    return reads_all ? uses.writers[0] : -1;
  }

  // Makes the reduction compute its input k, which a command computes at an output.
  bool Fuse(int writer, int output, int reduction, int k) {
    const Command& from = list_.commands[writer];
    Command& to = list_.commands[reduction];
    ReduceDesc desc = std::get<ReduceDesc>(to.desc);
    const Program& p = *desc.source.program;
    const Program& of_writer = *std::get<ElementwiseDesc>(from.desc).program;

    ProgramBuilder builder;
    std::vector<ExcerptInput> sources;
    Excerpt excerpt(from, &output, &builder, &sources);
    std::vector<ProgramBuilder::Reg> inputs;
    for (int i = 0; i < p.num_inputs(); ++i) {
      if (i == k) {
        inputs.push_back(builder.Round(excerpt.Of(of_writer.outputs()[output])));
      } else {
        sources.push_back({to.in[i], desc.source.shape, desc.source.in_strides[i]});
        inputs.push_back(builder.Input(p.inputs()[i]));
      }
    }
    if (sources.size() > static_cast<size_t>(Program::kMaxInputs)) return false;
    if (from.out.size() > 1 && (excerpt.cost() > kMaxTwice || NumArrays(sources) > kMaxArrays)) return false;

    Command fused;
    for (size_t s = 0; s < sources.size(); ++s) {
      if (!StridesOver(desc.source.shape, sources[s], &desc.source.in_strides[s])) return false;
      fused.in.push_back(sources[s].place);
    }
    builder.Output(builder.Inline(p, std::move(inputs))[p.outputs()[0]]);
    desc.source.program = builder.Build();
    if (desc.source.program == nullptr || !Check(desc, &fused.footprint).ok() || !can_.Supports(desc)) return false;
    // With the workspace that there is.
    if (can_.WorkspaceBytes(desc) > can_.WorkspaceBytes(std::get<ReduceDesc>(to.desc))) return false;
    for (size_t s = 0; s < sources.size(); ++s) {
      // The reduction reads later than the command, and not what that has stored over.
      const int first = sources[s].command_output < 0 ? writer - 1 : writer;
      const BufferSlice& place = fused.in[s];
      const Operand& operand = fused.footprint.in[s];
      if (IsWritten(list_, uses_, place.buffer, {place.offset + operand.begin, place.offset + operand.end}, first,
                    reduction)) {
        return false;
      }
    }
    for (const BufferSlice& place : fused.in) {
      if (place.buffer != BufferSlice::kNowhere) uses_.buffers[place.buffer].readers.push_back(reduction);
    }
    fused.desc = std::move(desc);
    fused.out = to.out;
    fused.workspace = to.workspace;
    fused.origin = to.origin;
    to = std::move(fused);
    return true;
  }

  static int NumArrays(const std::vector<ExcerptInput>& sources) {
    return static_cast<int>(std::count_if(sources.begin(), sources.end(), [](const ExcerptInput& source) {
      return IsDense(source.shape, source.strides) && source.shape.num_elements() != 1;
    }));
  }

  // Removes an output of an elementwise command that has others, and all that only this output needs. The command stays
  // as it is if the device does not support it with fewer outputs.
  void RemoveOutput(int output, Command* command) const {
    const auto& desc = std::get<ElementwiseDesc>(command->desc);
    Command less;
    ElementwiseDesc changed;
    changed.shape = desc.shape;
    ProgramBuilder builder;
    std::vector<ExcerptInput> sources;
    Excerpt excerpt(*command, nullptr, &builder, &sources);
    for (int o = 0; o < desc.program->num_outputs(); ++o) {
      if (o == output) continue;
      builder.Output(excerpt.Of(desc.program->outputs()[o]));
      less.out.push_back(command->out[o]);
    }
    for (size_t s = 0; s < sources.size(); ++s) {
      changed.in_strides[s] = sources[s].strides;
      less.in.push_back(sources[s].place);
    }
    changed.program = builder.Build();
    if (changed.program == nullptr || !Check(changed, &less.footprint).ok() || !can_.Supports(changed)) return;
    less.desc = std::move(changed);
    less.origin = command->origin;
    *command = std::move(less);
  }

  const Capabilities& can_;
  CommandList& list_;
  BufferUses uses_;  // with what fused reductions read, in no order
};

}  // namespace

void FuseReductions(const Capabilities& can, CommandList* list) { ReductionFuser(can, list).Run(); }

}  // namespace xpu::commands

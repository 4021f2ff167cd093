#include <algorithm>
#include <iterator>
#include <unordered_set>
#include <utility>
#include <vector>

#include "tensorflow_plugin/commands/dependencies.h"
#include "tensorflow_plugin/commands/passes.h"
#include "tensorflow_plugin/commands/strided_view.h"
#include "tensorflow_plugin/commands/work.h"
#include "tensorflow_plugin/primitives/check.h"

namespace xpu::commands {
namespace {

// A command of so many elements costs about as much as its being one.
constexpr int64_t kFewElements = 4096;

// The limits of the search for commands that read the same buffer. A command moves at most this far, past commands that
// it does not depend on, to join another. A loop's first and last iterations are further apart.
constexpr int kMostReaders = 16, kMostTaken = 256, kFurthest = 1024;

// Strides of axes of one element mean nothing.
bool SameWalk(const Dims& shape, const Dims& a, const Dims& b) {
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] != 1 && a[i] != b[i]) return false;
  }
  return true;
}
bool IsScalar(const Dims& shape, const Dims& strides) { return SameWalk(shape, strides, Dims(shape.rank(), 0)); }

// A program's input: where it reads, and with which strides.
struct Read {
  BufferSlice place;
  Dims strides;
  DType type;
  ByteRange range;
};

// A value that a group has written to a part of a buffer.
struct FusedValue {
  int buffer;
  ByteRange range;
  ProgramBuilder::Reg reg;
  bool rounded;  // as TensorFlow rounds between any two ops; if not, it has to be before it is read
  bool escapes;  // others read the buffer, too, or it is kept
};

// The size of a group's program so far. It grows command by command, in a few steps for each.
struct Fusion {
  std::vector<Read> reads;
  std::vector<FusedValue> written;  // in order, each part once
  std::vector<Constant> constants;  // each once
  size_t instructions = 0;
  int outputs = 0;  // how many of `written` escape

  FusedValue* Find(int buffer, const ByteRange& range) {
    for (FusedValue& value : written) {
      if (value.buffer == buffer && value.range.Overlaps(range)) return &value;
    }
    return nullptr;
  }
};

// Brings a fusion back to its state before a command was added.
class Restorer {
 public:
  explicit Restorer(Fusion* fusion)
      : fusion_(*fusion),
        reads_(fusion->reads.size()),
        written_(fusion->written.size()),
        constants_(fusion->constants.size()),
        instructions_(fusion->instructions),
        outputs_(fusion->outputs) {}

  // The caller calls it before it changes an element of `written`.
  void Keep(const FusedValue& value) {
    const size_t number = static_cast<size_t>(&value - fusion_.written.data());
    if (number < written_) changed_.emplace_back(number, value);
  }
  void Restore() {
    fusion_.reads.resize(reads_);
    for (size_t i = changed_.size(); i-- > 0;) fusion_.written[changed_[i].first] = changed_[i].second;
    fusion_.written.erase(fusion_.written.begin() + written_, fusion_.written.end());
    fusion_.constants.resize(constants_);
    fusion_.instructions = instructions_;
    fusion_.outputs = outputs_;
  }

 private:
  Fusion& fusion_;
  const size_t reads_, written_, constants_, instructions_;
  const int outputs_;
  std::vector<std::pair<size_t, FusedValue>> changed_;
};

// Commands that become one.
struct Group {
  Dims shape;
  std::vector<int> members;  // in order
  size_t instructions = 0;   // of their programs
  Fusion fusion;
};

// A program in the making: its builder, and the registers of its inputs and constants.
struct Registers {
  ProgramBuilder builder;
  std::vector<ProgramBuilder::Reg> reads, constants;
};

// For each register: true if its value can be stored without rounding. Empty if that is true of all.
std::vector<bool> Rounded(const Program& p) {
  const bool all = std::none_of(p.instrs().begin(), p.instrs().end(),
                                [](const Instr& instr) { return IsReducedFloat(instr.result); });
  if (all) return {};
  std::vector<bool> rounded(p.first_instr_register(), true);
  for (const Instr& instr : p.instrs()) {
    bool is_rounded = instr.op == Opcode::kCast || !IsReducedFloat(instr.result);
    if (instr.op == Opcode::kNeg || instr.op == Opcode::kAbs) is_rounded = rounded[instr.a];
    if (instr.op == Opcode::kMaximum || instr.op == Opcode::kMinimum) is_rounded = rounded[instr.a] && rounded[instr.b];
    if (instr.op == Opcode::kSelect) is_rounded = rounded[instr.b] && rounded[instr.c];
    rounded.push_back(is_rounded);
  }
  return rounded;
}

class Fuser {
 public:
  Fuser(const Capabilities& can, CommandList* list)
      : can_(can), list_(*list), uses_(UsesOf(*list)), before_(Dependencies(*list)), distances_(*list) {}

  void Run() {
    group_of_.assign(list_.commands.size(), -1);
    for (int i = 0; i < static_cast<int>(list_.commands.size()); ++i) {
      can_fuse_.push_back(CanFuse(list_.commands[i]));
      if (!can_fuse_[i]) {
        group_of_[i] = NewGroup(i, Dims());
        continue;
      }
      const std::vector<int> candidates = CandidatesFor(i);
      const auto joined = std::find_if(candidates.begin(), candidates.end(), [&](int g) { return Join(g, i); });
      if (joined == candidates.end()) {
        group_of_[i] = NewGroup(i, DescOf(i).shape);
      } else {
        MergeSources(i);
      }
      if (can_fuse_[i] && DescOf(i).shape.num_elements() == 1) last_scalar_ = group_of_[i];
    }
    Emit();
  }

 private:
  const ElementwiseDesc& DescOf(int i) const { return std::get<ElementwiseDesc>(list_.commands[i].desc); }

  bool CanFuse(const Command& command) const {
    const auto* desc = std::get_if<ElementwiseDesc>(&command.desc);
    if (desc == nullptr || desc->program->can_fail() || command.workspace.buffer != BufferSlice::kNowhere) return false;
    for (int o = 0; o < desc->program->num_outputs(); ++o) {
      if (!WritesAll(command, o)) return false;
    }
    return true;
  }

  int NewGroup(int i, Dims shape) {
    const int g = static_cast<int>(groups_.size());
    const auto* desc = std::get_if<ElementwiseDesc>(&list_.commands[i].desc);
    groups_.push_back({std::move(shape), {i}, desc == nullptr ? 0 : desc->program->instrs().size(), {}});
    if (can_fuse_[i] && !Rebuild(&groups_[g])) can_fuse_[i] = false;
    position_.push_back(static_cast<int>(order_.size()));
    order_.push_back(g);
    return g;
  }

  bool IsElementwise(int group) const { return can_fuse_[groups_[group].members[0]]; }

  // True if commands that read the same buffer gain by fusion: they read it once. For few elements, one command less is
  // a gain. Commands over many elements are better fused with those that read their results.
  bool IsWorthOnePass(int a, int b) const {
    const Command &one = list_.commands[a], &other = list_.commands[b];
    const int64_t elements = DescOf(b).shape.num_elements();
    if (elements <= kFewElements) return true;
    for (size_t k = 0; k < one.in.size(); ++k) {
      for (size_t m = 0; m < other.in.size(); ++m) {
        if (one.in[k].buffer != other.in[m].buffer || one.in[k].buffer == BufferSlice::kNowhere) continue;
        const ByteRange x = RangeOfInput(one, k), y = RangeOfInput(other, m);
        if (std::min(x.end, y.end) - std::max(x.begin, y.begin) >= elements) return true;
      }
    }
    return false;
  }

  // First the groups that it depends on, then those that read the same shortly before, the latest first; single
  // elements go with any.
  std::vector<int> CandidatesFor(int i) const {
    std::vector<int> found;
    const auto add = [&](int command) {
      const int g = command < i ? group_of_[command] : -1;
      if (g >= 0 && IsElementwise(g) && std::find(found.begin(), found.end(), g) == found.end()) found.push_back(g);
    };
    for (auto it = before_[i].rbegin(); it != before_[i].rend(); ++it) add(*it);
    for (const BufferSlice& place : list_.commands[i].in) {
      if (place.buffer == BufferSlice::kNowhere) continue;
      if (list_.buffers[place.buffer].bytes > 16) {
        const std::vector<int>& readers = uses_.buffers[place.buffer].readers;
        const auto own = std::lower_bound(readers.begin(), readers.end(), i);
        for (auto it = own - std::min<std::ptrdiff_t>(own - readers.begin(), kMostReaders); it != own; ++it) {
          const int reader = *it;
          if (reader < i && !distances_.AreFar(reader, i) && IsWorthOnePass(reader, i)) add(reader);
        }
      }
    }
    if (DescOf(i).shape.num_elements() == 1 && last_scalar_ >= 0) add(groups_[last_scalar_].members[0]);
    return found;
  }

  // The strides of a command's input over another shape of as many elements. False if there are none.
  static bool StridesOver(const ElementwiseDesc& desc, int k, const Dims& shape, Dims* strides) {
    if (desc.shape == shape) {
      *strides = desc.in_strides[k];
    } else if (IsDense(desc.shape, desc.in_strides[k])) {
      *strides = DenseStrides(shape);
    } else if (IsScalar(desc.shape, desc.in_strides[k])) {
      *strides = Dims(shape.rank(), 0);
    } else {
      return false;
    }
    return true;
  }

  // Adds command i, which comes after all of group g, to it if that is possible.
  bool Join(int g, int i) {
    Group& group = groups_[g];
    const Dims& shape = DescOf(i).shape;
    const size_t instructions = group.instructions + DescOf(i).program->instrs().size();
    if (group.shape.num_elements() != shape.num_elements() || instructions > Program::kMaxRegisters) return false;
    group.members.push_back(i);
    Restorer restorer(&group.fusion);
    bool fits = Append(group, i, &group.fusion, &restorer, nullptr) && IsSmallEnough(group.fusion);
    if (!fits) restorer.Restore();
    Group reshaped;
    if (!fits && group.shape != shape) {
      reshaped = {shape, group.members, 0, {}};
      fits = Rebuild(&reshaped);
    }
    if (!fits || !PutSourcesBefore(g, {i}, -1)) {
      if (fits && reshaped.members.empty()) restorer.Restore();
      group.members.pop_back();
      return false;
    }
    if (!reshaped.members.empty()) group = std::move(reshaped);
    group.instructions = instructions;
    group_of_[i] = g;
    return true;
  }

  // Another group that a command depends on joins the command's own, such as a decay before an update.
  void MergeSources(int i) {
    for (int b : before_[i]) {
      const int own = group_of_[i], source = group_of_[b];
      if (source == own || !IsElementwise(source)) continue;
      if (position_[source] < position_[own]) {
        Merge(source, own);
      } else {
        Merge(own, source);
      }
    }
  }

  // Group h, which stands behind g, becomes part of it, if that can be.
  void Merge(int g, int h) {
    Group merged{groups_[g].shape, {}, groups_[g].instructions + groups_[h].instructions, {}};
    const std::vector<int>&first = groups_[g].members, &second = groups_[h].members;
    if (merged.shape.num_elements() != groups_[h].shape.num_elements() ||
        merged.instructions > Program::kMaxRegisters) {
      return;
    }
    std::merge(first.begin(), first.end(), second.begin(), second.end(), std::back_inserter(merged.members));
    bool fits = Rebuild(&merged);
    if (!fits && merged.shape != groups_[h].shape) {
      merged.shape = groups_[h].shape;
      fits = Rebuild(&merged);
    }
    if (!fits || !PutSourcesBefore(g, second, h)) return;
    for (int member : second) group_of_[member] = g;
    groups_[h].members.clear();  // it keeps its place in the order
    groups_[h].fusion = {};
    groups_[g] = std::move(merged);
    if (last_scalar_ == h) last_scalar_ = g;
  }

  // Makes the group's fusion from its members. False if they cannot be one command.
  bool Rebuild(Group* group) const {
    group->fusion = {};
    for (int i : group->members) {
      if (!Append(*group, i, &group->fusion, nullptr, nullptr)) return false;
    }
    return IsSmallEnough(group->fusion);
  }

  static bool IsSmallEnough(const Fusion& fusion) {
    return fusion.outputs > 0 && fusion.outputs <= Program::kMaxOutputs &&
           fusion.reads.size() + fusion.constants.size() + fusion.instructions <= Program::kMaxRegisters;
  }

  // Moves all that the joining commands depend on before them. False if some of it depends on g, or is too much or too
  // far away. They are those of group `own`, if there is one.
  bool PutSourcesBefore(int g, const std::vector<int>& commands, int own) {
    std::unordered_set<int> found;
    std::vector<int> open;
    int last = position_[g];
    const auto visit = [&](int command) {
      ++Steps();
      const int h = group_of_[command];
      if (h == own || position_[h] <= position_[g] || !found.insert(h).second) return;
      open.push_back(h);
      last = std::max(last, position_[h]);
    };
    for (int command : commands) {
      for (int b : before_[command]) visit(b);
    }
    while (!open.empty()) {
      if (found.size() > kMostTaken || last - position_[g] > kFurthest) return false;
      const int h = open.back();
      open.pop_back();
      for (int member : groups_[h].members) {
        for (int b : before_[member]) {
          if (group_of_[b] == g) return false;
          visit(b);
        }
      }
    }
    Steps() += last - position_[g];
    const auto begin = order_.begin() + position_[g], end = order_.begin() + last + 1;
    std::stable_partition(begin, end, [&](int h) { return found.count(h) != 0; });
    for (int p = position_[g]; p <= last; ++p) position_[order_[p]] = p;
    return true;
  }

  // Adds command i, a member of the group, to a fusion. False if it cannot be part of that, which may have changed all
  // the same. With `registers` the program is built, too.
  bool Append(const Group& group, int i, Fusion* fusion, Restorer* restorer, Registers* registers) const {
    ++Steps();
    const Command& command = list_.commands[i];
    const ElementwiseDesc& desc = DescOf(i);
    const Program& p = *desc.program;
    std::vector<ProgramBuilder::Reg> regs;
    for (int k = 0; k < p.num_inputs(); ++k) {
      ProgramBuilder::Reg reg{};
      if (!AppendInput(group, command, desc, k, fusion, restorer, registers, &reg)) return false;
      if (registers != nullptr) regs.push_back(reg);
    }
    for (const Constant& c : p.constants()) {
      const auto same = [&c](const Constant& o) {
        return o.type == c.type && o.re == c.re && o.im == c.im && o.bits == c.bits;
      };
      const auto known = std::find_if(fusion->constants.begin(), fusion->constants.end(), same);
      const size_t number = static_cast<size_t>(known - fusion->constants.begin());
      if (known == fusion->constants.end()) {
        fusion->constants.push_back(c);
        if (registers != nullptr) registers->constants.push_back(registers->builder.Const(c));
      }
      if (registers != nullptr) regs.push_back(registers->constants[number]);
    }
    fusion->instructions += p.instrs().size();
    if (registers != nullptr) regs = registers->builder.Inline(p, std::move(regs));
    const std::vector<bool> rounded = Rounded(p);
    for (int o = 0; o < p.num_outputs(); ++o) {
      const int r = p.outputs()[o];
      FusedValue value{command.out[o].buffer, RangeOfOutput(command, o), {}, rounded.empty() || rounded[r], false};
      value.reg.type = p.type(r);
      if (registers != nullptr) value.reg = regs[r];
      if (!AppendOutput(group, value, fusion, restorer)) return false;
    }
    return true;
  }

  // Adds input k of a command. The program may have its value already.
  bool AppendInput(const Group& group, const Command& command, const ElementwiseDesc& desc, int k, Fusion* fusion,
                   Restorer* restorer, Registers* registers, ProgramBuilder::Reg* reg) const {
    const BufferSlice& place = command.in[k];
    const DType type = desc.program->inputs()[k];
    Read read{place, {}, type, RangeOfInput(command, k)};
    if (!StridesOver(desc, k, group.shape, &read.strides)) return false;
    UpdateEscapes(group, place.buffer, fusion, restorer);
    if (FusedValue* const value = fusion->Find(place.buffer, read.range)) {
      if (place.offset != value->range.begin || !IsDense(group.shape, read.strides) || value->reg.type != type) {
        return false;
      }
      if (!value->rounded) {
        if (restorer != nullptr) restorer->Keep(*value);
        if (registers != nullptr) value->reg = registers->builder.Round(value->reg);
        value->rounded = true;
        ++fusion->instructions;
      }
      *reg = value->reg;
      return true;
    }
    size_t r = 0;
    while (r < fusion->reads.size() && !Same(group.shape, fusion->reads[r], read)) ++r;
    if (r == fusion->reads.size()) {
      if (r == Program::kMaxInputs) return false;
      fusion->reads.push_back(std::move(read));
      if (registers != nullptr) registers->reads.push_back(registers->builder.Input(type));
    }
    if (registers != nullptr) *reg = registers->reads[r];
    return true;
  }

  bool AppendOutput(const Group& group, FusedValue value, Fusion* fusion, Restorer* restorer) const {
    // A value that is written over must have been read element by element.
    for (const Read& read : fusion->reads) {
      if (read.place.buffer != value.buffer || !read.range.Overlaps(value.range)) continue;
      if (read.place.offset != value.range.begin || !IsDense(group.shape, read.strides) ||
          SizeOf(read.type) != SizeOf(value.reg.type)) {
        return false;
      }
    }
    FusedValue* const old = fusion->Find(value.buffer, value.range);
    if (old == nullptr) {
      value.escapes = IsReadOutside(value.buffer, group);
      fusion->outputs += value.escapes;
      fusion->written.push_back(value);
      return true;
    }
    if (old->range.begin != value.range.begin || old->range.end != value.range.end) return false;
    if (restorer != nullptr) restorer->Keep(*old);
    value.escapes = old->escapes;
    *old = value;
    return true;
  }

  // Looks again at who reads a buffer that the group has written, for a member that reads it.
  void UpdateEscapes(const Group& group, int buffer, Fusion* fusion, Restorer* restorer) const {
    for (FusedValue& value : fusion->written) {
      if (value.buffer != buffer) continue;
      const bool escapes = IsReadOutside(buffer, group);
      if (value.escapes == escapes) continue;
      if (restorer != nullptr) restorer->Keep(value);
      fusion->outputs += escapes ? 1 : -1;
      value.escapes = escapes;
    }
  }

  // The group as one command. False if there is no such program, or the device does not support it. Programs live for
  // ever.
  bool Build(const Group& group, ElementwiseDesc* desc, std::vector<BufferSlice>* in,
             std::vector<BufferSlice>* out) const {
    Fusion fusion;
    Registers registers;
    for (int i : group.members) {
      if (!Append(group, i, &fusion, nullptr, &registers)) return false;
    }
    if (!IsSmallEnough(fusion)) return false;
    out->clear();
    for (const FusedValue& value : fusion.written) {
      if (!value.escapes) continue;
      registers.builder.Output(value.reg);
      out->push_back({value.buffer, value.range.begin});
    }
    desc->program = registers.builder.Build();
    if (desc->program == nullptr) return false;
    desc->shape = group.shape;
    in->clear();
    for (size_t r = 0; r < fusion.reads.size(); ++r) {
      desc->in_strides[r] = fusion.reads[r].strides;
      in->push_back(fusion.reads[r].place);
    }
    return can_.Supports(*desc);
  }

  static bool Same(const Dims& shape, const Read& a, const Read& b) {
    return a.place.buffer == b.place.buffer && a.place.offset == b.place.offset && a.type == b.type &&
           SameWalk(shape, a.strides, b.strides);
  }

  bool IsReadOutside(int buffer, const Group& group) const {
    if (uses_.buffers[buffer].kept) return true;
    for (int reader : uses_.buffers[buffer].readers) {
      if (!std::binary_search(group.members.begin(), group.members.end(), reader)) return true;
    }
    return false;
  }

  // Puts groups in an order that keeps dependencies; the earliest first where there is a choice. Those without members
  // have become part of others.
  void Emit() {
    std::vector<int> waits(groups_.size(), 0);
    std::vector<std::vector<int>> after(groups_.size());
    for (size_t g = 0; g < groups_.size(); ++g) {
      std::vector<int> sources;
      for (int member : groups_[g].members) {
        for (int b : before_[member]) sources.push_back(group_of_[b]);
      }
      std::sort(sources.begin(), sources.end());
      sources.erase(std::unique(sources.begin(), sources.end()), sources.end());
      for (int source : sources) {
        if (source == static_cast<int>(g)) continue;
        after[source].push_back(static_cast<int>(g));
        ++waits[g];
      }
    }
    std::vector<std::pair<int, int>> ready;  // (last member, group), a heap with the earliest on top
    const auto later = std::greater<std::pair<int, int>>();
    const auto add = [&](int g) {
      ready.emplace_back(groups_[g].members.back(), g);
      std::push_heap(ready.begin(), ready.end(), later);
    };
    for (size_t g = 0; g < groups_.size(); ++g) {
      if (waits[g] == 0 && !groups_[g].members.empty()) add(static_cast<int>(g));
    }
    std::vector<Command> commands;
    while (!ready.empty()) {
      std::pop_heap(ready.begin(), ready.end(), later);
      const int g = ready.back().second;
      ready.pop_back();
      AddCommands(groups_[g], &commands);
      for (int next : after[g]) {
        if (--waits[next] == 0) add(next);
      }
    }
    list_.commands = std::move(commands);
  }

  // The members as they were where there is nothing to join, or the device does not support the whole.
  void AddCommands(const Group& group, std::vector<Command>* commands) {
    Command command;
    ElementwiseDesc desc;
    if (group.members.size() > 1 && Build(group, &desc, &command.in, &command.out) &&
        Check(desc, &command.footprint).ok()) {
      command.desc = desc;
      command.origin = list_.commands[group.members[0]].origin;
      commands->push_back(std::move(command));
      return;
    }
    for (int member : group.members) commands->push_back(std::move(list_.commands[member]));
  }

  const Capabilities& can_;
  CommandList& list_;
  const BufferUses uses_;
  const std::vector<std::vector<int>> before_;
  const Distances distances_;
  std::vector<Group> groups_;
  std::vector<int> group_of_;   // by command
  std::vector<bool> can_fuse_;  // by command, so far
  // The groups so far, each after those that it depends on, and where each stands.
  std::vector<int> order_, position_;
  int last_scalar_ = -1;  // a group of single elements
};

}  // namespace

void FuseElementwise(const Capabilities& can, CommandList* list) { Fuser(can, list).Run(); }

}  // namespace xpu::commands

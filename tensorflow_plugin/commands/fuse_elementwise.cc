#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>
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

// Commands that become one.
struct Group {
  Dims shape;
  std::vector<int> members;  // in order
  size_t instructions = 0;   // of their programs
};

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
};
using Written = std::vector<FusedValue>;  // in order, each part once

FusedValue* Find(Written& written, int buffer, const ByteRange& range) {
  for (FusedValue& value : written) {
    if (value.buffer == buffer && value.range.Overlaps(range)) return &value;
  }
  return nullptr;
}

// For each register: true if its value can be stored without rounding.
std::vector<bool> Rounded(const Program& p) {
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
  Fuser(const Capabilities& can, List* list)
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
      if (DescOf(i).shape.num_elements() == 1) last_scalar_ = group_of_[i];
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
    groups_.push_back({std::move(shape), {i}, desc == nullptr ? 0 : desc->program->instrs().size()});
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

  // The strides of a command's inputs over another shape of as many elements; false if there are none.
  bool StridesOver(int i, const Dims& shape, std::vector<Dims>* strides) const {
    const ElementwiseDesc& desc = DescOf(i);
    for (int k = 0; k < desc.program->num_inputs(); ++k) {
      if (desc.shape == shape) {
        strides->push_back(desc.in_strides[k]);
      } else if (IsDense(desc.shape, desc.in_strides[k])) {
        strides->push_back(DenseStrides(shape));
      } else if (IsScalar(desc.shape, desc.in_strides[k])) {
        strides->push_back(Dims(shape.rank(), 0));
      } else {
        return false;
      }
    }
    return true;
  }

  bool Join(int g, int i) {
    const Dims& shape = DescOf(i).shape;
    const size_t instructions = groups_[g].instructions + DescOf(i).program->instrs().size();
    if (groups_[g].shape.num_elements() != shape.num_elements() || instructions > Program::kMaxRegisters) return false;
    Group joined = groups_[g];
    joined.members.push_back(i);
    joined.instructions = instructions;
    bool fits = Fits(joined);
    if (!fits && joined.shape != shape) {
      joined.shape = shape;
      fits = Fits(joined);
    }
    if (!fits || !PutSourcesBefore(g, {i}, -1)) return false;
    groups_[g] = std::move(joined);
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
    Group merged{groups_[g].shape, {}, groups_[g].instructions + groups_[h].instructions};
    const std::vector<int>&first = groups_[g].members, &second = groups_[h].members;
    if (merged.shape.num_elements() != groups_[h].shape.num_elements() ||
        merged.instructions > Program::kMaxRegisters) {
      return;
    }
    std::merge(first.begin(), first.end(), second.begin(), second.end(), std::back_inserter(merged.members));
    bool fits = Fits(merged);
    if (!fits && merged.shape != groups_[h].shape) {
      merged.shape = groups_[h].shape;
      fits = Fits(merged);
    }
    if (!fits || !PutSourcesBefore(g, second, h)) return;
    for (int member : second) group_of_[member] = g;
    groups_[h].members.clear();  // it keeps its place in the order
    groups_[g] = std::move(merged);
    if (last_scalar_ == h) last_scalar_ = g;
  }

  bool Fits(const Group& group) const {
    ElementwiseDesc desc;
    std::vector<BufferSlice> in, out;
    return Build(group, false, &desc, &in, &out);
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

  // The group as one command; false if there is no such program. Programs live for ever: one is made only if `make`.
  bool Build(const Group& group, bool make, ElementwiseDesc* desc, std::vector<BufferSlice>* in,
             std::vector<BufferSlice>* out) const {
    ProgramBuilder builder;
    size_t instructions = 0;
    std::vector<Read> reads;
    std::vector<ProgramBuilder::Reg> read_registers;
    Written written;
    std::map<std::tuple<DType, double, double, int64_t>, ProgramBuilder::Reg> constants;
    for (int i : group.members) {
      ++Steps();
      const Command& command = list_.commands[i];
      const Program& p = *DescOf(i).program;
      std::vector<Dims> strides;
      if (!StridesOver(i, group.shape, &strides)) return false;
      std::vector<ProgramBuilder::Reg> regs;
      for (int k = 0; k < p.num_inputs(); ++k) {
        const BufferSlice& place = command.in[k];
        if (FusedValue* const value = Find(written, place.buffer, RangeOfInput(command, k))) {
          if (place.offset != value->range.begin || !IsDense(group.shape, strides[k]) ||
              value->reg.type != p.inputs()[k]) {
            return false;
          }
          if (!value->rounded) {
            value->reg = builder.Round(value->reg);
            value->rounded = true;
            ++instructions;
          }
          regs.push_back(value->reg);
          continue;
        }
        const Read read{place, strides[k], p.inputs()[k], RangeOfInput(command, k)};
        size_t r = 0;
        while (r < reads.size() && !Same(group.shape, reads[r], read)) ++r;
        if (r == reads.size()) {
          if (reads.size() == Program::kMaxInputs) return false;
          reads.push_back(read);
          read_registers.push_back(builder.Input(read.type));
        }
        regs.push_back(read_registers[r]);
      }
      for (const Constant& c : p.constants()) {
        const auto key = std::make_tuple(c.type, c.re, c.im, c.bits);
        auto found = constants.find(key);
        if (found == constants.end()) found = constants.emplace(key, builder.Const(c)).first;
        regs.push_back(found->second);
      }
      instructions += p.instrs().size();
      regs = builder.Inline(p, std::move(regs));
      const std::vector<bool> rounded = Rounded(p);
      for (int o = 0; o < p.num_outputs(); ++o) {
        const int r = p.outputs()[o];
        const FusedValue value{command.out[o].buffer, RangeOfOutput(command, o), regs[r], rounded[r]};
        FusedValue* const old = Find(written, value.buffer, value.range);
        if (old == nullptr) {
          written.push_back(value);
        } else if (old->range.begin == value.range.begin && old->range.end == value.range.end) {
          *old = value;
        } else {
          return false;
        }
      }
    }
    // A value that is written over must have been read element by element.
    for (const Read& read : reads) {
      const FusedValue* value = Find(written, read.place.buffer, read.range);
      if (value == nullptr) continue;
      if (read.place.offset != value->range.begin || !IsDense(group.shape, read.strides) ||
          SizeOf(read.type) != SizeOf(value->reg.type)) {
        return false;
      }
    }
    out->clear();
    for (const FusedValue& value : written) {
      if (!IsReadOutside(value.buffer, group)) continue;
      if (out->size() == Program::kMaxOutputs) return false;
      builder.Output(value.reg);
      out->push_back({value.buffer, value.range.begin});
    }
    if (out->empty() || reads.size() + constants.size() + instructions > Program::kMaxRegisters) return false;
    if (!make) return true;
    desc->program = builder.Build();
    if (desc->program == nullptr) return false;
    desc->shape = group.shape;
    in->clear();
    for (size_t r = 0; r < reads.size(); ++r) {
      desc->in_strides[r] = reads[r].strides;
      in->push_back(reads[r].place);
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
    if (group.members.size() > 1 && Build(group, true, &desc, &command.in, &command.out) &&
        Check(desc, &command.footprint).ok()) {
      command.desc = desc;
      command.origin = list_.commands[group.members[0]].origin;
      commands->push_back(std::move(command));
      return;
    }
    for (int member : group.members) commands->push_back(std::move(list_.commands[member]));
  }

  const Capabilities& can_;
  List& list_;
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

void FuseElementwise(const Capabilities& can, List* list) { Fuser(can, list).Run(); }

}  // namespace xpu::commands

// Makes one large product of several small ones by stacking their matrices. These are products that a loop makes in
// each iteration with the same weights, and products whose sum is the weights' gradient.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "tensorflow_plugin/commands/dependencies.h"
#include "tensorflow_plugin/commands/key.h"
#include "tensorflow_plugin/commands/passes.h"
#include "tensorflow_plugin/commands/strided_view.h"
#include "tensorflow_plugin/primitives/check.h"

namespace xpu::commands {
namespace {

// A product of so many rows fills the machine by itself.
constexpr int64_t kManyRows = 512;
// The stacked operands live until all of them have been used.
constexpr int64_t kMaxStackBytes = 32 << 20;

bool IsDense(const MatMulDesc& d) {
  const int64_t a_columns = d.transpose_a ? d.m : d.k, b_columns = d.transpose_b ? d.k : d.n;
  return d.batch.empty() && (d.lda == 0 || d.lda == a_columns) && (d.ldb == 0 || d.ldb == b_columns) &&
         (d.ldc == 0 || d.ldc == d.n) && d.c_batch_strides.empty() && !HasEpilogue(d);
}

// The sum over the first axis of a matrix as it is.
bool IsColumnSum(const ReduceDesc& d) {
  const Program& p = *d.source.program;
  return d.kind == ReduceKind::kSum && d.axes == 1 && d.source.shape.rank() == 2 && p.instrs().empty() &&
         p.num_inputs() == 1 && d.source.in_strides[0] == DenseStrides(d.source.shape);
}

bool IsExactEnough(DType type) { return type == DType::kFloat || type == DType::kDouble; }

// Each value of the program is read once, and all of them are added.
bool IsSum(const Program& p) {
  if (!p.constants().empty() || p.num_outputs() != 1 || p.instrs().empty()) return false;
  std::vector<int> reads(p.num_registers(), 0);
  for (const Instr& instr : p.instrs()) {
    if (instr.op != Opcode::kAdd) return false;
    ++reads[instr.a];
    ++reads[instr.b];
  }
  ++reads[p.outputs()[0]];
  return IsExactEnough(p.type(0)) && std::all_of(reads.begin(), reads.end(), [](int n) { return n == 1; });
}

class MatMulBatcher {
 public:
  MatMulBatcher(const Capabilities& can, CommandList* list) : can_(can), list_(*list) { FindDependencies(); }

  // Makes one product of a1 b, a2 b ...; their results are its parts. False if there are none.
  bool StackRows() {
    std::map<std::string, std::vector<int>> groups;
    for (int i = 0; i < size(); ++i) {
      const auto* d = std::get_if<MatMulDesc>(&list_.commands[i].desc);
      if (d == nullptr || !IsDense(*d) || d->transpose_a || d->m > kManyRows || !IsOwn(i)) continue;
      const BufferSlice& b = list_.commands[i].in[1];
      std::string key = StackingKey(*d);
      Append(b.buffer, &key);
      Append(b.offset, &key);
      const std::vector<int>& writers = uses_.buffers[b.buffer].writers;
      Append(std::lower_bound(writers.begin(), writers.end(), i) - writers.begin(), &key);
      groups[key].push_back(i);
    }
    for (const auto& [key, members] : groups) {
      if (members.size() < 2 || !tried_.insert(key).second) continue;
      const std::vector<int> independent = Independent(members);
      if (independent.size() > 1 && StackRows(independent)) return true;
    }
    return false;
  }

  // Makes one product of a1' b1 + a2' b2 ..., and one sum of several sums over rows that are added. False if there are
  // none. The largest comes first, which includes what the others stack.
  bool StackSums() {
    std::pair<bool, size_t> best;  // those whose order is given come before those that can be stacked in any
    Sum largest;
    for (int i = 0; i < size(); ++i) {
      if (!IsAddition(i) || IsPartOfSum(i) || tried_.count(std::to_string(OutputOf(i).buffer)) != 0) continue;
      Sum sum = SumOf(i);
      std::pair<bool, size_t> found;
      for (const std::vector<int>& members : sum.groups) {
        if (members.size() > 1) found = std::max(found, std::make_pair(OrderOf(members) >= 0, members.size()));
      }
      if (found <= best) continue;
      best = found;
      largest = std::move(sum);
    }
    if (best.second == 0) return false;
    tried_.insert(std::to_string(OutputOf(largest.additions[0]).buffer));
    (void)StackSum(largest);  // whether or not it could be: it has been tried, and the next one is looked for
    return true;
  }

 private:
  int size() const { return static_cast<int>(list_.commands.size()); }
  const BufferSlice& OutputOf(int i) const { return list_.commands[i].out[0]; }

  void FindDependencies() {
    uses_ = UsesOf(list_);
    before_ = Dependencies(list_);
  }

  // A key that is the same for all products that can be stacked. It leaves out the addresses of their matrices.
  static std::string StackingKey(const MatMulDesc& d) {
    std::string key("MatMul");
    for (DType type : {d.type, TypeOfB(d), TypeOfC(d)}) Append(static_cast<int64_t>(type), &key);
    for (int64_t extent : {d.m, d.n, d.k}) Append(extent, &key);
    for (bool flag : {d.transpose_a, d.transpose_b, d.conjugate_a, d.conjugate_b}) Append(flag ? 1 : 0, &key);
    return key;
  }

  // True if a command's only output fills a buffer of the list's own that no other command writes.
  bool IsOwn(int i) const {
    const Command& command = list_.commands[i];
    if (command.workspace.buffer != BufferSlice::kNowhere || command.out.size() != 1 ||
        command.footprint.num_out != 1) {
      return false;
    }
    if (!WritesWhole(list_, command, 0)) return false;
    const BufferUses::OfBuffer& use = uses_.buffers[command.out[0].buffer];
    return !use.kept && use.writers.size() == 1;
  }

  // The longest run, from the first on, in which none depends on another.
  std::vector<int> Independent(const std::vector<int>& members) const {
    std::vector<int> found;
    std::vector<bool> hangs(list_.commands.size(), false), is_member(list_.commands.size(), false);
    for (int i : members) is_member[i] = true;
    for (int i = members[0]; i <= members.back(); ++i) {
      for (int b : before_[i]) hangs[i] = hangs[i] || hangs[b];
      if (!is_member[i] || hangs[i]) continue;
      found.push_back(i);
      hangs[i] = true;
    }
    return found;
  }

  int NewBuffer(int64_t bytes) {
    list_.buffers.push_back({Buffer::Kind::kComputed, bytes, nullptr});
    return static_cast<int>(list_.buffers.size()) - 1;
  }

  // Input k of each of these commands, one behind the other: where they are, or copies.
  std::optional<BufferSlice> Stack(const std::vector<int>& members, int k, int64_t bytes, size_t element_size,
                                   std::vector<Command>* commands) {
    const BufferSlice first = list_.commands[members[0]].in[k];
    bool stacked = true;
    for (size_t t = 0; t < members.size(); ++t) {
      const BufferSlice& place = list_.commands[members[t]].in[k];
      stacked =
          stacked && place.buffer == first.buffer && place.offset == first.offset + bytes * static_cast<int64_t>(t);
    }
    if (stacked) return first;
    const CopyStridedDesc copy = DenseCopy(bytes, element_size);
    const int buffer = NewBuffer(bytes * static_cast<int64_t>(members.size()));
    for (size_t t = 0; t < members.size(); ++t) {
      const Command& member = list_.commands[members[t]];
      const BufferSlice part{buffer, bytes * static_cast<int64_t>(t)};
      if (!Make(copy, {member.in[k]}, part, member.origin, commands)) return std::nullopt;
    }
    return BufferSlice{buffer, 0};
  }

  // The command that `desc` is; false if the device does not run it, or needs more memory for it.
  template <typename Desc>
  bool Make(const Desc& desc, std::vector<BufferSlice> in, BufferSlice out, int origin,
            std::vector<Command>* commands) const {
    Command command;
    if (!Check(desc, &command.footprint).ok() || !can_.Supports(desc) || can_.WorkspaceBytes(desc) != 0) return false;
    command.desc = desc;
    command.in = std::move(in);
    command.out = {out};
    command.origin = origin;
    commands->push_back(std::move(command));
    return true;
  }

  bool StackRows(std::vector<int> members) {
    MatMulDesc desc = std::get<MatMulDesc>(list_.commands[members[0]].desc);
    const int64_t size = static_cast<int64_t>(SizeOf(desc.type));
    const int64_t of_a = desc.m * desc.k * size;
    const int64_t of_c = desc.m * desc.n * static_cast<int64_t>(SizeOf(TypeOfC(desc)));
    const size_t most = static_cast<size_t>(kMaxStackBytes / std::max<int64_t>({of_a, of_c, 1}));
    if (most < 2) return false;
    SortByPlace(&members);
    if (members.size() > most) members.resize(most);
    std::vector<Command> commands;
    const std::optional<BufferSlice> a = Stack(members, 0, of_a, SizeOf(desc.type), &commands);
    if (!a) return false;
    const Command& first = list_.commands[members[0]];
    desc.m *= static_cast<int64_t>(members.size());
    desc.lda = desc.ldc = 0;
    const BufferSlice c{NewBuffer(of_c * static_cast<int64_t>(members.size())), 0};
    if (!Make(desc, {*a, first.in[1]}, c, first.origin, &commands)) return false;
    for (size_t t = 0; t < members.size(); ++t) {
      const int part = OutputOf(members[t]).buffer;
      for (int reader : uses_.buffers[part].readers) {
        for (BufferSlice& place : list_.commands[reader].in) {
          if (place.buffer == part) place = {c.buffer, of_c * static_cast<int64_t>(t) + place.offset};
        }
      }
    }
    Replace(members, std::move(commands));
    return true;
  }

  // The input of which there is one buffer for all, and so an order; -1: none.
  int OrderOf(const std::vector<int>& members) const {
    const Command& first = list_.commands[members[0]];
    for (int k = 0; k < static_cast<int>(first.in.size()); ++k) {
      if (std::all_of(members.begin(), members.end(),
                      [&](int i) { return list_.commands[i].in[k].buffer == first.in[k].buffer; })) {
        return k;
      }
    }
    return -1;
  }

  // As they lie in memory, if they do, or as they come.
  void SortByPlace(std::vector<int>* members) const {
    std::sort(members->begin(), members->end());
    const int k = OrderOf(*members);
    if (k < 0) return;
    std::stable_sort(members->begin(), members->end(),
                     [&](int x, int y) { return list_.commands[x].in[k].offset < list_.commands[y].in[k].offset; });
  }

  bool IsAddition(int i) const {
    const auto* d = std::get_if<ElementwiseDesc>(&list_.commands[i].desc);
    if (d == nullptr || !IsSum(*d->program) || !WritesAll(list_.commands[i], 0)) return false;
    for (int k = 0; k < d->program->num_inputs(); ++k) {
      if (d->in_strides[k] != DenseStrides(d->shape)) return false;
    }
    return true;
  }

  // True if one addition alone reads all that a command writes, and reads it once.
  bool IsPartOfSum(int i) const {
    if (!IsOwn(i)) return false;
    const BufferUses::OfBuffer& use = uses_.buffers[OutputOf(i).buffer];
    if (use.readers.size() != 1 || !IsAddition(use.readers[0])) return false;
    const Command& reader = list_.commands[use.readers[0]];
    return reader.footprint.out[0].end == list_.commands[i].footprint.out[0].end &&
           std::count_if(reader.in.begin(), reader.in.end(),
                         [&](const BufferSlice& p) { return p.buffer == OutputOf(i).buffer; }) == 1;
  }

  // The terms of a sum: an addition, and the additions that it alone reads.
  struct Sum {
    std::vector<int> additions;            // the last one first
    std::vector<std::vector<int>> groups;  // commands whose results are added, and which can be stacked
    std::vector<BufferSlice> other_terms;  // what else is added
  };

  void FindTerms(int i, std::vector<BufferSlice>* terms, std::vector<int>* additions) const {
    additions->push_back(i);
    for (const BufferSlice& place : list_.commands[i].in) {
      const std::vector<int>& writers = uses_.buffers[place.buffer].writers;
      if (writers.size() == 1 && writers[0] < i && IsAddition(writers[0]) && IsPartOfSum(writers[0])) {
        FindTerms(writers[0], terms, additions);
      } else {
        terms->push_back(place);
      }
    }
  }

  // Those whose first matrices lie in one buffer already are stacked for themselves.
  Sum SumOf(int addition) const {
    Sum sum;
    std::vector<BufferSlice> terms;
    FindTerms(addition, &terms, &sum.additions);
    std::map<std::string, std::map<int, std::vector<int>>> groups;
    for (const BufferSlice& term : terms) {
      const std::vector<int>& writers = uses_.buffers[term.buffer].writers;
      const std::string key = writers.size() == 1 ? KeyOfTerm(writers[0]) : "";
      if (key.empty()) {
        sum.other_terms.push_back(term);
      } else {
        groups[key][list_.commands[writers[0]].in[0].buffer].push_back(writers[0]);
      }
    }
    for (auto& [key, by_buffer] : groups) {
      std::vector<int> singles;
      for (auto& [buffer, members] : by_buffer) {
        if (members.size() == 1) {
          singles.push_back(members[0]);
        } else {
          SortByPlace(&members);
          sum.groups.push_back(std::move(members));
        }
      }
      if (singles.empty()) continue;
      SortByPlace(&singles);
      sum.groups.push_back(std::move(singles));
    }
    return sum;
  }

  // The key that a term shares with those it can be stacked with; no value if it cannot be stacked.
  std::string KeyOfTerm(int i) const {
    std::string key;
    if (!IsPartOfSum(i)) return key;
    if (const auto* d = std::get_if<MatMulDesc>(&list_.commands[i].desc)) {
      if (IsDense(*d) && d->transpose_a && !d->transpose_b && d->k <= kManyRows && IsExactEnough(d->type)) {
        key = StackingKey(*d);
      }
    } else if (const auto* r = std::get_if<ReduceDesc>(&list_.commands[i].desc)) {
      if (IsColumnSum(*r) && r->source.shape[0] <= kManyRows && IsExactEnough(r->source.program->inputs()[0])) {
        key = "Reduce";
        Append(static_cast<int64_t>(r->source.program->inputs()[0]), &key);
        Append(r->source.shape, &key);
      }
    }
    return key;
  }

  bool StackSum(const Sum& sum) {
    std::vector<int> gone = sum.additions;
    std::vector<BufferSlice> terms = sum.other_terms;
    std::vector<Command> commands;
    for (const std::vector<int>& members : sum.groups) {
      const std::optional<BufferSlice> stacked = members.size() > 1 ? StackTerms(members, &commands) : std::nullopt;
      if (stacked) {
        terms.push_back(*stacked);
        gone.insert(gone.end(), members.begin(), members.end());
      } else {
        for (int i : members) terms.push_back(OutputOf(i));
      }
    }
    if (commands.empty() || !Add(sum.additions[0], terms, &commands)) return false;
    Replace(gone, std::move(commands));
    return true;
  }

  // Where the sum of these products, or sums over rows, is.
  std::optional<BufferSlice> StackTerms(const std::vector<int>& members, std::vector<Command>* commands) {
    const Command first = list_.commands[members[0]];
    const int64_t count = static_cast<int64_t>(members.size());
    std::vector<BufferSlice> in;
    for (int k = 0; k < first.footprint.num_in; ++k) {
      const Operand& operand = first.footprint.in[k];
      if (operand.end * count > kMaxStackBytes) return std::nullopt;
      const std::optional<BufferSlice> place =
          Stack(members, k, operand.end, static_cast<size_t>(operand.element_size), commands);
      if (!place) return std::nullopt;
      in.push_back(*place);
    }
    const BufferSlice out{NewBuffer(first.footprint.out[0].end), 0};
    if (const auto* d = std::get_if<MatMulDesc>(&first.desc)) {
      MatMulDesc desc = *d;
      desc.k *= count;
      if (!Make(desc, std::move(in), out, first.origin, commands)) return std::nullopt;
    } else {
      ReduceDesc desc = std::get<ReduceDesc>(first.desc);
      desc.source.shape[0] *= count;
      if (!Make(desc, std::move(in), out, first.origin, commands)) return std::nullopt;
    }
    return out;
  }

  // Adds up `terms` to where `root` writes.
  bool Add(int root, const std::vector<BufferSlice>& terms, std::vector<Command>* commands) {
    const Command& last = list_.commands[root];
    const auto& of_root = std::get<ElementwiseDesc>(last.desc);
    const DType type = of_root.program->type(0);
    if (terms.size() == 1) {
      return Make(DenseCopy(last.footprint.out[0].end, SizeOf(type)), terms, last.out[0], last.origin, commands);
    }
    BufferSlice sum = terms[0];
    for (size_t t = 1; t < terms.size(); ++t) {
      const BufferSlice out =
          t + 1 == terms.size() ? last.out[0] : BufferSlice{NewBuffer(last.footprint.out[0].end), 0};
      ProgramBuilder builder;
      const ProgramBuilder::Reg a = builder.Input(type), b = builder.Input(type);
      builder.Output(builder.Apply(Opcode::kAdd, a, b));
      ElementwiseDesc desc;
      desc.program = builder.Build();
      desc.shape = of_root.shape;
      desc.in_strides[0] = desc.in_strides[1] = DenseStrides(desc.shape);
      if (desc.program == nullptr || !Make(desc, {sum, terms[t]}, out, last.origin, commands)) return false;
      sum = out;
    }
    return true;
  }

  // `commands` take the place of `members`, after everything that those depend on.
  void Replace(const std::vector<int>& members, std::vector<Command> commands) {
    std::vector<bool> needed(list_.commands.size(), false), gone(list_.commands.size(), false);
    for (int i : members) needed[i] = gone[i] = true;
    for (int i = size() - 1; i >= 0; --i) {
      if (!needed[i]) continue;
      for (int b : before_[i]) needed[b] = true;
    }
    std::vector<Command> all;
    all.reserve(list_.commands.size() + commands.size());
    for (int i = 0; i < size(); ++i) {
      if (needed[i] && !gone[i]) all.push_back(std::move(list_.commands[i]));
    }
    for (Command& command : commands) all.push_back(std::move(command));
    for (int i = 0; i < size(); ++i) {
      if (!needed[i]) all.push_back(std::move(list_.commands[i]));
    }
    list_.commands = std::move(all);
    // Operands are written to their place in the stack where they can be, and the next pass finds them there.
    PropagateCopiesBackward(can_, Through::kDenseOnly, &list_);
    FindDependencies();
  }

  const Capabilities& can_;
  CommandList& list_;
  BufferUses uses_;
  std::vector<std::vector<int>> before_;
  std::set<std::string> tried_;
};

}  // namespace

void BatchMatMuls(const Capabilities& can, CommandList* list) {
  MatMulBatcher batcher(can, list);
  while (batcher.StackSums() || batcher.StackRows()) {
  }
}

}  // namespace xpu::commands

// Removes copies that only move elements. The reader of a copy reads the original, or the writer of the original writes
// to the copy's place.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "tensorflow_plugin/commands/dependencies.h"
#include "tensorflow_plugin/commands/passes.h"
#include "tensorflow_plugin/commands/ranges.h"
#include "tensorflow_plugin/commands/strided_view.h"
#include "tensorflow_plugin/primitives/check.h"

namespace xpu::commands {
namespace {

using Pieces = std::vector<std::vector<ViewAxis>>;

// The extents of axes that were divided, all of them in a row.
Dims ExtentsOf(const Pieces& pieces) {
  Dims extents;
  for (const std::vector<ViewAxis>& axis : pieces) {
    for (const ViewAxis& piece : axis) extents.push_back(piece.extent);
  }
  return extents;
}

// The strides of somebody else over those axes.
Dims Divided(const Pieces& pieces, const Dims& strides) {
  Dims divided;
  for (size_t i = 0; i < pieces.size(); ++i) {
    int64_t inner = 1;
    for (const ViewAxis& piece : pieces[i]) inner *= piece.extent;
    for (const ViewAxis& piece : pieces[i]) {
      inner /= piece.extent;
      divided.push_back(strides[static_cast<int>(i)] * inner);
    }
  }
  return divided;
}

Dims StridesOf(const Pieces& pieces) {
  Dims strides;
  for (const std::vector<ViewAxis>& axis : pieces) {
    for (const ViewAxis& piece : axis) strides.push_back(piece.stride);
  }
  return strides;
}

bool IsWhole(const Pieces& pieces) {
  return std::all_of(pieces.begin(), pieces.end(), [](const std::vector<ViewAxis>& axis) { return axis.size() == 1; });
}

// True if each row is dense or repeats one element; only a command that copies reads other rows.
bool HasRows(const Dims& shape, const Dims& strides) {
  for (int i = shape.rank() - 1; i >= 0; --i) {
    if (shape[i] != 1) return strides[i] == 0 || strides[i] == 1;
  }
  return true;
}

// A matrix of a batch: the axes of the batch, rows and columns.
struct MatrixAxes {
  Dims extents, strides;
};
MatrixAxes MatrixOf(const Dims& batch, const Dims& batch_strides, int64_t rows, int64_t columns, int64_t row_stride) {
  MatrixAxes m{batch, batch_strides};
  m.extents.push_back(rows);
  m.extents.push_back(columns);
  m.strides.push_back(row_stride != 0 ? row_stride : columns);
  m.strides.push_back(1);
  return m;
}

// Lets an input or output of a product, which has these strides, be at the place that `pieces` say. False if its matrix
// cannot be there. `transpose` is null where rows must stay rows.
bool PlaceMatrix(const Pieces& pieces, MatMulDesc* desc, Dims MatMulDesc::* batch_strides,
                 int64_t MatMulDesc::* row_stride, bool MatMulDesc::* transpose) {
  const size_t batch = pieces.size() - 2;
  if (pieces[batch].size() != 1 || pieces[batch + 1].size() != 1) return false;
  ViewAxis rows = pieces[batch][0], columns = pieces[batch + 1][0];
  if (columns.extent == 1) columns.stride = 1;
  if (rows.extent == 1) rows.stride = columns.extent * std::max<int64_t>(columns.stride, 1);
  if (columns.stride != 1) {
    if (transpose == nullptr || rows.stride != 1) return false;
    std::swap(rows, columns);
    desc->*transpose = !(desc->*transpose);
  }
  if (rows.stride < columns.extent) return false;
  desc->*row_stride = rows.stride;
  const Pieces of_batch(pieces.begin(), pieces.begin() + batch);
  for (Dims MatMulDesc::* strides :
       {&MatMulDesc::a_batch_strides, &MatMulDesc::b_batch_strides, &MatMulDesc::c_batch_strides}) {
    if (strides == batch_strides) {
      desc->*strides = StridesOf(of_batch);
    } else if (!(desc->*strides).empty()) {  // those of a dense result stay so
      desc->*strides = Divided(of_batch, desc->*strides);
    }
  }
  desc->batch = ExtentsOf(of_batch);
  return true;
}

// Puts `changed` in the place of *desc if the device runs it with the workspace that there is.
template <typename Desc>
bool Accept(const Capabilities& can, const Desc& changed, Desc* desc, Footprint* footprint) {
  Footprint f;
  if (!Check(changed, &f).ok() || !can.Supports(changed)) return false;
  if (can.WorkspaceBytes(changed) > can.WorkspaceBytes(*desc)) return false;
  *desc = changed;
  *footprint = f;
  return true;
}

// One command, as it would be if it read its input `in` through a view.
class Reader {
 public:
  Reader(const Capabilities& can, const StridedView& view, size_t element_size, int64_t start, int in)
      : can_(can), view_(view), element_size_(element_size), start_(start), in_(in) {}

  // Changes the descriptor; *offset is where the input begins, in elements.
  bool Change(Descriptor* desc, Footprint* footprint, int64_t* offset) {
    offset_ = offset;
    if (view_.contiguous()) {
      *offset = view_.offset + start_;
      return true;
    }
    return std::visit([&](auto& d) { return Change(d, footprint); }, *desc);
  }

 private:
  bool Change(ElementwiseDesc& d, Footprint* footprint) {
    ElementwiseDesc changed = d;
    if (!ChangeSource(&changed, true)) return false;
    std::vector<Dims*> strides;
    for (int k = 0; k < d.program->num_inputs(); ++k) strides.push_back(&changed.in_strides[k]);
    MergeDims(&changed.shape, strides.data(), static_cast<int>(strides.size()));
    return Accept(can_, changed, &d, footprint);
  }
  bool Change(ReduceDesc& d, Footprint* footprint) {
    ReduceDesc changed = d;
    return ChangeSource(&changed.source, false) && Accept(can_, changed, &d, footprint);
  }
  bool Change(CopyStridedDesc& d, Footprint* footprint) {
    CopyStridedDesc changed = d;
    Pieces pieces;
    if (d.element_size != element_size_ ||
        !ComposeViews(view_, start_ + d.src_offset, d.shape, d.src_strides, &pieces, offset_))
      return false;
    changed.shape = ExtentsOf(pieces);
    changed.dst_strides = Divided(pieces, d.dst_strides);
    changed.src_strides = StridesOf(pieces);
    changed.src_offset = 0;
    Dims* const strides[] = {&changed.src_strides, &changed.dst_strides};
    MergeDims(&changed.shape, strides, 2);
    return Accept(can_, changed, &d, footprint);
  }
  bool Change(MatMulDesc& d, Footprint* footprint) {
    if (in_ > 1 || SizeOf(in_ == 0 ? d.type : TypeOfB(d)) != element_size_) return false;  // nor what an epilogue reads
    MatMulDesc changed = d;
    const bool a = in_ == 0;
    const bool transposed = a ? d.transpose_a : d.transpose_b;
    const int64_t rows = a ? d.m : d.k, columns = a ? d.k : d.n;
    const MatrixAxes matrix = MatrixOf(d.batch, a ? d.a_batch_strides : d.b_batch_strides, transposed ? columns : rows,
                                       transposed ? rows : columns, a ? d.lda : d.ldb);
    Pieces pieces;
    if (!ComposeViews(view_, start_, matrix.extents, matrix.strides, &pieces, offset_)) return false;
    const bool placed =
        a ? PlaceMatrix(pieces, &changed, &MatMulDesc::a_batch_strides, &MatMulDesc::lda, &MatMulDesc::transpose_a)
          : PlaceMatrix(pieces, &changed, &MatMulDesc::b_batch_strides, &MatMulDesc::ldb, &MatMulDesc::transpose_b);
    return placed && Accept(can_, changed, &d, footprint);
  }
  template <typename Desc>
  bool Change(Desc&, Footprint*) {
    return false;
  }

  bool ChangeSource(ElementwiseDesc* d, bool divide) {
    if (SizeOf(d->program->inputs()[in_]) != element_size_) return false;
    Pieces pieces;
    if (!ComposeViews(view_, start_, d->shape, d->in_strides[in_], &pieces, offset_)) return false;
    if (!divide && !IsWhole(pieces)) return false;
    d->shape = ExtentsOf(pieces);
    for (int k = 0; k < d->program->num_inputs(); ++k) {
      d->in_strides[k] = k == in_ ? StridesOf(pieces) : Divided(pieces, d->in_strides[k]);
    }
    return HasRows(d->shape, d->in_strides[in_]);
  }

  const Capabilities& can_;
  const StridedView& view_;
  const size_t element_size_;
  const int64_t start_;
  const int in_;
  int64_t* offset_ = nullptr;
};

// Sorts numbers, and takes out those that are there twice.
void SortOnce(std::vector<int>* numbers) {
  std::sort(numbers->begin(), numbers->end());
  numbers->erase(std::unique(numbers->begin(), numbers->end()), numbers->end());
}

// Who reads what command i copies reads the original instead, if all who do can. `uses` stay those of the list, but for
// the order of a buffer's readers, which is lost where `mixed`.
void ReadThrough(const Capabilities& can, Through which, const CopyStridedDesc& copy, int i, CommandList* list,
                 BufferUses* uses, std::vector<bool>* mixed) {
  const Command& command = list->commands[i];
  const BufferSlice from = command.in[0], to = command.out[0];
  if (from.buffer == BufferSlice::kNowhere || to.buffer == BufferSlice::kNowhere || to.offset != 0) return;
  BufferUses::OfBuffer& of_copy = uses->buffers[to.buffer];
  BufferUses::OfBuffer& of_original = uses->buffers[from.buffer];
  if ((*mixed)[to.buffer]) SortOnce(&of_copy.readers);
  (*mixed)[to.buffer] = false;
  if (of_copy.kept || of_copy.writers.size() != 1 || of_copy.readers.empty()) return;
  StridedView view;
  if (!ViewOfSource(copy, list->buffers[to.buffer].bytes, &view)) return;
  if (which == Through::kDenseOnly && !view.contiguous()) return;
  for (int64_t stride : view.strides) {
    if (stride < 0) return;
  }
  if (IsWritten(*list, *uses, from.buffer, RangeOfInput(command, 0), i, of_copy.readers.back())) return;
  const int64_t size = static_cast<int64_t>(copy.element_size);
  std::vector<Command> changed;
  for (int reader : of_copy.readers) {
    Command c = list->commands[reader];
    if (c.workspace.buffer == from.buffer) return;
    for (size_t k = 0; k < c.in.size(); ++k) {
      if (c.in[k].buffer != to.buffer) continue;
      int64_t offset = 0;
      if (c.in[k].offset % size != 0) return;
      Reader input(can, view, copy.element_size, c.in[k].offset / size, static_cast<int>(k));
      if (!input.Change(&c.desc, &c.footprint, &offset)) return;
      c.in[k] = {from.buffer, from.offset + offset * size};
    }
    changed.push_back(std::move(c));
  }
  for (size_t r = 0; r < changed.size(); ++r) list->commands[of_copy.readers[r]] = std::move(changed[r]);
  of_original.readers.insert(of_original.readers.end(), of_copy.readers.begin(), of_copy.readers.end());
  (*mixed)[from.buffer] = true;
  of_copy.readers.clear();
}

// A product writes its matrices in rows to where `view` says.
bool WriteRows(const Capabilities& can, const StridedView& view, size_t element_size, Command* c, int64_t* offset) {
  auto* d = std::get_if<MatMulDesc>(&c->desc);
  if (d == nullptr || SizeOf(TypeOfC(*d)) != element_size || !d->c_batch_strides.empty() || d->ldc != 0 ||
      HasEpilogue(*d)) {
    return false;
  }
  Dims dense = DenseStrides(d->batch);
  for (int i = 0; i < dense.rank(); ++i) dense[i] *= d->m * d->n;
  const MatrixAxes matrix = MatrixOf(d->batch, dense, d->m, d->n, 0);
  Pieces pieces;
  MatMulDesc changed = *d;
  return ComposeViews(view, 0, matrix.extents, matrix.strides, &pieces, offset) &&
         PlaceMatrix(pieces, &changed, &MatMulDesc::c_batch_strides, &MatMulDesc::ldc, nullptr) &&
         Accept(can, changed, d, &c->footprint);
}

// True if a command touches nothing in this range of a buffer.
bool KeepsOff(const Command& c, int buffer, const ByteRange& range) {
  if (c.workspace.buffer == buffer) return false;
  for (size_t k = 0; k < c.in.size(); ++k) {
    if (c.in[k].buffer == buffer && range.Overlaps(RangeOfInput(c, k))) return false;
  }
  for (size_t k = 0; k < c.out.size(); ++k) {
    if (c.out[k].buffer == buffer && range.Overlaps(RangeOfOutput(c, k))) return false;
  }
  return true;
}

// Makes copies lie where they are copied to.
class Writer {
 public:
  Writer(const Capabilities& can, CommandList* list)
      : can_(can),
        list_(*list),
        uses_(UsesOf(*list)),
        mixed_(list->buffers.size(), false),
        is_workspace_(list->buffers.size(), false) {
    for (const Command& command : list_.commands) {
      may_fail_.push_back(may_fail_.back() + (command.may_fail() ? 1 : 0));
      if (command.workspace.buffer != BufferSlice::kNowhere) is_workspace_[command.workspace.buffer] = true;
    }
  }

  // Makes the writers of what copy i reads write to its target; false if they cannot. Command i is then nothing.
  bool WriteThrough(const CopyStridedDesc& copy, int i) {
    const BufferSlice from = list_.commands[i].in[0], to = list_.commands[i].out[0];
    if (from.buffer == BufferSlice::kNowhere || to.buffer == BufferSlice::kNowhere || from.offset != 0) return false;
    Tidy(from.buffer);
    if (WritesInput(list_, list_.commands[i]) && MayFail(uses_.buffers[from.buffer].writers, i)) return false;
    StridedView view;
    if (uses_.buffers[from.buffer].kept || !ViewOfTarget(copy, list_.buffers[from.buffer].bytes, &view)) return false;
    return view.contiguous() ? MoveToPlace(copy, view, i) : WriteRowsThrough(copy, view, i);
  }

 private:
  // The commands that touch a buffer, each with its range. Commands may have changed since: they have to be looked at.
  const Ranges& TouchesOf(int buffer) {
    const auto [found, is_new] = touches_.try_emplace(buffer);
    if (is_new) {
      for (int user : uses_.buffers[buffer].writers) AddTouches(user, buffer, &found->second);
      for (int user : uses_.buffers[buffer].readers) AddTouches(user, buffer, &found->second);
    }
    return found->second;
  }
  void AddTouches(int user, int buffer, Ranges* touches) const {
    const Command& c = list_.commands[user];
    for (size_t k = 0; k < c.in.size(); ++k) {
      if (c.in[k].buffer == buffer) touches->Add(RangeOfInput(c, k), user);
    }
    for (size_t k = 0; k < c.out.size(); ++k) {
      if (c.out[k].buffer == buffer) touches->Add(RangeOfOutput(c, k), user);
    }
  }

  // True if none of the commands [first, end) touches this range of a buffer.
  bool KeepOff(int first, int end, int buffer, const ByteRange& range) {
    return !is_workspace_[buffer] && TouchesOf(buffer).EachOverlapping(range, [&](int c) {
      return c < first || c >= end || KeepsOff(list_.commands[c], buffer, range);
    });
  }

  // True if nothing writes to this range of a buffer from command `first` on.
  bool NobodyWrites(int first, int buffer, const ByteRange& range) {
    return !is_workspace_[buffer] && TouchesOf(buffer).EachOverlapping(range, [&](int number) {
      const Command& c = list_.commands[number];
      for (size_t k = 0; number >= first && k < c.out.size(); ++k) {
        if (c.out[k].buffer == buffer && range.Overlaps(RangeOfOutput(c, k))) return false;
      }
      return true;
    });
  }

  // True if a command between the first of `writers` and command i may fail.
  bool MayFail(const std::vector<int>& writers, int i) const {
    return !writers.empty() && writers[0] < i && may_fail_[i] > may_fail_[writers[0] + 1];
  }

  // Puts the users of a buffer in order, and takes out those that are none any more.
  void Tidy(int buffer) {
    if (!mixed_[buffer]) return;
    mixed_[buffer] = false;
    for (std::vector<int>* users : {&uses_.buffers[buffer].writers, &uses_.buffers[buffer].readers}) {
      users->erase(std::remove_if(users->begin(), users->end(), [&](int c) { return gone_.count(c) != 0; }),
                   users->end());
      SortOnce(users);
    }
  }

  // Command i, which copied to buffer `to`, is nothing from now on; these others write and read there instead.
  void Replace(int i, int to, const std::vector<int>& writers, const std::vector<int>& readers) {
    list_.commands[i].in.clear();
    list_.commands[i].out.clear();
    gone_.insert(i);
    BufferUses::OfBuffer& target = uses_.buffers[to];
    target.writers.insert(target.writers.end(), writers.begin(), writers.end());
    target.readers.insert(target.readers.end(), readers.begin(), readers.end());
    mixed_[to] = true;
    const auto known = touches_.find(to);
    if (known == touches_.end()) return;
    for (int user : writers) AddTouches(user, to, &known->second);
    for (int user : readers) AddTouches(user, to, &known->second);
  }

  // The buffer that command i copies as it is to a place in another lies at that place from the beginning; false if it
  // cannot.
  bool MoveToPlace(const CopyStridedDesc& copy, const StridedView& view, int i) {
    const BufferSlice from = list_.commands[i].in[0], target = list_.commands[i].out[0];
    const BufferSlice to{target.buffer, target.offset + view.offset * static_cast<int64_t>(copy.element_size)};
    BufferUses::OfBuffer& source = uses_.buffers[from.buffer];
    const ByteRange range{to.offset, to.offset + list_.buffers[from.buffer].bytes};
    if (to.buffer == from.buffer || is_workspace_[from.buffer] || source.writers.empty() ||
        source.writers.back() >= i || source.readers[0] < source.writers[0]) {
      return false;
    }
    if (!KeepOff(source.writers[0], i, to.buffer, range)) return false;
    if (source.readers.size() > 1 && !NobodyWrites(i + 1, to.buffer, range)) return false;
    const auto move = [&](std::vector<BufferSlice>* places) {
      for (BufferSlice& place : *places) {
        if (place.buffer == from.buffer) place = {to.buffer, to.offset + place.offset};
      }
    };
    for (const std::vector<int>* users : {&source.writers, &source.readers}) {
      for (int user : *users) {
        move(&list_.commands[user].in);
        move(&list_.commands[user].out);
      }
    }
    source.readers.erase(std::find(source.readers.begin(), source.readers.end(), i));
    Replace(i, to.buffer, source.writers, source.readers);
    source = {};
    return true;
  }

  // The product whose result command i alone copies writes in rows to the copy's target. False if it cannot.
  bool WriteRowsThrough(const CopyStridedDesc& copy, const StridedView& view, int i) {
    const BufferSlice from = list_.commands[i].in[0], to = list_.commands[i].out[0];
    BufferUses::OfBuffer& source = uses_.buffers[from.buffer];
    if (source.writers.size() != 1 || source.readers.size() != 1 || source.writers[0] >= i) return false;
    const int maker = source.writers[0];
    for (int64_t stride : view.strides) {
      if (stride <= 0) return false;
    }
    if (!KeepOff(maker, i, to.buffer, RangeOfOutput(list_.commands[i], 0))) return false;
    Command changed = list_.commands[maker];
    int64_t offset = 0;
    if (!WritesWhole(list_, changed, 0) || !WriteRows(can_, view, copy.element_size, &changed, &offset)) return false;
    changed.out[0] = {to.buffer, to.offset + offset * static_cast<int64_t>(copy.element_size)};
    list_.commands[maker] = std::move(changed);
    Replace(i, to.buffer, {maker}, {});
    source = {};
    return true;
  }

  const Capabilities& can_;
  CommandList& list_;
  BufferUses uses_;
  std::vector<bool> mixed_;                  // by buffer: its users are in no order, and some are gone
  std::vector<bool> is_workspace_;           // by buffer
  std::unordered_set<int> gone_;             // commands
  std::unordered_map<int, Ranges> touches_;  // by buffer, where they have been asked for
  std::vector<int> may_fail_ = {0};          // how many commands before this one
};

}  // namespace

void CanonicalizeCopies(const Capabilities& can, CommandList* list) {
  for (Command& command : list->commands) {
    const auto* bytes = std::get_if<CopyBytes>(&command.desc);
    if (bytes == nullptr) continue;
    const CopyStridedDesc copy = DenseCopy(static_cast<int64_t>(bytes->bytes), bytes->bytes % 4 == 0 ? 4 : 1);
    Footprint footprint;
    if (!can.Supports(copy) || can.WorkspaceBytes(copy) != 0 || !Check(copy, &footprint).ok()) continue;
    command.desc = copy;
    command.footprint = footprint;
  }
}

void PropagateCopiesForward(const Capabilities& can, Through which, CommandList* list) {
  BufferUses uses = UsesOf(*list);
  std::vector<bool> mixed(list->buffers.size(), false);
  for (int i = 0; i < static_cast<int>(list->commands.size()); ++i) {
    const auto* copy = std::get_if<CopyStridedDesc>(&list->commands[i].desc);
    if (copy != nullptr) ReadThrough(can, which, *copy, i, list, &uses, &mixed);
  }
}

void PropagateCopiesBackward(const Capabilities& can, Through, CommandList* list) {
  Writer writer(can, list);
  std::vector<bool> gone(list->commands.size(), false);
  for (int i = 0; i < static_cast<int>(list->commands.size()); ++i) {
    const auto* copy = std::get_if<CopyStridedDesc>(&list->commands[i].desc);
    gone[i] = copy != nullptr && writer.WriteThrough(CopyStridedDesc(*copy), i);
  }
  Remove(gone, list);
}

}  // namespace xpu::commands

#include "tensorflow_plugin/commands/hoist.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "tensorflow_plugin/commands/dependencies.h"
#include "tensorflow_plugin/commands/passes.h"

namespace xpu::commands {

std::optional<ConvolutionDesc> AsConvolution(const MatMulDesc& d) {
  if (IsMixed(d) || d.transpose_a || d.transpose_b || d.conjugate_a || d.conjugate_b || HasEpilogue(d)) return {};
  if ((d.lda != 0 && d.lda != d.k) || (d.ldb != 0 && d.ldb != d.n) || (d.ldc != 0 && d.ldc != d.n)) return {};
  // A batch stacks the rows of dense matrices, and all are multiplied with the same one.
  const Dims dense = DenseStrides(d.batch);
  for (int i = 0; i < d.batch.rank(); ++i) {
    if (d.batch[i] == 1) continue;
    if (d.b_batch_strides[i] != 0 || d.a_batch_strides[i] != dense[i] * d.m * d.k) return {};
    if (!d.c_batch_strides.empty() && d.c_batch_strides[i] != dense[i] * d.m * d.n) return {};
  }
  ConvolutionDesc convolution;
  convolution.type = d.type;
  convolution.spatial_rank = 1;
  convolution.batch = d.batch.num_elements() * d.m;
  convolution.in_channels = d.k;
  convolution.out_channels = d.n;
  return convolution;
}

void MakeCondition(Command* command) {
  command->explain = [](const Status& failure, const std::vector<int64_t>&) { return failure; };
  command->is_condition = true;
}

std::vector<bool> Known(const CommandList& list, const std::vector<bool>& invariant, const std::vector<bool>& hoisted) {
  std::vector<bool> known = invariant;
  for (size_t i = 0; i < hoisted.size(); ++i) {
    for (const BufferSlice& place : list.commands[i].out) {
      if (hoisted[i] && place.buffer != BufferSlice::kNowhere) known[place.buffer] = true;
    }
  }
  return known;
}

namespace {

// A kept value may be this many times as large as the values that it is computed of. Weights of 4 bits become floats,
// and Winograd's algorithm makes four numbers of each number of a filter. A few bytes are always there.
constexpr int64_t kMostTimes = 8, kAFew = 4096;

bool IsMuchLarger(int64_t result, int64_t sources) { return result > kMostTimes * sources + kAFew; }

int64_t BytesOf(const Operand& operand) { return operand.end - operand.begin; }

bool CanBeHoisted(const Command& command) {
  return !std::holds_alternative<CopyToHost>(command.desc) && !std::holds_alternative<CopyFromHost>(command.desc);
}

// The input that is a filter which could be packed.
std::optional<size_t> UnpackedFilter(const Command& command) {
  const auto* desc = std::get_if<ConvolutionDesc>(&command.desc);
  if (desc == nullptr || desc->packed_filter_bytes > 0 || desc->direction == Direction::kFilterGradient ||
      desc->direction == Direction::kPackFilter) {
    return std::nullopt;
  }
  const size_t filter = FilterInput(*desc);
  return command.in[filter].buffer == BufferSlice::kNowhere ? std::nullopt : std::optional<size_t>(filter);
}

// True if input k is a matrix that the backend prefers packed.
bool IsPackedMatrix(const Capabilities& can, const Command& command, size_t k) {
  const auto* desc = std::get_if<MatMulDesc>(&command.desc);
  if (desc == nullptr || k != 1 || command.in[1].buffer == BufferSlice::kNowhere) return false;
  const std::optional<ConvolutionDesc> convolution = AsConvolution(*desc);
  return convolution && can.Supports(*convolution) && can.PackedFilterBytes(*convolution) > 0;
}

// True if input k is a matrix of bytes that could be transposed. The dot products of bytes read several terms of a sum
// at a time, which lie next to each other then.
bool IsMatrixOfBytes(const Command& command, size_t k) {
  const auto* desc = std::get_if<MatMulDesc>(&command.desc);
  if (desc == nullptr || k != 1 || !IsMixed(*desc) || desc->transpose_b || desc->n <= 1 || desc->k <= 1) return false;
  const Dims& strides = desc->b_batch_strides;
  return std::all_of(strides.begin(), strides.end(), [](int64_t stride) { return stride == 0; }) &&
         command.in[1].buffer != BufferSlice::kNowhere;
}

// For each buffer, the buffers that stay and that `hoisted` commands compute it of, in order.
std::vector<std::vector<int>> SourcesOf(const CommandList& list, const std::vector<bool>& invariant,
                                        const std::vector<bool>& hoisted) {
  std::vector<std::vector<int>> sources(list.buffers.size());
  std::vector<int> merged, both;
  for (size_t i = 0; i < hoisted.size(); ++i) {
    if (!hoisted[i]) continue;
    merged.clear();
    const auto add = [&](const std::vector<int>& more) {
      both.clear();
      std::set_union(merged.begin(), merged.end(), more.begin(), more.end(), std::back_inserter(both));
      merged.swap(both);
    };
    for (const BufferSlice& place : list.commands[i].in) {
      if (place.buffer != BufferSlice::kNowhere) {
        add(invariant[place.buffer] ? std::vector<int>{place.buffer} : sources[place.buffer]);
      }
    }
    for (const BufferSlice& place : list.commands[i].out) {
      if (place.buffer == BufferSlice::kNowhere) continue;
      std::vector<int>& of = sources[place.buffer];
      both.clear();
      std::set_union(merged.begin(), merged.end(), of.begin(), of.end(), std::back_inserter(both));
      of = both;
    }
  }
  return sources;
}

// How many bytes of each buffer that stays the commands read.
std::vector<int64_t> BytesRead(const CommandList& list, const std::vector<bool>& invariant) {
  std::vector<int64_t> bytes(list.buffers.size(), 0);
  for (const Command& command : list.commands) {
    for (size_t k = 0; k < command.in.size(); ++k) {
      const int b = command.in[k].buffer;
      if (b == BufferSlice::kNowhere || !invariant[b] || static_cast<int>(k) >= command.footprint.num_in) continue;
      bytes[b] = std::max(bytes[b], BytesOf(command.footprint.in[k]));
    }
  }
  return bytes;
}

// The results of hoisted commands that other commands read and that are too large to be kept.
std::vector<int> TooLarge(const CommandList& list, const std::vector<bool>& invariant, const std::vector<bool>& hoisted,
                          const std::vector<bool>& known, const std::vector<int64_t>& bytes_read) {
  const std::vector<std::vector<int>> sources = SourcesOf(list, invariant, hoisted);
  std::vector<bool> seen(list.buffers.size(), false);
  std::vector<int> found;
  for (size_t i = 0; i < hoisted.size(); ++i) {
    if (hoisted[i]) continue;
    for (const BufferSlice& place : list.commands[i].in) {
      const int b = place.buffer;
      if (b == BufferSlice::kNowhere || invariant[b] || !known[b] || seen[b]) continue;
      seen[b] = true;
      int64_t of = 0;
      for (int source : sources[b]) of += bytes_read[source];
      if (IsMuchLarger(list.buffers[b].bytes, of)) found.push_back(b);
    }
  }
  return found;
}

}  // namespace

std::vector<bool> InvariantCommands(const CommandList& list, const std::vector<bool>& invariant) {
  const BufferUses uses = UsesOf(list);
  const int count = static_cast<int>(list.commands.size());
  std::vector<bool> hoisted(count);
  for (int i = 0; i < count; ++i) hoisted[i] = CanBeHoisted(list.commands[i]);
  // Every reader and writer of the buffer finds what it would find without hoisting. All commands that write the buffer
  // run once, and have run before anything else reads it.
  const auto is_known = [&](int buffer) {
    const BufferUses::OfBuffer& of = uses.buffers[buffer];
    if (invariant[buffer]) return of.writers.empty();
    if (of.kept || of.writers.empty()) return false;
    if (!std::all_of(of.writers.begin(), of.writers.end(), [&](int w) { return hoisted[w]; })) return false;
    return std::all_of(of.readers.begin(), of.readers.end(),
                       [&](int r) { return hoisted[r] || r > of.writers.back(); });
  };
  std::vector<bool> known(list.buffers.size());
  std::vector<int> open;  // commands that do not run once, whose buffers have not been looked at
  // One that does not takes along the commands that read or write what it writes.
  const auto leave_out = [&](int buffer) {
    known[buffer] = false;
    for (const std::vector<int>* users : {&uses.buffers[buffer].readers, &uses.buffers[buffer].writers}) {
      for (int user : *users) {
        if (!hoisted[user]) continue;
        hoisted[user] = false;
        open.push_back(user);
      }
    }
  };
  for (size_t b = 0; b < known.size(); ++b) known[b] = is_known(static_cast<int>(b));
  for (size_t b = 0; b < known.size(); ++b) {
    if (!known[b]) leave_out(static_cast<int>(b));
  }
  const std::vector<int64_t> bytes_read = BytesRead(list, invariant);
  for (;;) {
    while (!open.empty()) {
      const int i = open.back();
      open.pop_back();
      const auto may_change = [&](const BufferSlice& place) {
        return place.buffer != BufferSlice::kNowhere && known[place.buffer] && !invariant[place.buffer];
      };
      for (const BufferSlice& place : list.commands[i].out) {
        if (may_change(place)) leave_out(place.buffer);
      }
      for (const BufferSlice& place : list.commands[i].in) {
        if (may_change(place) && i <= uses.buffers[place.buffer].writers.back()) leave_out(place.buffer);
      }
    }
    // The sources of a large value are kept instead, unless they are too large, too.
    const std::vector<int> large = TooLarge(list, invariant, hoisted, known, bytes_read);
    if (large.empty()) return hoisted;
    for (int buffer : large) leave_out(buffer);
  }
}

int64_t HoistableBytes(const Capabilities& can, const CommandList& list, const std::vector<bool>& invariant,
                       std::vector<bool>* of) {
  const std::vector<bool> hoisted = InvariantCommands(list, invariant), known = Known(list, invariant, hoisted);
  of->assign(invariant.size(), false);
  int64_t bytes = 0;
  for (size_t i = 0; i < hoisted.size(); ++i) {
    const Command& command = list.commands[i];
    for (size_t k = 0; k < command.in.size(); ++k) {
      const int buffer = command.in[k].buffer;
      if (buffer == BufferSlice::kNowhere || !known[buffer] ||
          !(hoisted[i] || UnpackedFilter(command) == k || IsMatrixOfBytes(command, k) ||
            IsPackedMatrix(can, command, k))) {
        continue;
      }
      (*of)[buffer] = invariant[buffer];
      bytes += BytesOf(command.footprint.in[k]);
    }
  }
  return bytes;
}

namespace {

// The command that packs the filter of a convolution, which reads the result; none if the filter is best as it is.
std::optional<Command> PackFilter(const Capabilities& can, CommandList* list, Command* convolution) {
  auto* desc = std::get_if<ConvolutionDesc>(&convolution->desc);
  desc->packed_filter_bytes = can.PackedFilterBytes(*desc);
  Command layout;
  layout.desc = PackingOf(*desc);
  const auto& its_desc = std::get<ConvolutionDesc>(layout.desc);
  Footprint footprint;  // of the convolution that reads the packed filter
  if (desc->packed_filter_bytes == 0 || !Check(its_desc, &layout.footprint).ok() || !Check(*desc, &footprint).ok() ||
      IsMuchLarger(BytesOf(layout.footprint.out[0]), BytesOf(layout.footprint.in[0])) || !can.Supports(its_desc) ||
      !can.Supports(*desc)) {
    desc->packed_filter_bytes = 0;
    return std::nullopt;
  }
  layout.in = {convolution->in[FilterInput(*desc)]};
  layout.out = {{static_cast<int>(list->buffers.size()), 0}};
  list->buffers.push_back({Buffer::Kind::kComputed, desc->packed_filter_bytes, nullptr});
  convolution->in.push_back(layout.out[0]);
  convolution->footprint = footprint;
  return layout;
}

// The same for a product of rows and a matrix, which becomes a convolution.
std::optional<Command> PackMatrix(const Capabilities& can, CommandList* list, Command* product) {
  Command convolution = *product;
  convolution.desc = *AsConvolution(std::get<MatMulDesc>(product->desc));
  std::optional<Command> layout = PackFilter(can, list, &convolution);
  if (layout) *product = std::move(convolution);
  return layout;
}

// The command that transposes the second matrix of a product, which reads the result; none if the backend cannot.
std::optional<Command> TransposeMatrix(const Capabilities& can, CommandList* list, Command* product) {
  auto turned = std::get<MatMulDesc>(product->desc);
  CopyStridedDesc copy;
  copy.element_size = SizeOf(TypeOfB(turned));
  copy.shape = {turned.n, turned.k};
  copy.src_strides = {1, turned.ldb != 0 ? turned.ldb : turned.n};
  copy.dst_strides = {turned.k, 1};
  turned.transpose_b = true;
  turned.ldb = 0;
  Command transposition;
  Footprint footprint;
  if (!can.Supports(copy) || !can.Supports(turned) || !Check(copy, &transposition.footprint).ok() ||
      !Check(turned, &footprint).ok()) {
    return std::nullopt;
  }
  transposition.desc = copy;
  transposition.in = {product->in[1]};
  transposition.out = {{static_cast<int>(list->buffers.size()), 0}};
  list->buffers.push_back({Buffer::Kind::kComputed, BytesOf(transposition.footprint.out[0]), nullptr});
  product->desc = turned;
  product->in[1] = transposition.out[0];
  product->footprint = footprint;
  return transposition;
}

}  // namespace

void PackOperands(const Capabilities& can, const std::vector<bool>& invariant, CommandList* list) {
  const std::vector<bool> known = Known(*list, invariant, InvariantCommands(*list, invariant));
  std::vector<std::pair<size_t, Command>> inserted;
  for (size_t i = 0; i < list->commands.size(); ++i) {
    Command& command = list->commands[i];
    std::optional<Command> before;
    const std::optional<size_t> filter = UnpackedFilter(command);
    if (filter && known[command.in[*filter].buffer]) {
      before = PackFilter(can, list, &command);
    } else if (command.in.size() > 1 && IsMatrixOfBytes(command, 1) && known[command.in[1].buffer]) {
      before = TransposeMatrix(can, list, &command);
    } else if (command.in.size() > 1 && known[std::max(command.in[1].buffer, 0)] && IsPackedMatrix(can, command, 1)) {
      before = PackMatrix(can, list, &command);
    }
    if (!before) continue;
    before->origin = command.origin;
    inserted.emplace_back(i, *std::move(before));
  }
  InsertBefore(std::move(inserted), list);
  EliminateCommonSubexpressions(list);  // each step of a loop has packed its matrices
}

CommandList SplitInvariants(const std::vector<bool>& invariant, CommandList* list) {
  const std::vector<bool> hoisted = InvariantCommands(*list, invariant);
  CommandList run_once;
  std::vector<Command> run_each_time;
  const std::vector<bool> known = Known(*list, invariant, hoisted);
  std::vector<bool> read(list->buffers.size(), false);  // by the others
  for (size_t i = 0; i < hoisted.size(); ++i) {
    for (const BufferSlice& place : list->commands[i].in) {
      if (!hoisted[i] && place.buffer != BufferSlice::kNowhere) read[place.buffer] = true;
    }
  }
  for (size_t b = 0; b < read.size(); ++b) {
    if (known[b] && !invariant[b] && read[b]) run_once.live_out.push_back(static_cast<int>(b));
  }
  if (run_once.live_out.empty()) return run_once;
  run_once.buffers = list->buffers;
  for (size_t i = 0; i < hoisted.size(); ++i)
    (hoisted[i] ? run_once.commands : run_each_time).push_back(std::move(list->commands[i]));
  list->commands = std::move(run_each_time);
  for (int b : run_once.live_out) list->buffers[b].kind = Buffer::Kind::kInput;
  // Each checks its own indices: the command that checked them for all may not be hoisted.
  for (Command& command : run_once.commands) {
    if (IndicesOf(command).input >= 0 && !command.may_fail()) {
      command.explain = [](const Status& failure, const std::vector<int64_t>&) { return failure; };
    }
  }
  return run_once;
}

}  // namespace xpu::commands

#include "tensorflow_plugin/commands/hoist.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "tensorflow_plugin/commands/dependencies.h"

namespace xpu::commands {
namespace {

// A hoisted value may be this many times as large as its operands. Winograd's algorithm makes four numbers of each
// number of a filter. A few bytes are always there.
constexpr int64_t kMostTimes = 4, kAFew = 4096;

int64_t BytesOf(const Operand& operand) { return operand.end - operand.begin; }

bool CanBeHoisted(const Command& command) {
  if (command.is_awaited() || std::holds_alternative<CopyFromHost>(command.desc)) return false;
  const Footprint& f = command.footprint;
  int64_t in = 0, out = 0;
  for (int i = 0; i < f.num_in; ++i) in += BytesOf(f.in[i]);
  for (int i = 0; i < f.num_out; ++i) out += BytesOf(f.out[i]);
  if (const auto* fill = std::get_if<FillBytes>(&command.desc)) out = static_cast<int64_t>(fill->bytes);
  if (const auto* fill = std::get_if<FillWords>(&command.desc)) out = static_cast<int64_t>(fill->bytes);
  return out <= kMostTimes * in + kAFew;
}

// Which buffers stay, or are there once for all when the commands `hoisted` have run.
std::vector<bool> Known(const List& list, const std::vector<bool>& invariant, const std::vector<bool>& hoisted) {
  std::vector<bool> known = invariant;
  for (size_t i = 0; i < hoisted.size(); ++i) {
    for (const BufferSlice& place : list.commands[i].out) {
      if (hoisted[i] && place.buffer != BufferSlice::kNowhere) known[place.buffer] = true;
    }
  }
  return known;
}

// True if input k is a filter that could be packed.
bool IsFilter(const Command& command, size_t k) {
  const auto* desc = std::get_if<ConvolutionDesc>(&command.desc);
  return desc != nullptr && desc->direction == Direction::kForward && k == 1 && desc->packed_filter_bytes == 0 &&
         command.in[1].buffer != BufferSlice::kNowhere;
}

}  // namespace

std::vector<bool> InvariantCommands(const List& list, const std::vector<bool>& invariant) {
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
  return hoisted;
}

int64_t HoistableBytes(const List& list, const std::vector<bool>& invariant, std::vector<bool>* of) {
  const std::vector<bool> hoisted = InvariantCommands(list, invariant), known = Known(list, invariant, hoisted);
  of->assign(invariant.size(), false);
  int64_t bytes = 0;
  for (size_t i = 0; i < hoisted.size(); ++i) {
    const Command& command = list.commands[i];
    for (size_t k = 0; k < command.in.size(); ++k) {
      const int buffer = command.in[k].buffer;
      if (buffer == BufferSlice::kNowhere || !known[buffer] || !(hoisted[i] || IsFilter(command, k))) continue;
      (*of)[buffer] = invariant[buffer];
      bytes += BytesOf(command.footprint.in[k]);
    }
  }
  return bytes;
}

void PackFilters(const Capabilities& can, const std::vector<bool>& invariant, List* list) {
  const std::vector<bool> known = Known(*list, invariant, InvariantCommands(*list, invariant));
  std::vector<Command> commands;
  commands.reserve(list->commands.size());
  for (Command& command : list->commands) {
    if (command.in.size() > 1 && IsFilter(command, 1) && known[command.in[1].buffer]) {
      auto* desc = std::get_if<ConvolutionDesc>(&command.desc);
      desc->packed_filter_bytes = can.PackedFilterBytes(*desc);
      Command layout;
      layout.desc = PackingOf(*desc);
      layout.in = {command.in[1]};
      layout.origin = command.origin;
      const auto& its_desc = std::get<ConvolutionDesc>(layout.desc);
      if (desc->packed_filter_bytes > 0 && Check(its_desc, &layout.footprint).ok() && CanBeHoisted(layout) &&
          can.Supports(its_desc) && can.Supports(*desc)) {
        const BufferSlice at{static_cast<int>(list->buffers.size()), 0};
        list->buffers.push_back({Buffer::Kind::kComputed, desc->packed_filter_bytes, nullptr});
        layout.out = {at};
        commands.push_back(std::move(layout));
        command.in.push_back(at);
        command.footprint = Footprint();
        if (!Check(*desc, &command.footprint).ok()) std::abort();  // it was valid without
      } else {
        desc->packed_filter_bytes = 0;
      }
    }
    commands.push_back(std::move(command));
  }
  list->commands = std::move(commands);
}

List SplitInvariants(const std::vector<bool>& invariant, List* list) {
  const std::vector<bool> hoisted = InvariantCommands(*list, invariant);
  List taken;
  std::vector<Command> rest;
  const std::vector<bool> known = Known(*list, invariant, hoisted);
  std::vector<bool> read(list->buffers.size(), false);  // by the others
  for (size_t i = 0; i < hoisted.size(); ++i) {
    for (const BufferSlice& place : list->commands[i].in) {
      if (!hoisted[i] && place.buffer != BufferSlice::kNowhere) read[place.buffer] = true;
    }
  }
  for (size_t b = 0; b < read.size(); ++b) {
    if (known[b] && !invariant[b] && read[b]) taken.live_out.push_back(static_cast<int>(b));
  }
  if (taken.live_out.empty()) return taken;
  taken.buffers = list->buffers;
  for (size_t i = 0; i < hoisted.size(); ++i)
    (hoisted[i] ? taken.commands : rest).push_back(std::move(list->commands[i]));
  list->commands = std::move(rest);
  for (int b : taken.live_out) list->buffers[b].kind = Buffer::Kind::kInput;
  return taken;
}

}  // namespace xpu::commands

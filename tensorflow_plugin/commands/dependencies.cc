#include "tensorflow_plugin/commands/dependencies.h"

#include <algorithm>
#include <utility>

#include "tensorflow_plugin/commands/ranges.h"

namespace xpu::commands {

bool IsProduct(const Command& command) {
  return std::visit([](const auto& desc) { return kIsProduct<std::decay_t<decltype(desc)>>; }, command.desc);
}

bool ReadsOutputs(const Command& command) { return std::holds_alternative<ScatterDesc>(command.desc); }

std::vector<bool> KeptBuffers(const CommandList& list) {
  std::vector<bool> kept(list.buffers.size());
  for (size_t b = 0; b < kept.size(); ++b) kept[b] = list.buffers[b].kind != Buffer::Kind::kComputed;
  for (int b : list.live_out) kept[b] = true;
  return kept;
}

BufferUses UsesOf(const CommandList& list) {
  BufferUses uses;
  uses.buffers.resize(list.buffers.size());
  const std::vector<bool> kept = KeptBuffers(list);
  for (size_t b = 0; b < kept.size(); ++b) uses.buffers[b].kept = kept[b];
  const auto add = [](std::vector<int>* commands, int i) {
    if (commands->empty() || commands->back() != i) commands->push_back(i);
  };
  for (size_t i = 0; i < list.commands.size(); ++i) {
    for (const BufferSlice& place : list.commands[i].in) {
      if (place.buffer != BufferSlice::kNowhere) add(&uses.buffers[place.buffer].readers, static_cast<int>(i));
    }
    const bool reads_too = ReadsOutputs(list.commands[i]);
    for (const BufferSlice& place : list.commands[i].out) {
      if (place.buffer == BufferSlice::kNowhere) continue;
      add(&uses.buffers[place.buffer].writers, static_cast<int>(i));
      if (reads_too) add(&uses.buffers[place.buffer].readers, static_cast<int>(i));
    }
  }
  return uses;
}

std::vector<std::vector<int>> Dependencies(const CommandList& list) {
  static constexpr ByteRange kAll{INT64_MIN, INT64_MAX};  // of a workspace
  struct BufferState {
    Ranges writes, reads;  // that nobody has written over since
  };
  std::vector<BufferState> states(list.buffers.size());
  int last_that_may_fail = -1;
  std::vector<int> input_writers_since;  // those that have written inputs since then
  std::vector<std::vector<int>> before(list.commands.size());
  for (size_t i = 0; i < list.commands.size(); ++i) {
    const Command& command = list.commands[i];
    const int number = static_cast<int>(i);
    std::vector<int>& mine = before[i];
    const auto meet = [&mine](const Ranges& accesses, const ByteRange& range) {
      accesses.EachOverlapping(range, [&mine](int command) {
        mine.push_back(command);
        return true;
      });
    };
    const auto each_output = [&command](const auto& function) {
      for (size_t k = 0; k < command.out.size(); ++k) {
        if (command.out[k].buffer != BufferSlice::kNowhere) function(command.out[k].buffer, RangeOfOutput(command, k));
      }
      if (command.workspace.buffer != BufferSlice::kNowhere) function(command.workspace.buffer, kAll);
    };
    for (size_t k = 0; k < command.in.size(); ++k) {
      if (command.in[k].buffer == BufferSlice::kNowhere) continue;
      meet(states[command.in[k].buffer].writes, RangeOfInput(command, k));
    }
    each_output([&](int buffer, const ByteRange& range) {
      meet(states[buffer].writes, range);
      meet(states[buffer].reads, range);
    });
    for (size_t k = 0; k < command.in.size(); ++k) {
      if (command.in[k].buffer == BufferSlice::kNowhere) continue;
      states[command.in[k].buffer].reads.Add(RangeOfInput(command, k), number);
    }
    each_output([&](int buffer, const ByteRange& range) {
      // The command at hand waits for those, so a command that they wait for cannot wait for it.
      states[buffer].writes.EraseWithin(range);
      states[buffer].reads.EraseWithin(range);
      states[buffer].writes.Add(range, number);
    });
    if (command.may_fail() || WritesInput(list, command)) {
      if (last_that_may_fail >= 0) mine.push_back(last_that_may_fail);
      input_writers_since.push_back(number);
    }
    if (command.may_fail()) {
      mine.insert(mine.end(), input_writers_since.begin(), input_writers_since.end());
      last_that_may_fail = number;
      input_writers_since.clear();
    }
    std::sort(mine.begin(), mine.end());
    mine.erase(std::unique(mine.begin(), mine.end()), mine.end());
    mine.erase(std::remove(mine.begin(), mine.end(), number), mine.end());
  }
  return before;
}

Distances::Distances(const CommandList& list) {
  int heavy = 0;
  for (const Command& command : list.commands) {
    heavy_before_.push_back(heavy);
    heavy += IsProduct(command);
  }
}

int OnlyWriter(const CommandList& list, const BufferUses& uses, int buffer, int reader) {
  if (buffer == BufferSlice::kNowhere || list.buffers[buffer].kind != Buffer::Kind::kComputed) return -1;
  const std::vector<int>& writers = uses.buffers[buffer].writers;
  return writers.size() == 1 && writers[0] < reader ? writers[0] : -1;
}

bool IsWritten(const CommandList& list, const BufferUses& uses, int buffer, const ByteRange& range, int after,
               int until) {
  if (buffer == BufferSlice::kNowhere) return false;
  const std::vector<int>& writers = uses.buffers[buffer].writers;
  for (auto writer = std::upper_bound(writers.begin(), writers.end(), after);
       writer != writers.end() && *writer <= until; ++writer) {
    const Command& command = list.commands[*writer];
    for (size_t k = 0; k < command.out.size(); ++k) {
      if (command.out[k].buffer == buffer && RangeOfOutput(command, k).Overlaps(range)) return true;
    }
  }
  return false;
}

void Remove(const std::vector<bool>& gone, CommandList* list) {
  size_t kept = 0;
  for (size_t i = 0; i < gone.size(); ++i) {
    if (gone[i]) continue;
    if (kept != i) list->commands[kept] = std::move(list->commands[i]);
    ++kept;
  }
  list->commands.resize(kept);
}

void InsertBefore(std::vector<std::pair<size_t, Command>> inserted, CommandList* list) {
  if (inserted.empty()) return;
  std::vector<Command> commands;
  commands.reserve(list->commands.size() + inserted.size());
  auto next = inserted.begin();
  for (size_t i = 0; i <= list->commands.size(); ++i) {
    for (; next != inserted.end() && next->first == i; ++next) commands.push_back(std::move(next->second));
    if (i < list->commands.size()) commands.push_back(std::move(list->commands[i]));
  }
  list->commands = std::move(commands);
}

bool WritesAll(const Command& command, int i) {
  const Operand& operand = command.footprint.out[i];
  return command.out[i].buffer != BufferSlice::kNowhere && operand.begin == 0 && operand.dense();
}

bool WritesWhole(const CommandList& list, const Command& command, int i) {
  const BufferSlice& place = command.out[i];
  return WritesAll(command, i) && place.offset == 0 && command.footprint.out[i].end == list.buffers[place.buffer].bytes;
}

}  // namespace xpu::commands

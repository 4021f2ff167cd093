#include "tensorflow_plugin/commands/uses.h"

#include <algorithm>

namespace xpu::commands {

Uses UsesOf(const List& list) {
  Uses uses;
  uses.buffers.resize(list.buffers.size());
  for (size_t b = 0; b < list.buffers.size(); ++b)
    uses.buffers[b].kept = list.buffers[b].kind != Buffer::Kind::kComputed;
  for (int b : list.wanted) uses.buffers[b].kept = true;
  const auto add = [](std::vector<int>* commands, int i) {
    if (commands->empty() || commands->back() != i) commands->push_back(i);
  };
  for (size_t i = 0; i < list.commands.size(); ++i) {
    for (const Place& place : list.commands[i].in) {
      if (place.buffer != Place::kNowhere) add(&uses.buffers[place.buffer].readers, static_cast<int>(i));
    }
    for (const Place& place : list.commands[i].out) {
      if (place.buffer != Place::kNowhere) add(&uses.buffers[place.buffer].writers, static_cast<int>(i));
    }
  }
  // A scatter reads what it writes into.
  for (size_t i = 0; i < list.commands.size(); ++i) {
    if (!std::holds_alternative<ScatterDesc>(list.commands[i].desc)) continue;
    for (const Place& place : list.commands[i].out) {
      if (place.buffer == Place::kNowhere) continue;
      std::vector<int>& readers = uses.buffers[place.buffer].readers;
      readers.insert(std::lower_bound(readers.begin(), readers.end(), static_cast<int>(i)), static_cast<int>(i));
    }
  }
  return uses;
}

std::vector<std::vector<int>> Dependencies(const List& list) {
  struct State {
    int writer = -1;
    std::vector<int> readers;  // since the writer
  };
  std::vector<State> states(list.buffers.size());
  std::vector<std::vector<int>> before(list.commands.size());
  for (size_t i = 0; i < list.commands.size(); ++i) {
    const Command& command = list.commands[i];
    std::vector<int>& mine = before[i];
    for (const Place& place : command.in) {
      if (place.buffer != Place::kNowhere && states[place.buffer].writer >= 0) {
        mine.push_back(states[place.buffer].writer);
      }
    }
    const auto writes = [&](const Place& place) {
      if (place.buffer == Place::kNowhere) return;
      State& state = states[place.buffer];
      if (state.writer >= 0) mine.push_back(state.writer);
      mine.insert(mine.end(), state.readers.begin(), state.readers.end());
    };
    for (const Place& place : command.out) writes(place);
    writes(command.workspace);
    for (const Place& place : command.in) {
      if (place.buffer != Place::kNowhere) states[place.buffer].readers.push_back(static_cast<int>(i));
    }
    const auto wrote = [&](const Place& place) {
      if (place.buffer != Place::kNowhere) states[place.buffer] = {static_cast<int>(i), {}};
    };
    for (const Place& place : command.out) wrote(place);
    wrote(command.workspace);
    std::sort(mine.begin(), mine.end());
    mine.erase(std::unique(mine.begin(), mine.end()), mine.end());
    mine.erase(std::remove(mine.begin(), mine.end(), static_cast<int>(i)), mine.end());
  }
  return before;
}

bool WritesWhole(const List& list, const Command& command, int i) {
  const Place& place = command.out[i];
  const Operand& operand = command.footprint.out[i];
  return place.buffer != Place::kNowhere && place.offset == 0 && operand.begin == 0 && operand.dense() &&
         (operand.end == list.buffers[place.buffer].bytes);
}

}  // namespace xpu::commands

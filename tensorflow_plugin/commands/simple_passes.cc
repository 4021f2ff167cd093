#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow_plugin/commands/dependencies.h"
#include "tensorflow_plugin/commands/key.h"
#include "tensorflow_plugin/commands/memory_plan.h"
#include "tensorflow_plugin/commands/passes.h"

namespace xpu::commands {
namespace {

void AppendProgram(const ElementwiseDesc& desc, std::string* key) {
  Append(reinterpret_cast<intptr_t>(desc.program), key);
  Append(desc.shape, key);
  for (int i = 0; i < desc.program->num_inputs(); ++i) Append(desc.in_strides[i], key);
}

// A key of the function that a command computes, without its inputs. It is empty for commands that this pass leaves
// alone, such as those that may fail.
std::string MeaningOf(const Command& command) {
  constexpr size_t kMostBytes = 1024;  // of constants that are compared
  std::string key;
  if (command.may_fail()) return key;
  Append(static_cast<int64_t>(command.desc.index()), &key);
  if (const auto* desc = std::get_if<ElementwiseDesc>(&command.desc)) {
    AppendProgram(*desc, &key);
  } else if (const auto* desc = std::get_if<ReduceDesc>(&command.desc)) {
    Append(static_cast<int64_t>(desc->kind), &key);
    Append(static_cast<int64_t>(desc->axes), &key);
    Append(static_cast<int64_t>(desc->index_type), &key);
    AppendProgram(desc->source, &key);
  } else if (const auto* desc = std::get_if<CopyConstant>(&command.desc);
             desc != nullptr && desc->bytes->size() <= kMostBytes) {
    Append(desc->bytes->data(), desc->bytes->size(), &key);
  } else {
    key.clear();
  }
  return key;
}

}  // namespace

void EliminateCommonSubexpressions(CommandList* list) {
  const BufferUses uses = UsesOf(*list);
  std::vector<int> stands_for(list->buffers.size());  // which buffer holds the same
  for (size_t b = 0; b < stands_for.size(); ++b) stands_for[b] = static_cast<int>(b);
  std::vector<int64_t> version(list->buffers.size(), 0);  // how often it has been written
  std::map<std::string, size_t> known;
  std::vector<bool> gone(list->commands.size(), false);
  for (size_t c = 0; c < gone.size(); ++c) {
    Command& command = list->commands[c];
    for (BufferSlice& place : command.in) {
      if (place.buffer != BufferSlice::kNowhere) place.buffer = stands_for[place.buffer];
    }
    bool fresh = true;  // its results are its own, and are there for good
    for (size_t i = 0; i < command.out.size(); ++i) {
      const int b = command.out[i].buffer;
      fresh = fresh && b != BufferSlice::kNowhere && uses.buffers[b].writers.size() == 1 &&
              list->buffers[b].kind == Buffer::Kind::kComputed;
    }
    std::string key = fresh ? MeaningOf(command) : "";
    if (!key.empty()) {
      for (const BufferSlice& place : command.out) {
        Append(place.offset, &key);
        Append(list->buffers[place.buffer].bytes, &key);
      }
      for (size_t i = 0; i < command.in.size(); ++i) {
        Append(command.in[i].buffer, &key);
        Append(command.in[i].offset, &key);
        Append(command.in[i].buffer == BufferSlice::kNowhere ? 0 : version[command.in[i].buffer], &key);
      }
      const auto [first, added] = known.emplace(std::move(key), c);
      if (!added) {
        bool live_out = false;
        for (const BufferSlice& place : command.out) live_out = live_out || uses.buffers[place.buffer].kept;
        if (!live_out) {
          const Command& same = list->commands[first->second];
          for (size_t i = 0; i < command.out.size(); ++i) stands_for[command.out[i].buffer] = same.out[i].buffer;
          gone[c] = true;
          continue;
        }
      }
    }
    for (const BufferSlice& place : command.out) {
      if (place.buffer != BufferSlice::kNowhere) ++version[place.buffer];
    }
  }
  Remove(gone, list);
}

void EliminateDeadCode(CommandList* list) {
  const BufferUses uses = UsesOf(*list);
  std::vector<int> readers(list->buffers.size());
  for (size_t b = 0; b < readers.size(); ++b) readers[b] = static_cast<int>(uses.buffers[b].readers.size());
  std::vector<bool> gone(list->commands.size(), true);
  for (size_t i = list->commands.size(); i-- > 0;) {
    const Command& command = list->commands[i];
    if (command.may_fail()) gone[i] = false;  // that it has not failed is wanted
    for (const BufferSlice& place : command.out) {
      if (place.buffer != BufferSlice::kNowhere && (uses.buffers[place.buffer].kept || readers[place.buffer] > 0)) {
        gone[i] = false;
      }
    }
    if (!gone[i]) continue;
    std::set<int> read;
    for (const BufferSlice& place : command.in) {
      if (place.buffer != BufferSlice::kNowhere && read.insert(place.buffer).second) --readers[place.buffer];
    }
  }
  Remove(gone, list);
}

namespace {

// Moves the commands that `comes_first` names, and all that they depend on, before the others. It moves none before the
// command numbered `first`.
template <typename ComesFirst>
void Reorder(size_t first, const ComesFirst& comes_first, CommandList* list) {
  const std::vector<std::vector<int>> before = Dependencies(*list);
  std::vector<bool> early(list->commands.size(), false);
  for (size_t i = early.size(); i-- > first;) {
    early[i] = early[i] || comes_first(list->commands[i]);
    if (!early[i]) continue;
    for (int b : before[i]) early[b] = true;
  }
  std::vector<Command> commands;
  commands.reserve(early.size());
  for (size_t i = 0; i < first; ++i) commands.push_back(std::move(list->commands[i]));
  for (const bool part : {true, false}) {
    for (size_t i = first; i < early.size(); ++i) {
      if (early[i] == part) commands.push_back(std::move(list->commands[i]));
    }
  }
  list->commands = std::move(commands);
}

}  // namespace

void ScheduleCopiesToHost(CommandList* list) {
  Reorder(0, [](const Command& command) { return std::holds_alternative<CopyToHost>(command.desc); }, list);
}

void ScheduleSmallResults(CommandList* list) {
  constexpr int64_t kFewBytes = 1024;
  std::vector<bool> few(list->buffers.size(), false);
  for (int b : list->live_out) few[b] = list->buffers[b].bytes <= kFewBytes;
  size_t first = list->commands.size();
  while (first > 0 && !list->commands[first - 1].is_awaited()) --first;
  CommandList reordered = *list;
  Reorder(
      first,
      [&few](const Command& command) {
        return std::any_of(command.out.begin(), command.out.end(), [&few](const BufferSlice& place) {
          return place.buffer != BufferSlice::kNowhere && few[place.buffer];
        });
      },
      &reordered);
  if (PlanMemory(reordered).bytes <= PlanMemory(*list).bytes) *list = std::move(reordered);
}

}  // namespace xpu::commands

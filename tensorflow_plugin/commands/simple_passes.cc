#include <algorithm>
#include <map>
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

void AppendPacking(ConvolutionDesc desc, std::string* key) {
  for (DType type : {desc.type, desc.filter_type, desc.y_type}) Append(static_cast<int64_t>(type), key);
  Append(static_cast<int64_t>(desc.packed_for), key);
  Append(static_cast<int64_t>(desc.order), key);
  Append(desc.packed_filter_bytes, key);
  desc.ForEachExtent([key](const auto& extent) { Append(extent, key); });
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
  } else if (const auto* desc = std::get_if<ConvolutionDesc>(&command.desc);
             desc != nullptr && desc->direction == Direction::kPackFilter) {
    AppendPacking(*desc, &key);
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
  std::vector<int> readers(list->buffers.size(), 0);
  const std::vector<bool> kept = KeptBuffers(*list);
  // Calls the function for each buffer that a command reads, once.
  const auto each_read = [](const Command& command, const auto& function) {
    for (size_t i = 0; i < command.in.size(); ++i) {
      const int b = command.in[i].buffer;
      const auto is_same = [b](const BufferSlice& place) { return place.buffer == b; };
      if (b != BufferSlice::kNowhere && std::none_of(command.in.begin(), command.in.begin() + i, is_same)) function(b);
    }
  };
  for (const Command& command : list->commands) {
    each_read(command, [&](int b) { ++readers[b]; });
    if (!ReadsOutputs(command)) continue;
    // It stays.
    for (const BufferSlice& place : command.out) {
      if (place.buffer != BufferSlice::kNowhere) ++readers[place.buffer];
    }
  }
  std::vector<bool> gone(list->commands.size(), true);
  for (size_t i = list->commands.size(); i-- > 0;) {
    const Command& command = list->commands[i];
    if (command.may_fail()) gone[i] = false;  // that it has not failed is wanted
    for (const BufferSlice& place : command.out) {
      if (place.buffer != BufferSlice::kNowhere && (kept[place.buffer] || readers[place.buffer] > 0)) gone[i] = false;
    }
    if (gone[i]) each_read(command, [&](int b) { --readers[b]; });
  }
  Remove(gone, list);
}

namespace {

// The order in which the commands that `comes_first` names, and all that they depend on, come before the others. None
// comes before the command numbered `first`. Empty if that is their order already.
template <typename ComesFirst>
std::vector<size_t> OrderOf(size_t first, const ComesFirst& comes_first, const CommandList& list) {
  const std::vector<std::vector<int>> before = Dependencies(list);
  std::vector<bool> early(list.commands.size(), false);
  for (size_t i = early.size(); i-- > first;) {
    early[i] = early[i] || comes_first(list.commands[i]);
    if (!early[i]) continue;
    for (int b : before[i]) early[b] = true;
  }
  std::vector<size_t> order;
  order.reserve(early.size());
  for (size_t i = 0; i < first; ++i) order.push_back(i);
  for (const bool part : {true, false}) {
    for (size_t i = first; i < early.size(); ++i) {
      if (early[i] == part) order.push_back(i);
    }
  }
  if (std::is_sorted(order.begin(), order.end())) order.clear();
  return order;
}

// Moves command order[i] to place i, or back to where it was.
void Reorder(const std::vector<size_t>& order, bool back, CommandList* list) {
  if (order.empty()) return;
  std::vector<Command> commands(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    const size_t from = back ? i : order[i], to = back ? order[i] : i;
    commands[to] = std::move(list->commands[from]);
  }
  list->commands = std::move(commands);
}

}  // namespace

void ScheduleCopiesToHost(CommandList* list) {
  const auto is_copy = [](const Command& command) { return std::holds_alternative<CopyToHost>(command.desc); };
  Reorder(OrderOf(0, is_copy, *list), /*back=*/false, list);
}

void ScheduleSmallResults(CommandList* list) {
  constexpr int64_t kFewBytes = 1024;
  std::vector<bool> few(list->buffers.size(), false);
  for (int b : list->live_out) few[b] = list->buffers[b].bytes <= kFewBytes;
  const auto is_small = [&few](const Command& command) {
    return std::any_of(command.out.begin(), command.out.end(), [&few](const BufferSlice& place) {
      return place.buffer != BufferSlice::kNowhere && few[place.buffer];
    });
  };
  size_t first = list->commands.size();
  while (first > 0 && !list->commands[first - 1].is_awaited()) --first;
  const std::vector<size_t> order = OrderOf(first, is_small, *list);
  if (order.empty()) return;
  const int64_t bytes = PlanMemory(*list).bytes;
  Reorder(order, /*back=*/false, list);
  if (PlanMemory(*list).bytes > bytes) Reorder(order, /*back=*/true, list);
}

}  // namespace xpu::commands

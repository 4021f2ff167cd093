#include <algorithm>
#include <cstring>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow_plugin/commands/dependencies.h"
#include "tensorflow_plugin/commands/key.h"
#include "tensorflow_plugin/commands/passes.h"

namespace xpu::commands {
namespace {

// True if a command fails exactly when one of its indices is out of range.
bool FailsForIndicesAlone(const Command& command) {
  const auto* scatter = std::get_if<ScatterDesc>(&command.desc);
  return SucceedsWithinRange(command) && (scatter == nullptr || !scatter->skip_negative);
}

// Which indices must lie in which extents for that not to happen.
std::string RequiredOf(const Command& command, const std::vector<int64_t>& version) {
  const IndexOperand indices = IndicesOf(command);
  const BufferSlice& place = command.in[indices.input];
  std::string key;
  Append(place.buffer, &key);
  Append(place.offset, &key);
  Append(version[place.buffer], &key);
  Append(static_cast<int64_t>(indices.type), &key);
  Append(command.footprint.in[indices.input].elements, &key);
  Append(DimsOfIndices(command), &key);
  return key;
}

int64_t IntegerAt(const char* bytes, DType type, int64_t i) {
  if (type == DType::kInt32) {
    int32_t value;
    std::memcpy(&value, bytes + i * sizeof(value), sizeof(value));
    return value;
  }
  int64_t value;
  std::memcpy(&value, bytes + i * sizeof(value), sizeof(value));
  return value;
}

// True if the indices are constants within their extents.
bool IsKnownToSucceed(const CommandList& list, const BufferUses& uses, const Command& command) {
  const IndexOperand indices = IndicesOf(command);
  const BufferSlice& place = command.in[indices.input];
  const std::vector<int>& writers = uses.buffers[place.buffer].writers;
  if (writers.size() != 1 || (indices.type != DType::kInt32 && indices.type != DType::kInt64)) return false;
  const Command& writer = list.commands[writers[0]];
  const auto* constant = std::get_if<CopyConstant>(&writer.desc);
  if (constant == nullptr || &writer > &command) return false;
  const Dims& dims = DimsOfIndices(command);
  const int64_t n = command.footprint.in[indices.input].elements;
  const int64_t begin = place.offset - writer.out[0].offset, size = static_cast<int64_t>(SizeOf(indices.type));
  if (begin < 0 || begin + n * size > static_cast<int64_t>(constant->bytes->size()) || dims.rank() == 0) return false;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t index = IntegerAt(constant->bytes->data() + begin, indices.type, i);
    if (index < 0 || index >= dims[static_cast<int>(i % dims.rank())]) return false;
  }
  return true;
}

}  // namespace

void DeduplicateIndexChecks(CommandList* list) {
  std::vector<int64_t> version(list->buffers.size(), 0);  // how often it has been written
  std::set<std::string> met;
  for (Command& command : list->commands) {
    if (command.may_fail() && SucceedsWithinRange(command)) {
      const std::string required = RequiredOf(command, version);
      if (met.count(required) != 0) {
        command.explain = nullptr;
      } else if (FailsForIndicesAlone(command)) {
        met.insert(required);
      }
    }
    for (const BufferSlice& place : command.out) {
      if (place.buffer != BufferSlice::kNowhere) ++version[place.buffer];
    }
  }
}

void ScheduleIndexChecks(const Capabilities& can, CommandList* list) {
  const BufferUses uses = UsesOf(*list);
  for (Command& command : list->commands) {
    if (command.may_fail() && FailsForIndicesAlone(command) && IsKnownToSucceed(*list, uses, command)) {
      command.explain = nullptr;
    }
  }
  std::vector<Command> checks;
  // Copies from the host come first.
  const auto is_no_copy = [](const Command& c) { return !std::holds_alternative<CopyFromHost>(c.desc); };
  const auto first = std::find_if(list->commands.begin(), list->commands.end(), is_no_copy);
  const int num_copies = static_cast<int>(first - list->commands.begin());
  bool at_the_front = true;  // nothing but what may fail stands before
  for (size_t c = num_copies; c < list->commands.size(); ++c) {
    Command& command = list->commands[c];
    at_the_front = at_the_front && command.may_fail();
    if (at_the_front || !command.may_fail() || command.follows_updates || !FailsForIndicesAlone(command)) continue;
    const IndexOperand indices = IndicesOf(command);
    const BufferSlice& place = command.in[indices.input];
    const std::vector<int>& writers = uses.buffers[place.buffer].writers;
    const auto written = std::lower_bound(writers.begin(), writers.end(), num_copies);
    if (written != writers.end() && *written <= static_cast<int>(c)) continue;
    GatherDesc desc;  // of nothing
    desc.element_size = 1;
    desc.index_type = indices.type;
    desc.inner = 0;
    desc.dims = DimsOfIndices(command);
    desc.num_indices = command.footprint.in[indices.input].elements / std::max(1, desc.dims.rank());
    Command check;
    if (!can.Supports(desc) || can.WorkspaceBytes(desc) != 0 || !Check(desc, &check.footprint).ok()) continue;
    check.desc = desc;
    check.in = {BufferSlice(), place};
    check.out = {BufferSlice()};
    check.origin = command.origin;
    check.explain = std::exchange(command.explain, nullptr);
    checks.push_back(std::move(check));
  }
  list->commands.insert(list->commands.begin() + num_copies, std::make_move_iterator(checks.begin()),
                        std::make_move_iterator(checks.end()));
}

}  // namespace xpu::commands

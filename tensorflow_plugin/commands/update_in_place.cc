// Removes copies of buffers that nothing reads after the copy. Examples are the caches of keys and values, in which
// each token replaces a few rows.
#include <algorithm>
#include <climits>
#include <map>
#include <utility>
#include <vector>

#include "tensorflow_plugin/commands/dependencies.h"
#include "tensorflow_plugin/commands/passes.h"

namespace xpu::commands {
namespace {

// The buffer that a command copies from, if it copies each element to the same place of another buffer.
int SourceOfCopy(const Command& command) {
  const auto* copy = std::get_if<CopyStridedDesc>(&command.desc);
  if (copy == nullptr || copy->src_offset != copy->dst_offset || copy->src_strides != copy->dst_strides ||
      command.in[0].buffer == BufferSlice::kNowhere || command.in[0].buffer == command.out[0].buffer ||
      command.in[0].offset != command.out[0].offset) {
    return BufferSlice::kNowhere;
  }
  return command.in[0].buffer;
}

class Updates {
 public:
  explicit Updates(CommandList* list) : list_(*list), uses_(UsesOf(*list)) {
    for (const Command& command : list->commands) sources_.push_back(SourceOfCopy(command));
  }

  // `donated`: inputs of the list that commands may write.
  std::vector<ReplacedInput> Run(const std::vector<int>& donated) {
    std::vector<bool> may_be_written(list_.buffers.size(), false);
    for (size_t b = 0; b < may_be_written.size(); ++b) may_be_written[b] = !uses_.buffers[b].kept;
    for (int b : donated) may_be_written[b] = true;
    std::vector<ReplacedInput> found;
    std::vector<int> becomes(list_.buffers.size());
    for (size_t b = 0; b < becomes.size(); ++b) becomes[b] = static_cast<int>(b);
    std::vector<bool> gone(list_.commands.size(), false);
    for (size_t b = 0; b < list_.buffers.size(); ++b) {
      const int result = static_cast<int>(b);
      if (list_.buffers[b].kind != Buffer::Kind::kComputed) continue;
      for (const auto& [source, copies] : CopiesTo(result)) {
        if (!may_be_written[source] || !FitsInto(source, copies, result)) continue;
        may_be_written[source] = false;  // by another buffer's commands
        becomes[source] = result;
        for (int copy : copies) gone[copy] = true;
        if (list_.buffers[source].kind != Buffer::Kind::kComputed) found.push_back({source, result});
        break;
      }
    }
    const auto last = [&](int buffer) {
      while (becomes[buffer] != buffer) buffer = becomes[buffer];
      return buffer;
    };
    for (Command& command : list_.commands) {
      for (auto* places : {&command.in, &command.out}) {
        for (BufferSlice& place : *places) {
          if (place.buffer != BufferSlice::kNowhere) place.buffer = last(place.buffer);
        }
      }
    }
    for (ReplacedInput& replaced : found) {
      replaced.replacement = last(replaced.replacement);
      list_.buffers[replaced.replacement].kind = Buffer::Kind::kInput;
    }
    Remove(gone, &list_);
    return found;
  }

 private:
  std::map<int, std::vector<int>> CopiesTo(int result) const {
    std::map<int, std::vector<int>> copies;
    for (int writer : uses_.buffers[result].writers) {
      if (sources_[writer] != BufferSlice::kNowhere) copies[sources_[writer]].push_back(writer);
    }
    return copies;
  }

  bool FitsInto(int source, const std::vector<int>& copies, int result) const {
    const Buffer &from = list_.buffers[source], &to = list_.buffers[result];
    if (from.bytes != to.bytes || from.bytes == 0) return false;
    const BufferUses::OfBuffer &of_source = uses_.buffers[source], &of_result = uses_.buffers[result];
    // The owner of an input sees the elements that commands write into it.
    if (from.kind != Buffer::Kind::kComputed && !of_source.writers.empty()) return false;
    // A copy that nothing changes, or one of a small part, is another pass's work.
    int64_t copied = 0;
    for (int copy : copies) {
      const Operand& operand = list_.commands[copy].footprint.out[0];
      copied += std::min(operand.elements * operand.element_size, operand.end - operand.begin);
    }
    int first_change = INT_MAX;
    for (int writer : of_result.writers) {
      if (sources_[writer] != source) first_change = std::min(first_change, writer);
    }
    if (2 * copied < to.bytes || first_change == INT_MAX) return false;
    const int first_touch =
        std::min(of_result.writers.front(), of_result.readers.empty() ? INT_MAX : of_result.readers.front());
    if (!of_source.writers.empty() && of_source.writers.back() >= first_touch) return false;
    for (int reader : of_source.readers) {
      if (reader >= first_change && !std::binary_search(copies.begin(), copies.end(), reader)) return false;
    }
    // No command has changed the copied bytes before.
    for (int copy : copies) {
      for (int writer : of_result.writers) {
        if (writer >= copy) break;
        if (sources_[writer] != source && Writes(writer, result, RangeOfOutput(list_.commands[copy], 0))) return false;
      }
    }
    return true;
  }

  bool Writes(int writer, int buffer, const ByteRange& range) const {
    const Command& command = list_.commands[writer];
    for (size_t k = 0; k < command.out.size(); ++k) {
      if (command.out[k].buffer == buffer && RangeOfOutput(command, k).Overlaps(range)) return true;
    }
    return command.workspace.buffer == buffer;
  }

  CommandList& list_;
  const BufferUses uses_;
  std::vector<int> sources_;  // by command: see SourceOfCopy
};

}  // namespace

std::vector<ReplacedInput> UpdateInPlace(const std::vector<int>& donated, CommandList* list) {
  const auto is_copy = [](const Command& command) { return std::holds_alternative<CopyStridedDesc>(command.desc); };
  if (std::none_of(list->commands.begin(), list->commands.end(), is_copy)) return {};
  return Updates(list).Run(donated);
}

}  // namespace xpu::commands

// Lets commands write the new value of a variable over the old one, where nothing needs that any more.
#include <algorithm>
#include <vector>

#include "tensorflow_plugin/commands/dependencies.h"
#include "tensorflow_plugin/commands/passes.h"

namespace xpu::commands {
namespace {

// True if a command reads its input k from the very places of its output o, element by element.
bool ReadsWhereItWrites(const Command& command, size_t k, size_t o) {
  const auto* desc = std::get_if<ElementwiseDesc>(&command.desc);
  if (desc == nullptr || command.in[k].offset != command.out[o].offset) return false;
  const Program& program = *desc->program;
  if (SizeOf(program.inputs()[k]) != SizeOf(program.output_type(static_cast<int>(o)))) return false;
  int64_t dense = 1;
  for (int axis = desc->shape.rank() - 1; axis >= 0; --axis) {
    if (desc->shape[axis] != 1 && desc->in_strides[k][axis] != dense) return false;
    dense *= desc->shape[axis];
  }
  return true;
}

bool CanWriteOver(const CommandList& list, const BufferUses& uses, const Assignment& assignment) {
  const Buffer &input = list.buffers[assignment.input], &value = list.buffers[assignment.value];
  if (input.kind != Buffer::Kind::kInput || value.kind != Buffer::Kind::kComputed) return false;
  if (input.bytes != value.bytes || input.bytes == 0) return false;
  const BufferUses::OfBuffer &of_input = uses.buffers[assignment.input], &of_value = uses.buffers[assignment.value];
  if (!of_input.writers.empty() || of_value.writers.empty()) return false;
  const int first = of_value.writers[0];
  if (!of_value.readers.empty() && of_value.readers[0] < first) return false;
  // An assignment is not made if a command fails.
  for (size_t c = first; c < list.commands.size(); ++c) {
    if (list.commands[c].may_fail()) return false;
  }
  const Command& command = list.commands[first];
  for (size_t o = 0; o < command.out.size(); ++o) {
    if (command.out[o].buffer != assignment.value) continue;
    if (!WritesWhole(list, command, static_cast<int>(o))) return false;
    for (size_t k = 0; k < command.in.size(); ++k) {
      if (command.in[k].buffer == assignment.value) return false;
      if (command.in[k].buffer == assignment.input && !ReadsWhereItWrites(command, k, o)) return false;
    }
  }
  return of_input.readers.empty() || of_input.readers.back() <= first;
}

}  // namespace

std::vector<bool> AssignInPlace(const std::vector<Assignment>& assignments, CommandList* list) {
  const BufferUses uses = UsesOf(*list);
  std::vector<bool> done;
  std::vector<int> becomes(list->buffers.size());
  for (size_t b = 0; b < becomes.size(); ++b) becomes[b] = static_cast<int>(b);
  for (const Assignment& assignment : assignments) {
    done.push_back(CanWriteOver(*list, uses, assignment));
    if (done.back()) becomes[assignment.value] = assignment.input;
  }
  for (Command& command : list->commands) {
    for (auto* places : {&command.in, &command.out}) {
      for (BufferSlice& place : *places) {
        if (place.buffer != BufferSlice::kNowhere) place.buffer = becomes[place.buffer];
      }
    }
  }
  std::vector<int>& live_out = list->live_out;
  live_out.erase(std::remove_if(live_out.begin(), live_out.end(), [&](int b) { return becomes[b] != b; }),
                 live_out.end());
  return done;
}

}  // namespace xpu::commands

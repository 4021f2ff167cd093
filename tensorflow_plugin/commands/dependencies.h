// Who writes and who reads the buffers of a list.
#ifndef TENSORFLOW_PLUGIN_COMMANDS_DEPENDENCIES_H_
#define TENSORFLOW_PLUGIN_COMMANDS_DEPENDENCIES_H_

#include <algorithm>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "tensorflow_plugin/primitives/command_list.h"

namespace xpu::commands {

// True if a command of the list is of one of these kinds.
template <typename... Desc>
bool Has(const CommandList& list) {
  return std::any_of(list.commands.begin(), list.commands.end(),
                     [](const Command& command) { return (std::holds_alternative<Desc>(command.desc) || ...); });
}

// Products are matmuls and convolutions: heavy commands, which may have an epilogue.
template <typename Desc>
inline constexpr bool kIsProduct =
    std::is_same_v<Desc, MatMulDesc> || std::is_same_v<Desc, WeightMatMulDesc> || std::is_same_v<Desc, ConvolutionDesc>;
bool IsProduct(const Command& command);

// True if a command reads what it writes into.
bool ReadsOutputs(const Command& command);

// By buffer: true if its contents are not the list's own, or are needed after the list has run.
std::vector<bool> KeptBuffers(const CommandList& list);

struct BufferUses {
  struct OfBuffer {
    std::vector<int> writers, readers;  // commands, in order; one that does both is in both
    bool kept = false;                  // live out, or not the list's own: what is written must be there in the end
  };
  std::vector<OfBuffer> buffers;
};
BufferUses UsesOf(const CommandList& list);

// For every command, those before it that must run before it: they write what it reads, or touch what it writes.
// Commands that may fail keep their order, and so do those that write inputs of the list. The first failure is
// reported; commands before it are done, and commands after it are not.
std::vector<std::vector<int>> Dependencies(const CommandList& list);

// Tells which commands are far apart: several products stand between them. A value that lives from one to the other
// fills memory when it is scarce.
class Distances {
 public:
  explicit Distances(const CommandList& list);
  bool AreFar(int earlier, int later) const { return heavy_before_[later] - heavy_before_[earlier] >= kFar; }

 private:
  static constexpr int kFar = 3;
  std::vector<int> heavy_before_;  // by command
};

// True if any of the commands `after` < i <= `until` writes some of these bytes of a buffer.
bool IsWritten(const CommandList& list, const BufferUses& uses, int buffer, const ByteRange& range, int after,
               int until);

// The command before `reader` that alone writes a buffer of the list's own; -1: there is none. The buffer may be
// BufferSlice::kNowhere.
int OnlyWriter(const CommandList& list, const BufferUses& uses, int buffer, int reader);

// Takes commands out of the list.
void Remove(const std::vector<bool>& gone, CommandList* list);
// Puts each command before the one with that number. The numbers do not descend.
void InsertBefore(std::vector<std::pair<size_t, Command>> inserted, CommandList* list);

// True if a command writes every byte from the begin to the end of its output i, which begins at its place.
bool WritesAll(const Command& command, int i);
// True if that is a whole buffer.
bool WritesWhole(const CommandList& list, const Command& command, int i);

}  // namespace xpu::commands

#endif  // TENSORFLOW_PLUGIN_COMMANDS_DEPENDENCIES_H_

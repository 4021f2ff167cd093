// Who writes and who reads the buffers of a list.
#ifndef TENSORFLOW_PLUGIN_COMMANDS_DEPENDENCIES_H_
#define TENSORFLOW_PLUGIN_COMMANDS_DEPENDENCIES_H_

#include <vector>

#include "tensorflow_plugin/primitives/list.h"

namespace xpu::commands {

struct BufferUses {
  struct OfBuffer {
    std::vector<int> writers, readers;  // commands, in order; one that does both is in both
    bool kept = false;                  // live out, or not the list's own: what is written must be there in the end
  };
  std::vector<OfBuffer> buffers;
};
BufferUses UsesOf(const List& list);

// For every command, those before it that must run before it: they write what it reads, or touch what it writes.
// Those that may fail, and those that write what was there before the list runs, keep their order, too: the first that
// fails is told, with what stands before it done and what stands behind it not.
std::vector<std::vector<int>> Dependencies(const List& list);

// Which commands are far from each other: several products or convolutions are between them, so that a value that lives
// from one to the other fills memory at a time when it is scarce.
class Distances {
 public:
  explicit Distances(const List& list);
  bool AreFar(int earlier, int later) const { return heavy_before_[later] - heavy_before_[earlier] >= kFar; }

 private:
  static constexpr int kFar = 3;
  std::vector<int> heavy_before_;  // by command
};

// Whether any of the commands `after` < i <= `until` writes some of these bytes of a buffer.
bool IsWritten(const List& list, const BufferUses& uses, int buffer, const ByteRange& range, int after, int until);

// Whether a command writes what was there before the list runs: a variable, in its place.
bool WritesGiven(const List& list, const Command& command);

// Takes commands out of the list.
void Remove(const std::vector<bool>& gone, List* list);

// Whether a command writes all that lies between the ends of its output i, which begins at its place.
bool WritesAll(const Command& command, int i);
// Whether that is a whole buffer.
bool WritesWhole(const List& list, const Command& command, int i);

}  // namespace xpu::commands

#endif  // TENSORFLOW_PLUGIN_COMMANDS_DEPENDENCIES_H_

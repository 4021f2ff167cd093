// Who writes and who reads the buffers of a list.
#ifndef TENSORFLOW_PLUGIN_COMMANDS_USES_H_
#define TENSORFLOW_PLUGIN_COMMANDS_USES_H_

#include <vector>

#include "tensorflow_plugin/commands/list.h"

namespace xpu::commands {

struct Uses {
  struct OfBuffer {
    std::vector<int> writers, readers;  // commands, in order; one that does both is in both
    bool kept = false;                  // wanted, or not the list's own: what is written must be there in the end
  };
  std::vector<OfBuffer> buffers;
};
Uses UsesOf(const List& list);

// For every command, those before it that must run before it: they write what it reads, or touch what it writes.
std::vector<std::vector<int>> Dependencies(const List& list);

// Whether a command writes all of the buffer at its output i, and nothing else.
bool WritesWhole(const List& list, const Command& command, int i);

}  // namespace xpu::commands

#endif  // TENSORFLOW_PLUGIN_COMMANDS_USES_H_

// A command cut along the first axis of its values, such as the images of a batch.
#ifndef TENSORFLOW_PLUGIN_COMMANDS_SPLIT_BATCH_H_
#define TENSORFLOW_PLUGIN_COMMANDS_SPLIT_BATCH_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "tensorflow_plugin/primitives/backend.h"
#include "tensorflow_plugin/primitives/command_list.h"

namespace xpu::commands {

struct BatchParts {
  Command first;  // the first part
  // The bytes from an operand of one part to that of the next. 0: all parts read the same, such as weights.
  std::vector<int64_t> in_steps, out_steps;
};

// The command as `parts` equal parts, which compute the same one after the other. None if its kind has no batch, if the
// extents are not multiples of `parts`, or if the device does not support a part.
std::optional<BatchParts> SplitBatch(const Capabilities& can, const Command& command, int64_t parts);

}  // namespace xpu::commands

#endif  // TENSORFLOW_PLUGIN_COMMANDS_SPLIT_BATCH_H_

// What a list computes of values that stay as they are from one run to the next, such as weights that nobody trains:
// it need be computed once.
#ifndef TENSORFLOW_PLUGIN_COMMANDS_HOIST_H_
#define TENSORFLOW_PLUGIN_COMMANDS_HOIST_H_

#include <cstdint>
#include <vector>

#include "tensorflow_plugin/primitives/backend.h"
#include "tensorflow_plugin/primitives/list.h"

namespace xpu::commands {

// `invariant`, by buffer: the same bytes lie there whenever the list runs.

// The commands that hang on nothing else, and need no run of their own: they cannot fail, touch no variable that
// changes, and what they compute is not much larger than what they are given.
std::vector<bool> InvariantCommands(const List& list, const std::vector<bool>& invariant);

// Bytes that might be read once instead of in each run, and of which buffers that stay: before the passes, which may
// find less, but nothing else.
int64_t HoistableBytes(const List& list, const std::vector<bool>& invariant, std::vector<bool>* of);

// Convolutions get the filters that stay, or are computed of what stays, as the backend reads them best.
void PackFilters(const Capabilities& can, const std::vector<bool>& invariant, List* list);

// Takes what is to run once out of the list, to which its results are given from then on. They are live out of
// the list that is returned, of the same buffers: it has no commands if there is nothing to keep.
List SplitInvariants(const std::vector<bool>& invariant, List* list);

}  // namespace xpu::commands

#endif  // TENSORFLOW_PLUGIN_COMMANDS_HOIST_H_

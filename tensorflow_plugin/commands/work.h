// Counts the steps of passes that might be too many in a long list, for tests. A list of ten thousand commands may need
// ten times the steps of a thousand, not a hundred times.
#ifndef TENSORFLOW_PLUGIN_COMMANDS_WORK_H_
#define TENSORFLOW_PLUGIN_COMMANDS_WORK_H_

#include <cstdint>

namespace xpu::commands {

// Those of the thread so far.
inline int64_t& Steps() {
  thread_local int64_t steps = 0;
  return steps;
}

}  // namespace xpu::commands

#endif  // TENSORFLOW_PLUGIN_COMMANDS_WORK_H_

// Where the buffers that a list computes for itself lie in one block of memory: those that are not needed at the same
// time share it.
#ifndef TENSORFLOW_PLUGIN_COMMANDS_MEMORY_PLAN_H_
#define TENSORFLOW_PLUGIN_COMMANDS_MEMORY_PLAN_H_

#include <cstdint>
#include <vector>

#include "tensorflow_plugin/commands/list.h"

namespace xpu::commands {

struct MemoryPlan {
  int64_t bytes = 0;             // of the block
  std::vector<int64_t> offsets;  // by buffer; kElsewhere for those that are given, fixed, wanted or never touched
  static constexpr int64_t kElsewhere = -1;
};

MemoryPlan PlanMemory(const List& list);

}  // namespace xpu::commands

#endif  // TENSORFLOW_PLUGIN_COMMANDS_MEMORY_PLAN_H_

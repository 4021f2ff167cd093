// The places of a list's own buffers in one block of memory. Buffers that are not needed at the same time share memory.
#ifndef TENSORFLOW_PLUGIN_COMMANDS_MEMORY_PLAN_H_
#define TENSORFLOW_PLUGIN_COMMANDS_MEMORY_PLAN_H_

#include "tensorflow_plugin/primitives/command_list.h"

namespace xpu::commands {

MemoryPlan PlanMemory(const CommandList& list);

}  // namespace xpu::commands

#endif  // TENSORFLOW_PLUGIN_COMMANDS_MEMORY_PLAN_H_

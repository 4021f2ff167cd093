// Where the buffers that a list computes for itself lie in one block of memory: those that are not needed at the same
// time share it.
#ifndef TENSORFLOW_PLUGIN_COMMANDS_MEMORY_PLAN_H_
#define TENSORFLOW_PLUGIN_COMMANDS_MEMORY_PLAN_H_

#include "tensorflow_plugin/primitives/list.h"

namespace xpu::commands {

MemoryPlan PlanMemory(const List& list);

}  // namespace xpu::commands

#endif  // TENSORFLOW_PLUGIN_COMMANDS_MEMORY_PLAN_H_

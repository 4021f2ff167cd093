#include <algorithm>

#include "tensorflow_plugin/commands/hoist.h"
#include "tensorflow_plugin/commands/passes.h"

namespace xpu::commands {
namespace {

struct Pass {
  const char* name;
  void (*run)(const Capabilities&, CommandList*);  // null: the list is divided
};

// In this order. A name may stand here more than once.
const Pass kPasses[] = {
    {"CanonicalizeCopies", CanonicalizeCopies},
    {"EliminateCommonSubexpressions",
     [](const Capabilities&, CommandList* list) { EliminateCommonSubexpressions(list); }},
    {"DeduplicateIndexChecks", [](const Capabilities&, CommandList* list) { DeduplicateIndexChecks(list); }},
    {"ScheduleIndexChecks", ScheduleIndexChecks},
    {"EliminateDeadCode", [](const Capabilities&, CommandList* list) { EliminateDeadCode(list); }},
    {"FoldPadding", FoldPadding},
    // Dense copies only: BatchMatMuls stacks dense matrices and no others.
    {"PropagateCopiesForward",
     [](const Capabilities& can, CommandList* list) { PropagateCopiesForward(can, Through::kWhatIsDense, list); }},
    {"PropagateCopiesBackward",
     [](const Capabilities& can, CommandList* list) { PropagateCopiesBackward(can, Through::kWhatIsDense, list); }},
    {"EliminateDeadCode", [](const Capabilities&, CommandList* list) { EliminateDeadCode(list); }},
    {"FoldMatMulBatch", FoldMatMulBatch},
    {"BatchMatMuls", BatchMatMuls},
    {"PropagateCopiesForward",
     [](const Capabilities& can, CommandList* list) { PropagateCopiesForward(can, Through::kAll, list); }},
    {"PropagateCopiesBackward",
     [](const Capabilities& can, CommandList* list) { PropagateCopiesBackward(can, Through::kWhatIsDense, list); }},
    {"EliminateDeadCode", [](const Capabilities&, CommandList* list) { EliminateDeadCode(list); }},
    {"HoistInvariants", nullptr},
    {"Rematerialize", [](const Capabilities&, CommandList* list) { Rematerialize(list); }},
    {"EliminateDeadCode", [](const Capabilities&, CommandList* list) { EliminateDeadCode(list); }},
    {"FuseElementwise", FuseElementwise},
    {"PropagateCopiesBackward",
     [](const Capabilities& can, CommandList* list) { PropagateCopiesBackward(can, Through::kAll, list); }},
    {"EliminateDeadCode", [](const Capabilities&, CommandList* list) { EliminateDeadCode(list); }},
    {"FuseReductions", FuseReductions},
    {"FuseEpilogues", FuseEpilogues},
    {"UpdateInPlace", [](const Capabilities&, CommandList* list) { UpdateInPlace({}, list); }},
    {"ScheduleCopiesToHost", [](const Capabilities&, CommandList* list) { ScheduleCopiesToHost(list); }},
    {"ScheduleSmallResults", [](const Capabilities&, CommandList* list) { ScheduleSmallResults(list); }},
};

}  // namespace

std::vector<std::string> PassNames() {
  std::vector<std::string> names;
  for (const Pass& pass : kPasses) {
    if (std::find(names.begin(), names.end(), pass.name) == names.end()) names.push_back(pass.name);
  }
  return names;
}

void Optimize(const Capabilities& can, const std::vector<std::string>& without, CommandList* list) {
  Optimize(can, without, {}, list, nullptr);
}

void Optimize(const Capabilities& can, const std::vector<std::string>& without, std::vector<bool> invariant,
              CommandList* list, CommandList* hoisted) {
  for (const Pass& pass : kPasses) {
    if (std::find(without.begin(), without.end(), pass.name) != without.end()) continue;
    if (pass.run != nullptr) {
      pass.run(can, list);
      if (hoisted != nullptr && !hoisted->commands.empty()) pass.run(can, hoisted);
    } else if (hoisted != nullptr) {
      invariant.resize(list->buffers.size(), false);  // those that the passes before have added are computed
      PackOperands(can, invariant, list);
      invariant.resize(list->buffers.size(), false);
      *hoisted = SplitInvariants(invariant, list);
    }
  }
}

}  // namespace xpu::commands

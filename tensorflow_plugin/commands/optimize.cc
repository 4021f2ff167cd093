#include <algorithm>

#include "tensorflow_plugin/commands/hoist.h"
#include "tensorflow_plugin/commands/passes.h"

namespace xpu::commands {
namespace {

struct Pass {
  const char* name;
  void (*run)(const Capabilities&, List*);  // null: the list is divided
};

// In this order. A name may stand here more than once.
const Pass kPasses[] = {
    {"CopiesAreStrided", CopiesAreStrided},
    {"RemoveRepeated", [](const Capabilities&, List* list) { RemoveRepeated(list); }},
    {"CheckIndicesOnce", [](const Capabilities&, List* list) { CheckIndicesOnce(list); }},
    {"CheckIndicesEarly", CheckIndicesEarly},
    {"RemoveUnused", [](const Capabilities&, List* list) { RemoveUnused(list); }},
    // Only what costs nobody anything: products are stacked as they are.
    {"ReadThroughCopies",
     [](const Capabilities& can, List* list) { ReadThroughCopies(can, Through::kWhatIsDense, list); }},
    {"WriteThroughCopies",
     [](const Capabilities& can, List* list) { WriteThroughCopies(can, Through::kWhatIsDense, list); }},
    {"RemoveUnused", [](const Capabilities&, List* list) { RemoveUnused(list); }},
    {"SumProducts", SumProducts},
    {"StackProducts", StackProducts},
    {"ReadThroughCopies", [](const Capabilities& can, List* list) { ReadThroughCopies(can, Through::kAll, list); }},
    {"WriteThroughCopies",
     [](const Capabilities& can, List* list) { WriteThroughCopies(can, Through::kWhatIsDense, list); }},
    {"RemoveUnused", [](const Capabilities&, List* list) { RemoveUnused(list); }},
    {"KeepWhatStays", nullptr},
    {"Recompute", [](const Capabilities&, List* list) { Recompute(list); }},
    {"RemoveUnused", [](const Capabilities&, List* list) { RemoveUnused(list); }},
    {"FuseElementwise", FuseElementwise},
    {"WriteThroughCopies", [](const Capabilities& can, List* list) { WriteThroughCopies(can, Through::kAll, list); }},
    {"RemoveUnused", [](const Capabilities&, List* list) { RemoveUnused(list); }},
    {"FuseReductions", FuseReductions},
    {"FuseEpilogues", FuseEpilogues},
    {"CopyToHostEarly", [](const Capabilities&, List* list) { CopyToHostEarly(list); }},
    {"FewNumbersEarly", [](const Capabilities&, List* list) { FewNumbersEarly(list); }},
};

}  // namespace

std::vector<std::string> PassNames() {
  std::vector<std::string> names;
  for (const Pass& pass : kPasses) {
    if (std::find(names.begin(), names.end(), pass.name) == names.end()) names.push_back(pass.name);
  }
  return names;
}

void Optimize(const Capabilities& can, const std::vector<std::string>& without, List* list) {
  Optimize(can, without, {}, list, nullptr);
}

void Optimize(const Capabilities& can, const std::vector<std::string>& without, std::vector<bool> invariant, List* list,
              List* hoisted) {
  for (const Pass& pass : kPasses) {
    if (std::find(without.begin(), without.end(), pass.name) != without.end()) continue;
    if (pass.run != nullptr) {
      pass.run(can, list);
      if (hoisted != nullptr && !hoisted->commands.empty()) pass.run(can, hoisted);
    } else if (hoisted != nullptr) {
      invariant.resize(list->buffers.size(), false);  // those that the passes before have added are computed
      PackFilters(can, invariant, list);
      invariant.resize(list->buffers.size(), false);
      *hoisted = SplitInvariants(invariant, list);
    }
  }
}

}  // namespace xpu::commands

#include <algorithm>

#include "tensorflow_plugin/commands/dependencies.h"
#include "tensorflow_plugin/commands/hoist.h"
#include "tensorflow_plugin/commands/passes.h"

namespace xpu::commands {
namespace {

bool HasProducts(const CommandList& list) { return std::any_of(list.commands.begin(), list.commands.end(), IsProduct); }

bool HasChecks(const CommandList& list) {
  return std::any_of(list.commands.begin(), list.commands.end(),
                     [](const Command& command) { return command.may_fail(); });
}

struct Pass {
  const char* name;
  bool (*applies)(const CommandList&);             // false if there is nothing to do; null: it always applies
  void (*run)(const Capabilities&, CommandList*);  // null: a pass that sees the hoisted commands, too
  // Changes `list`. Commands of it that need to run only once may become `hoisted`.
  void (*run_with_hoisted)(const Capabilities&, const std::vector<bool>& invariant, CommandList* list,
                           CommandList* hoisted) = nullptr;
  bool needs_hoisted = true;  // false: it also runs where nothing is hoisted
};

void HoistInvariants(const Capabilities& can, const std::vector<bool>& invariant, CommandList* list,
                     CommandList* hoisted) {
  PackOperands(can, invariant, list);
  std::vector<bool> of_all = invariant;
  of_all.resize(list->buffers.size(), false);
  *hoisted = SplitInvariants(of_all, list);
}

// In this order. A name may stand here more than once.
const Pass kPasses[] = {
    {"CanonicalizeCopies", nullptr, CanonicalizeCopies},
    {"EliminateCommonSubexpressions", nullptr,
     [](const Capabilities&, CommandList* list) { EliminateCommonSubexpressions(list); }},
    {"DeduplicateIndexChecks", HasChecks, [](const Capabilities&, CommandList* list) { DeduplicateIndexChecks(list); }},
    {"ScheduleIndexChecks", HasChecks, ScheduleIndexChecks},
    {"EliminateDeadCode", nullptr, [](const Capabilities&, CommandList* list) { EliminateDeadCode(list); }},
    {"FoldPadding", Has<ConvolutionDesc>, FoldPadding},
    // Dense copies only: BatchMatMuls stacks dense matrices and no others.
    {"PropagateCopiesForward", Has<CopyStridedDesc>,
     [](const Capabilities& can, CommandList* list) { PropagateCopiesForward(can, Through::kDenseOnly, list); }},
    {"PropagateCopiesBackward", Has<CopyStridedDesc>,
     [](const Capabilities& can, CommandList* list) { PropagateCopiesBackward(can, Through::kDenseOnly, list); }},
    {"EliminateDeadCode", Has<CopyStridedDesc, ConvolutionDesc>,
     [](const Capabilities&, CommandList* list) { EliminateDeadCode(list); }},
    {"FoldMatMulBatch", Has<MatMulDesc>, FoldMatMulBatch},
    {"BatchMatMuls", Has<MatMulDesc, ReduceDesc>, BatchMatMuls},
    {"PropagateCopiesForward", Has<CopyStridedDesc>,
     [](const Capabilities& can, CommandList* list) { PropagateCopiesForward(can, Through::kAll, list); }},
    {"PropagateCopiesBackward", Has<CopyStridedDesc>,
     [](const Capabilities& can, CommandList* list) { PropagateCopiesBackward(can, Through::kDenseOnly, list); }},
    {"EliminateDeadCode", Has<CopyStridedDesc, MatMulDesc, ReduceDesc>,
     [](const Capabilities&, CommandList* list) { EliminateDeadCode(list); }},
    {"MultiplyInBytes", Has<MatMulDesc, ConvolutionDesc>, nullptr,
     [](const Capabilities& can, const std::vector<bool>& invariant, CommandList* list, CommandList*) {
       MultiplyInBytes(can, invariant, list);
     }},
    {"EliminateDeadCode", Has<ConvolutionDesc>,
     [](const Capabilities&, CommandList* list) { EliminateDeadCode(list); }},
    {"ReadPackedWeights", Has<MatMulDesc>, nullptr,
     [](const Capabilities& can, const std::vector<bool>& invariant, CommandList* list, CommandList*) {
       ReadPackedWeights(can, invariant, list);
     }},
    {"HoistInvariants", nullptr, nullptr, HoistInvariants},
    {"FuseQuantization", Has<ReduceDesc>, FuseQuantization},
    {"Rematerialize", HasProducts, [](const Capabilities&, CommandList* list) { Rematerialize(list); }},
    {"EliminateDeadCode", nullptr, [](const Capabilities&, CommandList* list) { EliminateDeadCode(list); }},
    {"FuseElementwise", nullptr, FuseElementwise},
    {"PropagateCopiesBackward", Has<CopyStridedDesc>,
     [](const Capabilities& can, CommandList* list) { PropagateCopiesBackward(can, Through::kAll, list); }},
    {"EliminateDeadCode", nullptr, [](const Capabilities&, CommandList* list) { EliminateDeadCode(list); }},
    // An epilogue in registers costs nothing. In any other way, a reduction is the better place.
    {"FuseEpilogues", HasProducts,
     [](const Capabilities& can, CommandList* list) { FuseEpilogues(can, EpilogueWay::kInRegisters, list); }},
    {"FuseReductions", Has<ReduceDesc>, FuseReductions},
    {"FuseEpilogues", HasProducts,
     [](const Capabilities& can, CommandList* list) { FuseEpilogues(can, EpilogueWay::kAfterwards, list); }},
    {"UpdateInPlace", Has<CopyStridedDesc>, [](const Capabilities&, CommandList* list) { UpdateInPlace({}, list); }},
    {"ScheduleCopiesToHost", Has<CopyToHost>,
     [](const Capabilities&, CommandList* list) { ScheduleCopiesToHost(list); }},
    {"ScheduleSmallResults", nullptr, [](const Capabilities&, CommandList* list) { ScheduleSmallResults(list); }},
    // The last ones: the order of the parts is what matters.
    {"ShareBatch", HasProducts, nullptr,
     [](const Capabilities& can, const std::vector<bool>&, CommandList* list, CommandList* hoisted) {
       ShareBatch(can, list, hoisted);
     },
     /*needs_hoisted=*/false},
    {"TileBatch", HasProducts, nullptr,
     [](const Capabilities& can, const std::vector<bool>&, CommandList* list, CommandList* hoisted) {
       TileBatch(can, list, hoisted);
     }},
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
      for (CommandList* part : {list, hoisted}) {
        if (part != nullptr && (pass.applies == nullptr || pass.applies(*part))) pass.run(can, part);
      }
    } else if (hoisted != nullptr || !pass.needs_hoisted) {
      CommandList none;
      invariant.resize(list->buffers.size(), false);  // those that the passes before have added are computed
      pass.run_with_hoisted(can, invariant, list, hoisted != nullptr ? hoisted : &none);
    }
  }
}

}  // namespace xpu::commands

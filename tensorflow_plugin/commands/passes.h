// Passes over a list of commands. Each leaves a list that computes the same, with fewer commands; what a pass makes,
// the device must support, and what it cannot improve it leaves alone.
#ifndef TENSORFLOW_PLUGIN_COMMANDS_PASSES_H_
#define TENSORFLOW_PLUGIN_COMMANDS_PASSES_H_

#include <string>
#include <vector>

#include "tensorflow_plugin/primitives/backend.h"
#include "tensorflow_plugin/primitives/list.h"

namespace xpu::commands {

// Of elementwise commands that compute the same from the same, the first serves all.
void EliminateCommonSubexpressions(List* list);

// Large values of elementwise chains that are read again much later, by elementwise commands, are computed again there
// instead of being kept, where that needs less memory and not much more work.
void Rematerialize(List* list);

// Elementwise commands over the same elements become one program with several outputs: chains of them, those that read
// the same, and those of a single element. Values that only they read are never stored. Those of 16 bits are rounded
// all the same, as TensorFlow rounds between any two ops.
void FuseElementwise(const Capabilities& can, List* list);

// The products of a batch that are added up, and nothing else, become one product over a longer sum.
void FoldMatMulBatch(const Capabilities& can, List* list);

// What an elementwise command computes for a reduction alone, that computes itself, and it is never stored.
void FuseReductions(const Capabilities& can, List* list);

// Elementwise commands over a product's elements become its epilogue: the product is made where they are.
void FuseEpilogues(const Capabilities& can, List* list);

// Of commands that fail for the same indices, beyond the same extents, the first alone may.
void DeduplicateIndexChecks(List* list);

// Indices that are there when the list runs are checked before anything else, or with the first commands: who runs the
// list waits for no more than that. The commands that read them cannot fail then.
void HoistIndexChecks(const Capabilities& can, List* list);

// What is copied to the host, and all that it hangs on, comes before the rest: whoever runs the list waits for that.
void ScheduleCopiesToHost(List* list);

// Results of a few numbers, and all that they hang on, come before what nobody waits for, unless the list needs more
// memory so: losses and metrics are read while gradients are computed (Stream::Read).
void ScheduleSmallResults(List* list);

// Takes out commands whose results nobody reads.
void EliminateDeadCode(List* list);

// Copies of bytes become copies of elements in a row, which the passes below know.
void CanonicalizeCopies(const Capabilities& can, List* list);

// Which copies: of elements that lie in a row at both ends, or all.
enum class Through { kWhatIsDense, kAll };

// Commands that read a copy of a part of a buffer, of its axes in another order, or of repeated elements read the
// original, where that costs them nothing: it is in one piece, or in rows, or a matrix of a product.
void PropagateCopiesForward(const Capabilities& can, Through which, List* list);

// What is copied to its place in a buffer (parts that are joined, axes in another order) lies there from the beginning.
void PropagateCopiesBackward(const Capabilities& can, Through which, List* list);

// Small products with the same right matrix, and small products and column sums that are added up, become one with
// their matrices stacked on each other: what a loop does in each iteration, and need not.
void BatchMatMuls(const Capabilities& can, List* list);

// All of them, but for those that `without` names.
void Optimize(const Capabilities& can, const std::vector<std::string>& without, List* list);
// The same, and what is computed of nothing but invariant buffers (hoist.h) becomes the list `hoisted`.
void Optimize(const Capabilities& can, const std::vector<std::string>& without, std::vector<bool> invariant, List* list,
              List* hoisted);

// The names of all, in the order in which they begin.
std::vector<std::string> PassNames();

}  // namespace xpu::commands

#endif  // TENSORFLOW_PLUGIN_COMMANDS_PASSES_H_

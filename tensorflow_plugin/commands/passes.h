// Passes over a list of commands. Each rewrites the list. It then takes less time or memory, or the host gets results
// earlier. docs/clusters.md says which of them may change last bits. The device must support what a pass
// makes. A pass leaves alone what it cannot improve.
#ifndef TENSORFLOW_PLUGIN_COMMANDS_PASSES_H_
#define TENSORFLOW_PLUGIN_COMMANDS_PASSES_H_

#include <functional>
#include <string>
#include <vector>

#include "tensorflow_plugin/primitives/backend.h"
#include "tensorflow_plugin/primitives/command_list.h"

namespace xpu::commands {

// Keeps the first of several elementwise commands or reductions that compute the same, and of equal constants.
void EliminateCommonSubexpressions(CommandList* list);

// Computes large values of elementwise chains a second time, where elementwise commands read them much later. It does
// so where that saves memory and costs little.
void Rematerialize(CommandList* list);

// Makes one program with several outputs of elementwise commands over the same elements. These are chains, commands
// that read the same, and commands of a single element. Values that only they read are never stored. Those of 16 bits
// are rounded all the same, as TensorFlow rounds between any two ops.
void FuseElementwise(const Capabilities& can, CommandList* list);

// A convolution of an image that was copied into zeros reads the image, and pads it itself.
void FoldPadding(const Capabilities& can, CommandList* list);

// The products of a batch that are added up, and nothing else, become one product over a longer sum.
void FoldMatMulBatch(const Capabilities& can, CommandList* list);

// A reduction computes the elementwise command that it alone reads, so that the result is never stored.
void FuseReductions(const Capabilities& can, CommandList* list);

// The commands that make 8-bit integers of rows of floats, by the largest magnitude of each row, become one.
void FuseQuantization(const Capabilities& can, CommandList* list);

// Elementwise commands over a product's elements become its epilogue: the product is made where they are. If one reads
// several products, parts of its program may become epilogues of the others. `slowest`: leaves alone what the device
// would compute in a slower way.
void FuseEpilogues(const Capabilities& can, EpilogueWay slowest, CommandList* list);

// Where several commands fail for the same indices, only the first still checks them.
void DeduplicateIndexChecks(CommandList* list);

// Indices that are known when the list runs are checked first, or with the first commands. The thread that runs the
// list waits for no more than that. The commands that read them cannot fail then. Constant indices are checked at once.
void ScheduleIndexChecks(const Capabilities& can, CommandList* list);

// Copies to the host, and all that they depend on, come first, because the thread that runs the list waits for them.
void ScheduleCopiesToHost(CommandList* list);

// Small results, and all that they depend on, come before results that nobody waits for, unless that needs more memory.
// Losses and metrics are then read while gradients are computed (Stream::Read).
void ScheduleSmallResults(CommandList* list);

// Gives a buffer that begins as a copy of another one the other one's place, if nothing reads the other one later. The
// copies go. `donated`: inputs of the list that commands may write. The result lists the inputs that other buffers
// replace: such a buffer has the input's contents when the list begins.
struct ReplacedInput {
  int input, replacement;
};
std::vector<ReplacedInput> UpdateInPlace(const std::vector<int>& donated, CommandList* list);

// `value`, a buffer of the list's own, replaces `input`, such as a variable's buffer, once the list has run. Both have
// one type and shape. Outside of the list nothing else needs either: no result and no other variable becomes the old or
// the new value.
struct Assignment {
  int input, value;
};
// Lets the commands write the value into the input instead. That is so where no command writes the input, and none
// reads it after the value's first writer. That one writes the whole value, and reads the input only where it writes
// it. From it on no command may fail on data. By assignment: true if they do so now.
std::vector<bool> AssignInPlace(const std::vector<Assignment>& assignments, CommandList* list);

// Finds integer divisions by constants other than zero: they cannot fail. `constant` gives the bytes of a fixed buffer,
// or none if it does not know them.
void FindSafeDivisions(const std::function<std::vector<char>(int buffer)>& constant, CommandList* list);

// Takes out commands whose results nobody reads.
void EliminateDeadCode(CommandList* list);

// Copies of bytes become copies of elements in a row, which the passes below know.
void CanonicalizeCopies(const Capabilities& can, CommandList* list);

// Which copies: of elements that lie in a row at both ends, or all.
enum class Through { kDenseOnly, kAll };

// A command that reads a copy reads the original instead, where that costs nothing. The copy may be a part of a buffer,
// its axes in another order, or repeated elements. The original must be dense, in rows, or a matrix of a product.
void PropagateCopiesForward(const Capabilities& can, Through which, CommandList* list);

// A value that is copied to its place in a buffer is written there at once. Such values are parts that are joined, or
// axes in another order.
void PropagateCopiesBackward(const Capabilities& can, Through which, CommandList* list);

// Makes one product of small products with the same right matrix, or of small products and column sums that are added
// up. A loop makes such products in each iteration.
void BatchMatMuls(const Capabilities& can, CommandList* list);

// `invariant`, by buffer: as in hoist.h.

// Has products read weights of 4 bits instead of matrices that are computed of such weights and nothing that changes.
// A command that may fail is added for each, which can run once: it looks whether the matrix is what the weights give.
void ReadPackedWeights(const Capabilities& can, const std::vector<bool>& invariant, CommandList* list);

// Has products multiply bytes where FakeQuant ops make what they multiply, and the filter does not change. Bytes stand
// for finite numbers alone. Commands are added that may fail: they look whether those are finite. If one of them fails,
// the list as it was has to run (Command::is_condition).
void MultiplyInBytes(const Capabilities& can, const std::vector<bool>& invariant, CommandList* list);

// Runs stretches of commands for some images of a batch at a time where the values of a whole batch exceed
// Capabilities::CacheBytes. `hoisted` holds the commands that pack filters: they pack them for a part of the batch
// then.
void TileBatch(const Capabilities& can, CommandList* list, CommandList* hoisted);

// Cuts stretches of commands along the batch into as many strands (Command::strand) as the device runs side by side. So
// a thread runs all commands of its part of the batch, and waits for no other thread between them. `hoisted` as above.
void ShareBatch(const Capabilities& can, CommandList* list, CommandList* hoisted);

// All of them, but for those that `without` names.
void Optimize(const Capabilities& can, const std::vector<std::string>& without, CommandList* list);
// The same, and what is computed of nothing but invariant buffers (hoist.h) becomes the list `hoisted`.
void Optimize(const Capabilities& can, const std::vector<std::string>& without, std::vector<bool> invariant,
              CommandList* list, CommandList* hoisted);

// The names of all, in the order in which they begin.
std::vector<std::string> PassNames();

}  // namespace xpu::commands

#endif  // TENSORFLOW_PLUGIN_COMMANDS_PASSES_H_

// The commands of a list whose operands are the same in each run, such as weights that nobody trains. They need to run
// only once.
#ifndef TENSORFLOW_PLUGIN_COMMANDS_HOIST_H_
#define TENSORFLOW_PLUGIN_COMMANDS_HOIST_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "tensorflow_plugin/primitives/backend.h"
#include "tensorflow_plugin/primitives/command_list.h"

namespace xpu::commands {

// `invariant`, by buffer: the same bytes lie there whenever the list runs.

// The commands that depend on nothing else and can run once. They touch no variable that changes. The results that are
// kept are not much larger than the values that they are computed of.
std::vector<bool> InvariantCommands(const CommandList& list, const std::vector<bool>& invariant);

// By buffer: true if it is invariant, or if a command of `hoisted` writes it.
std::vector<bool> Known(const CommandList& list, const std::vector<bool>& invariant, const std::vector<bool>& hoisted);

// The bytes that hoisting would spare each run from reading. `of`: the invariant buffers that it would read. They are
// counted before the passes, which may find less but never more.
int64_t HoistableBytes(const Capabilities& can, const CommandList& list, const std::vector<bool>& invariant,
                       std::vector<bool>* of);

// A product of rows and a matrix as a pointwise convolution, which takes a packed filter; none if it is another
// product. The operands are the same.
std::optional<ConvolutionDesc> AsConvolution(const MatMulDesc& d);

// Makes a command that may fail on data a condition.
void MakeCondition(Command* command);

// Inserts commands that lay invariant operands out as backend kernels read them best. Filters of convolutions are
// packed, and matrices of bytes are transposed. A product whose second matrix the backend prefers packed becomes a
// pointwise convolution.
void PackOperands(const Capabilities& can, const std::vector<bool>& invariant, CommandList* list);

// Moves the commands that can run once to the list that is returned. Their results are live out there, and become
// inputs of `list`; both lists number buffers alike. The returned list has no commands if there is nothing to hoist. If
// it fails when it runs, the list as it was has to run.
CommandList SplitInvariants(const std::vector<bool>& invariant, CommandList* list);

}  // namespace xpu::commands

#endif  // TENSORFLOW_PLUGIN_COMMANDS_HOIST_H_

// The checks of the core's hooks (table.h), each in the file that its row names.
#ifndef TENSORFLOW_PLUGIN_TF_INTERNALS_CHECKS_H_
#define TENSORFLOW_PLUGIN_TF_INTERNALS_CHECKS_H_

#include <string>
#include <utility>
#include <vector>

#include "tensorflow_plugin/tf_internals/check.h"

namespace xpu::tf_internals {

void CheckKernels(Check& check);
void CheckTf32(Check& check);
void CheckVariables(Check& check);
void CheckTensorLists(Check& check);
void CheckTensorArrays(Check& check);
void CheckGraphs(Check& check);
// The part of it that is about nodes alone.
void CheckNodes(Check& check);
bool KnowsNodes();
void CheckClusters(Check& check);
void CheckDirectCalls(Check& check);
void CheckCopies(Check& check);
void CheckDirectCopies(Check& check);
void CheckForkThreads(Check& check);

// Those without which there is no XPU: what is not as expected, or nothing. Once, before anything else.
std::string WhyNoXpu();

// All others, once: those that TensorFlow is not right for are off from then on, and each has said so.
void CheckOthers();

// Those of both functions, by the hooks' names.
const std::vector<std::pair<const char*, void (*)(Check&)>>& AllChecks();

// tf.config.experimental.tensor_float_32_execution_enabled; null where TensorFlow has none.
bool (*Tf32Query())();

}  // namespace xpu::tf_internals

#endif  // TENSORFLOW_PLUGIN_TF_INTERNALS_CHECKS_H_

#include "tensorflow_plugin/tf_internals/checks.h"

#include <utility>
#include <vector>

#include "tensorflow_plugin/tf_internals/table.h"

namespace xpu::tf_internals {
namespace {

using CheckFunction = void (*)(Check&);

const std::vector<std::pair<const char*, CheckFunction>> kRequiredChecks = {{"kernels", CheckKernels},
                                                                            {"variables", CheckVariables}};
// The jit's is made when its creator is replaced.
const std::vector<std::pair<const char*, CheckFunction>> kOtherChecks = {
    {"tensor_lists", CheckTensorLists},   {"tensor_arrays", CheckTensorArrays}, {"graphs", CheckGraphs},
    {"clusters", CheckClusters},          {"direct_calls", CheckDirectCalls},   {"copies", CheckCopies},
    {"direct_copies", CheckDirectCopies}, {"fork_threads", CheckForkThreads},   {"tf32", CheckTf32}};

}  // namespace

std::string WhyNoXpu() {
  for (const auto& [name, check] : kRequiredChecks) {
    const std::string why = WhyOff(name, check);
    if (!why.empty()) return std::string("TensorFlow's ") + name + " are not built as expected: " + why;
  }
  return "";
}

void CheckOthers() {
  for (const auto& [name, check] : kOtherChecks) TurnOn(name, check);
  TurnOffWithout("graphs", "clusters");
  TurnOffWithout("graphs", "direct_calls");
  TurnOffWithout("clusters", "direct_calls");
  TurnOffWithout("copies", "direct_copies");
  TurnOffWithout("copies", "fork_threads");
}

const std::vector<std::pair<const char*, void (*)(Check&)>>& AllChecks() {
  static const auto& all = *new std::vector<std::pair<const char*, void (*)(Check&)>>([] {
    auto checks = kRequiredChecks;
    checks.insert(checks.end(), kOtherChecks.begin(), kOtherChecks.end());
    return checks;
  }());
  return all;
}

}  // namespace xpu::tf_internals

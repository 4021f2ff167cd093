#include "tensorflow_plugin/graph/may_wait.h"

#include <algorithm>
#include <set>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"

namespace xpu::graph {
namespace {

namespace tf = tensorflow;

std::set<std::string>& KnownOps() {
  static auto* const ops = new std::set<std::string>;
  return *ops;
}

// Ops that wait though TensorFlow calls them stateless: Python runs, or a batch is filled.
bool WaitsWithoutState(const std::string& op) {
  static const auto* const ops =
      new std::set<std::string>{"Batch", "BatchFunction", "PyFuncStateless", "Unbatch", "UnbatchGrad"};
  return ops->count(op) != 0;
}

// Ops that run functions and do nothing else.
bool OnlyCalls(const std::string& op) {
  static const auto* const ops = new std::set<std::string>{"Case",
                                                           "For",
                                                           "If",
                                                           "MapDefun",
                                                           "PartitionedCall",
                                                           "StatefulPartitionedCall",
                                                           "StatelessCase",
                                                           "StatelessIf",
                                                           "StatelessWhile",
                                                           "While",
                                                           "_If",
                                                           "_While"};
  return ops->count(op) != 0;
}

bool NeverWaits(const std::string& op) {
  for (const std::string& entry : OpsThatNeverWait()) {
    const absl::string_view beginning = absl::StripSuffix(entry, "*");
    if (beginning.size() == entry.size() ? op == entry : absl::StartsWith(op, beginning)) return true;
  }
  return false;
}

// Whether an argument is a handle of TensorFlow 1: a reference to the name of a queue, a reader or a barrier.
bool TakesHandle(const tf::OpDef& op) {
  return std::any_of(op.input_arg().begin(), op.input_arg().end(), [](const tf::OpDef::ArgDef& argument) {
    return argument.is_ref() && argument.type() == tf::DT_STRING;
  });
}

}  // namespace

const std::vector<std::string>& OpsThatNeverWait() {
  static const auto* const ops = new std::vector<std::string>{
      // A function's arguments and results are there when it starts and ends.
      "_Arg", "_Retval", "_DeviceArg", "_DeviceRetval",
      // The plugin's own ops.
      "_Xpu*",
      // Variables.
      "Assign*", "DestroyResourceOp", "DestroyTemporaryVariable", "DisableCopyOnRead", "IsVariableInitialized",
      "ReadVariableOp", "ResourceApply*", "ResourceCountUpTo", "ResourceGather*", "ResourceScatter*",
      "ResourceSparseApply*", "ResourceStridedSliceAssign", "TemporaryVariable", "VarHandleOp", "VarIsInitializedOp",
      "Variable*", "_ReadVariablesOp", "_VarHandlesOp",
      // Random numbers.
      "AllCandidateSampler", "FixedUnigramCandidateSampler", "LearnedUnigramCandidateSampler",
      "LogUniformCandidateSampler", "Multinomial", "NonDeterministicInts", "ParameterizedTruncatedNormal", "Random*",
      "RngReadAndSkip", "RngSkip", "SampleDistortedBoundingBox*", "StatefulRandomBinomial", "StatefulStandardNormal*",
      "StatefulTruncatedNormal", "StatefulUniform*", "StatelessRandomGetAlg", "ThreadUnsafeUnigramCandidateSampler",
      "TruncatedNormal", "UniformCandidateSampler",
      // Containers that fail where they lack something.
      "AnonymousHashTable", "AnonymousMutable*", "HashTable*", "LookupTable*", "MutableDenseHashTable*",
      "MutableHashTable*", "Stack*", "TensorArray*",
      // Assertions, messages and clocks.
      "Assert", "CheckNumerics*", "Print*", "Timestamp", "Write*",
      // Memory that is not yet written.
      "Empty", "_ParallelConcatStart"};
  return *ops;
}

void RememberKnownOps() {
  std::vector<tf::OpDef> ops;
  tf::OpRegistry::Global()->GetRegisteredOps(&ops);
  for (const tf::OpDef& op : ops) KnownOps().insert(op.name());
}

bool MayWait::operator()(const tf::Node& node) {
  if (!node.IsOp() || node.IsControlFlow()) return false;
  if (library_.Find(node.type_string()) != nullptr) return Function(node.type_string());
  return Op(node.op_def(), node.attrs());
}

bool MayWait::operator()(const tf::NodeDef& node) {
  if (library_.Find(node.op()) != nullptr) return Function(node.op());
  const tf::OpDef* op = nullptr;
  return !library_.LookUpOpDef(node.op(), &op).ok() || Op(*op, tf::AttrSlice(node));
}

bool MayWait::Op(const tf::OpDef& op, tf::AttrSlice attributes) {
  if (WaitsWithoutState(op.name())) return true;
  if (OnlyCalls(op.name())) return AnyFunction(attributes);
  if (NeverWaits(op.name())) return false;
  return op.is_stateful() || KnownOps().count(op.name()) == 0 || TakesHandle(op) || AnyFunction(attributes);
}

bool MayWait::AnyFunction(tf::AttrSlice attributes) {
  for (const auto& [name, value] : attributes) {
    if (value.has_func() && Function(value.func().name())) return true;
    for (const tf::NameAttrList& function : value.list().func()) {
      if (Function(function.name())) return true;
    }
  }
  return false;
}

bool MayWait::Function(const std::string& name) {
  // A function that calls itself may wait.
  const auto [found, is_new] = functions_.emplace(name, true);
  if (!is_new) return found->second;
  const tf::FunctionDef* function = library_.Find(name);
  bool waits = function == nullptr;
  for (int i = 0; !waits && i < function->node_def_size(); ++i) waits = (*this)(function->node_def(i));
  return functions_[name] = waits;
}

}  // namespace xpu::graph

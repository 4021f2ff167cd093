#include "tensorflow_plugin/graph/may_wait.h"

#include <algorithm>
#include <set>
#include <vector>

#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow_plugin/framework/op_traits.h"

namespace xpu::graph {
namespace {

namespace tf = tensorflow;

std::set<std::string>& KnownOps() {
  static auto* const ops = new std::set<std::string>;
  return *ops;
}

// True if an argument is a handle of TensorFlow 1: a reference to the name of a queue, a reader or a barrier.
bool TakesHandle(const tf::OpDef& op) {
  return std::any_of(op.input_arg().begin(), op.input_arg().end(), [](const tf::OpDef::ArgDef& argument) {
    return argument.is_ref() && argument.type() == tf::DT_STRING;
  });
}

}  // namespace

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
  const OpTraits traits = TraitsOf(op.name());
  if (traits.Has(OpTrait::kMayWait)) return true;
  if (traits.Has(OpTrait::kOnlyCalls)) return AnyFunction(attributes);
  if (traits.Has(OpTrait::kCannotWait)) return false;
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

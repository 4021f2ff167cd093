#include "tensorflow_plugin/graph/can_be_lowered.h"

#include <algorithm>
#include <array>
#include <set>

#include "tensorflow/core/framework/op.h"
#include "tensorflow_plugin/framework/op_traits.h"

namespace xpu::graph {

namespace tf = tensorflow;

namespace {

// Ops whose state is a generator of random numbers. Automatic control dependencies leave them out, too: who draws first
// does not matter.
bool OnlyDraws(const std::string& op) {
  static const auto* const ops = new std::set<std::string>{"Multinomial",    "ParameterizedTruncatedNormal",
                                                           "RandomGamma",    "RandomGammaGrad",
                                                           "RandomPoisson",  "RandomPoissonV2",
                                                           "RandomShuffle",  "RandomStandardNormal",
                                                           "RandomUniform",  "RandomUniformInt",
                                                           "TruncatedNormal"};
  return ops->count(op) != 0;
}

}  // namespace

bool CanBeLowered::IsCall(const tf::NodeDef& node) {
  return node.op() == "PartitionedCall" || node.op() == "StatefulPartitionedCall";
}

std::vector<std::string> CanBeLowered::FunctionsOf(const tf::NodeDef& node) {
  std::vector<std::string> functions;
  for (const auto& [name, value] : node.attr()) {
    if (value.has_func()) functions.push_back(value.func().name());
    for (const tf::NameAttrList& function : value.list().func()) functions.push_back(function.name());
  }
  return functions;
}

bool CanBeLowered::IsLoop(const tf::NodeDef& node) { return node.op() == "While" || node.op() == "StatelessWhile"; }

bool CanBeLowered::operator()(const tf::NodeDef& node) {
  if (!TraitsOf(node.op()).Has(OpTrait::kLowered) || (IsLoop(node) && !HasFunctionsThatFit(node))) return false;
  return EffectsOfAll(FunctionsOf(node)) != Effects::kUnordered;
}

bool CanBeLowered::HasFunctionsThatFit(const tf::NodeDef& loop) const {
  const auto types = loop.attr().find("T"), condition = loop.attr().find("cond"), body = loop.attr().find("body");
  if (types == loop.attr().end() || condition == loop.attr().end() || body == loop.attr().end()) return false;
  const auto& variables = types->second.list().type();
  const auto gives = [this](const tf::AttrValue& function, const auto& wanted) {
    const tf::FunctionDef* definition = library_.Find(function.func().name());
    if (definition == nullptr) return false;
    const auto& results = definition->signature().output_arg();
    return std::equal(results.begin(), results.end(), wanted.begin(), wanted.end(),
                      [](const tf::OpDef::ArgDef& result, int type) { return result.type() == type; });
  };
  return !variables.empty() && gives(condition->second, std::array{static_cast<int>(tf::DT_BOOL)}) &&
         gives(body->second, variables);
}

CanBeLowered::Effects CanBeLowered::EffectsOfAll(const std::vector<std::string>& functions) {
  Effects effects = Effects::kNone;
  for (const std::string& function : functions) effects = std::max(effects, EffectsOf(function));
  return effects;
}

CanBeLowered::Effects CanBeLowered::EffectsOf(const std::string& function) {
  // Until more is known, and for a function that calls itself.
  const auto [found, is_new] = functions_.emplace(function, Effects::kUnordered);
  if (!is_new) return found->second;
  const tf::FunctionDef* const definition = library_.Find(function);
  if (definition == nullptr) return Effects::kUnordered;
  std::set<std::string> control_outputs;
  for (const auto& [name, node] : definition->control_ret()) control_outputs.insert(node);
  Effects effects = Effects::kNone;
  for (const tf::NodeDef& node : definition->node_def()) {
    Effects of_node = EffectsOf(node);
    if (of_node != Effects::kNone && control_outputs.count(node.name()) == 0) of_node = Effects::kUnordered;
    effects = std::max(effects, of_node);
  }
  return functions_[function] = effects;
}

CanBeLowered::Effects CanBeLowered::EffectsOf(const tf::NodeDef& node) {
  if (library_.Find(node.op()) != nullptr) return EffectsOf(node.op());
  const OpTraits traits = TraitsOf(node.op());
  if (traits.Has(OpTrait::kLowered) || IsCall(node)) return EffectsOfAll(FunctionsOf(node));
  if (OnlyDraws(node.op())) return Effects::kNone;
  const tf::OpDef* op = nullptr;
  if (!library_.LookUpOpDef(node.op(), &op).ok()) return Effects::kUnordered;
  return op->is_stateful() && !traits.Has(OpTrait::kOnlyReads) ? Effects::kOrdered : Effects::kNone;
}

}  // namespace xpu::graph

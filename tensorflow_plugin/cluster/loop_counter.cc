#include "tensorflow_plugin/cluster/loop_counter.h"

#include <algorithm>
#include <set>
#include <utility>

#include "tensorflow/core/framework/cancellation.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow_plugin/cluster/host_variable_op.h"

namespace xpu::cluster {
namespace {

namespace tf = tensorflow;

bool AllOnHost(const std::vector<tf::AllocatorAttributes>& attributes) {
  return std::all_of(attributes.begin(), attributes.end(), [](const auto& a) { return a.on_host(); });
}

}  // namespace

bool CountsOnHost(const Members::Member& member) {
  if (!AllOnHost(member.input_attrs) || !AllOnHost(member.output_attrs)) return false;
  if (member.kernel->type_string() == kHostVariableOp) return true;
  const auto is_number = [](tf::DataType dtype) { return tf::DataTypeCanUseMemcpy(dtype); };
  const auto& inputs = member.kernel->input_types();
  const auto& outputs = member.kernel->output_types();
  const tf::OpDef* op = nullptr;
  return std::all_of(inputs.begin(), inputs.end(), is_number) &&
         std::all_of(outputs.begin(), outputs.end(), is_number) &&
         tf::OpRegistry::Global()->LookUpOpDef(member.kernel->type_string(), &op).ok() && !op->is_stateful();
}

std::set<int> ArgumentsOf(const Members& members) {
  std::set<int> arguments;
  const auto add = [&](const ValueRef& source) {
    if (source.member == ValueRef::kArgument) arguments.insert(source.index);
  };
  for (const Members::Member& member : members.members()) {
    if (member.kernel->type_string() == kHostVariableOp) continue;
    for (const ValueRef& source : member.inputs) add(source);
  }
  for (const ValueRef& source : members.results()) add(source);
  return arguments;
}

LoopCounter::LoopCounter(const Members& members, const std::vector<int>& variables, int num_host) {
  std::vector<ValueRef> results{members.results()[0]};
  for (bool grew = true; grew;) {
    grew = false;
    members_ = members.Part(results);
    if (!std::all_of(members_.members().begin(), members_.members().end(), CountsOnHost)) return;
    for (int argument : ArgumentsOf(members_)) {
      if (argument >= num_host) return;
      const auto variable = std::find(variables.begin(), variables.end(), argument);
      if (variable == variables.end() || std::count(variables_.begin(), variables_.end(), argument) != 0) continue;
      variables_.push_back(argument);
      results.push_back(members.results()[variable - variables.begin() + 1]);
      grew = true;
    }
  }
  for (const Members::Member& member : members_.members()) {
    for (const ValueRef& source : member.inputs) {
      if (source.member == ValueRef::kArgument && std::count(variables_.begin(), variables_.end(), source.index) == 0) {
        invariant_arguments_.push_back(source.index);
      }
    }
  }
  can_count_ = true;
  has_program_ = program_.Make(members_, variables_);
}

int64_t LoopCounter::CountIterations(tf::OpKernelContext* ctx, Members::Environment arguments, int64_t most) const {
  if (!can_count_) return kUnknown;
  NumberProgram::Run numbers;
  if (has_program_ && numbers.Begin(program_, ctx, arguments)) {
    for (int64_t n = 0; n <= most; ++n, numbers.Next()) {
      if (!numbers.Compute()) return n;
    }
    return most + 1;
  }
  const std::vector<ValueRef>& results = members_.results();
  std::vector<tf::Tensor> next(variables_.size());
  Members::Execution iteration(members_, ctx, arguments, invariant_arguments_);
  for (int64_t n = 0; n <= most; ++n, iteration.StartOver()) {
    if (ctx->cancellation_manager() != nullptr && ctx->cancellation_manager()->IsCancelled()) return kUnknown;
    if (!iteration.RunUntil(static_cast<int>(members_.members().size()), false).ok()) return kUnknown;
    const tf::Tensor condition = iteration.TakeValue(results[0], true);
    if (condition.dtype() != tf::DT_BOOL || condition.NumElements() != 1) return kUnknown;
    if (!*static_cast<const bool*>(condition.data())) return n;
    for (size_t i = 0; i < next.size(); ++i) next[i] = iteration.TakeValue(results[i + 1]);
    for (size_t i = 0; i < next.size(); ++i) arguments.arguments[variables_[i]] = std::move(next[i]);
  }
  return most + 1;
}

}  // namespace xpu::cluster

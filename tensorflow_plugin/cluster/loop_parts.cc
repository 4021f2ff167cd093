#include "tensorflow_plugin/cluster/loop_parts.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string>

#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow_plugin/cluster/cluster_op.h"
#include "tensorflow_plugin/cluster/host_variable_op.h"
#include "tensorflow_plugin/cluster/loop_counter.h"
#include "tensorflow_plugin/cluster/loop_op.h"
#include "tensorflow_plugin/cluster/transfer_op.h"
#include "tensorflow_plugin/framework/op_traits.h"

namespace xpu::cluster {
namespace {

namespace tf = tensorflow;

// True if a member copies a number in host memory to the device and does not look at it.
bool OnlyCopiesNumber(const Members::Member& member) {
  const std::string& type = member.kernel->type_string();
  return type == kToDeviceOp ||
         (type == "Cast" && member.input_attrs[0].on_host() && !member.output_attrs[0].on_host());
}

bool IsValue(tf::DataType type) { return tf::DataTypeCanUseMemcpy(type) && !tf::IsRefType(type); }

bool AreValues(const tf::DataTypeVector& types) {
  return std::all_of(types.begin(), types.end(),
                     [](tf::DataType type) { return type == tf::DT_RESOURCE || IsValue(type); });
}

bool IsIn(const std::vector<int>& numbers, int number) {
  return std::find(numbers.begin(), numbers.end(), number) != numbers.end();
}

bool AllOnHost(const std::vector<tf::AllocatorAttributes>& attributes) {
  return std::all_of(attributes.begin(), attributes.end(), [](const auto& a) { return a.on_host(); });
}

// True if a member does something besides computing its outputs.
bool HasEffect(const Members::Member& member) {
  const tf::OpKernel& kernel = *member.kernel;
  const std::string& type = kernel.type_string();
  if (type == kHostVariableOp) return false;
  if (kernel.num_outputs() == 0) return true;
  if (type == kOp || type == kLoopOp) {
    std::vector<int> variables;
    std::vector<VariableUses> uses;
    for (tf::DataType dtype : kernel.input_types()) {
      variables.push_back(dtype == tf::DT_RESOURCE ? static_cast<int>(uses.size()) : -1);
      if (dtype == tf::DT_RESOURCE) uses.emplace_back();
    }
    AddUses(kernel.def(), variables, &uses);
    return std::any_of(uses.begin(), uses.end(), [](const VariableUses& use) { return use.is_written; });
  }
  const tf::OpDef* op = nullptr;
  return !tf::OpRegistry::Global()->LookUpOpDef(type, &op).ok() ||
         (op->is_stateful() && !TraitsOf(type).Has(OpTrait::kOnlyReads));
}

bool operator==(const ValueRef& a, const ValueRef& b) { return a.member == b.member && a.index == b.index; }

}  // namespace

bool LoopParts::Read(const Members& members, const std::vector<int>& loop_variables, int condition_members,
                     const tf::DataTypeVector& arguments, int host, int resources) {
  members_ = &members;
  types_ = arguments;
  num_host = host;
  num_resources = resources;
  num_arguments = static_cast<int>(arguments.size());
  if (!SortVariables(loop_variables, condition_members) || !FindEffects(condition_members)) return false;
  FindDependence();
  return ReadBody() && ReadAfter() && ReadCounting() && ReadUses();
}

LoopParts::Depends LoopParts::What(const ValueRef& value) const {
  if (value.member != ValueRef::kArgument) return depends_[value.member];
  if (value.index >= num_host) return Depends::kOnNothing;
  return IsIn(host_variables, value.index) ? Depends::kOnCount : Depends::kOnArguments;
}

bool LoopParts::SortVariables(const std::vector<int>& loop_variables, int condition_members) {
  for (size_t i = 0; i < loop_variables.size(); ++i) {
    const int argument = loop_variables[i];
    const ValueRef next = Origin(members_->results()[i + 1]);
    if (next == ValueRef{ValueRef::kArgument, argument}) continue;  // it stays as it is
    if (argument < num_host) {
      host_variables.push_back(argument);
      next_on_host_.push_back(next);
    } else if (IsValue(types_[argument])) {
      device_variables.push_back(argument);
      next_on_device_.push_back(next);
    } else if (IsAppendedTo(argument, next, condition_members)) {
      lists.push_back(argument);
      next_lists_.push_back(next);
    } else {
      return false;
    }
  }
  return true;
}

// The value itself where an op hands it on.
ValueRef LoopParts::Origin(ValueRef value) const {
  while (value.member != ValueRef::kArgument && members_->members()[value.member].kernel->type_string() == "Identity") {
    value = members_->members()[value.member].inputs[0];
  }
  return value;
}

// True if the list has one use in an iteration, which is to put a value into it.
bool LoopParts::IsAppendedTo(int argument, const ValueRef& next, int condition_members) {
  if (next.member < condition_members || types_[argument] != tf::DT_VARIANT) return false;
  const std::vector<Members::Member>& all = members_->members();
  const std::string& op = all[next.member].kernel->type_string();
  const bool sets = op == "TensorListSetItem";
  if (!sets && op != "TensorListPushBack") return false;
  const ValueRef before{ValueRef::kArgument, argument};
  if (!(Origin(all[next.member].inputs[0]) == before)) return false;
  int uses = 0;
  const auto count = [&](const ValueRef& value) {
    const ValueRef origin = Origin(value);
    uses += origin == before || origin == next ? 1 : 0;
  };
  for (const Members::Member& member : all) {
    if (member.kernel->type_string() == "Identity") continue;
    for (const ValueRef& input : member.inputs) count(input);
  }
  for (const ValueRef& result : members_->results()) count(result);
  const int value = sets ? 2 : 1;
  if (!all[next.member].input_attrs[value].on_host()) pushed_.emplace_back(next.member, value);
  return uses == 2;
}

bool LoopParts::FindEffects(int condition_members) {
  const std::vector<Members::Member>& all = members_->members();
  for (int i = 0; i < static_cast<int>(all.size()); ++i) {
    if (!HasEffect(all[i])) continue;
    if (i < condition_members) return false;  // it comes once more than the body
    effects_.push_back(i);
  }
  // An error of a list would come after the effects of later iterations.
  return effects_.empty() || lists.empty();
}

void LoopParts::FindDependence() {
  const std::vector<Members::Member>& all = members_->members();
  depends_.assign(all.size(), Depends::kOnNothing);
  is_ahead_.assign(all.size(), false);
  for (size_t i = 0; i < all.size(); ++i) {
    const bool reads_variable = all[i].kernel->type_string() == kHostVariableOp;
    if (reads_variable) depends_[i] = Depends::kOnCount;
    is_ahead_[i] = !reads_variable && !HasEffect(all[i]);
    for (size_t k = 0; k < all[i].inputs.size(); ++k) {
      const ValueRef& input = all[i].inputs[k];
      if (all[i].input_attrs[k].on_host()) depends_[i] = std::max(depends_[i], What(input));
      const bool is_ahead =
          input.member != ValueRef::kArgument
              ? is_ahead_[input.member]
              : input.index < first_resource() && !IsIn(device_variables, input.index) && !IsIn(lists, input.index);
      if (!is_ahead) is_ahead_[i] = false;
    }
  }
}

bool LoopParts::IsBefore(int member) const {
  const Members::Member& m = members_->members()[member];
  return depends_[member] == Depends::kOnCount && is_ahead_[member] && !AllOnHost(m.output_attrs) &&
         !OnlyCopiesNumber(m);
}

bool LoopParts::IsRow(const ValueRef& value, int* argument, ValueRef* index) const {
  const std::vector<Members::Member>& all = members_->members();
  const Members::Member& slice = all[value.member];
  if (slice.kernel->type_string() != "StridedSlice") return false;
  const tf::NodeDef& def = slice.kernel->def();
  for (const auto& [name, wanted] : {std::pair("begin_mask", 0),
                                     {"end_mask", 0},
                                     {"ellipsis_mask", 0},
                                     {"new_axis_mask", 0},
                                     {"shrink_axis_mask", 1}}) {
    int mask = 0;
    if (!tf::GetNodeAttr(def, name, &mask).ok() || mask != wanted) return false;
  }
  const ValueRef source = Origin(slice.inputs[0]);
  const ValueRef& begin = slice.inputs[1];
  const ValueRef& step = slice.inputs[3];
  if (source.member != ValueRef::kArgument || begin.member == ValueRef::kArgument ||
      step.member == ValueRef::kArgument) {
    return false;
  }
  const std::string& made_by = all[begin.member].kernel->type_string();
  const int inputs = all[begin.member].kernel->num_inputs();
  if (made_by != "ExpandDims" && !(made_by == "Pack" && inputs == 1)) return false;
  tf::Tensor by;
  if (!tf::GetNodeAttr(all[step.member].kernel->def(), "value", &by).ok() || by.NumElements() != 1) return false;
  const bool is_one = by.dtype() == tf::DT_INT32   ? *static_cast<const int32_t*>(by.data()) == 1
                      : by.dtype() == tf::DT_INT64 ? *static_cast<const int64_t*>(by.data()) == 1
                                                   : false;
  *argument = source.index;
  *index = all[begin.member].inputs[0];
  return is_one;
}

ValueRef LoopParts::InBody(const ValueRef& value) {
  if (value.member == ValueRef::kArgument || !IsBefore(value.member)) return value;
  const auto found = std::find_if(elements_.begin(), elements_.end(), [&](const ValueRef& v) { return v == value; });
  const int number = static_cast<int>(found - elements_.begin());
  if (found == elements_.end()) {
    elements_.push_back(value);
    Element& element = elements.emplace_back(Element{-1, 0});
    ValueRef index;
    if (IsRow(value, &element.row_of, &index)) {
      const Members::Member& slice = members_->members()[value.member];
      rows_.push_back(index);
      indices.push_back(slice.kernel->input_type(1));
    } else {
      element.row_of = -1;
    }
  }
  // Until the number of numbers is known.
  return {ValueRef::kArgument, -1 - number};
}

bool LoopParts::ReadBody() {
  const std::vector<Members::Member>& all = members_->members();
  std::vector<bool> needed(all.size(), false);
  const auto need = [&](const ValueRef& value) {
    if (value.member != ValueRef::kArgument) needed[value.member] = true;
  };
  std::vector<ValueRef> results;
  for (const ValueRef& next : next_on_device_) results.push_back(InBody(next));
  for (const auto& [member, input] : pushed_) results.push_back(InBody(all[member].inputs[input]));
  num_values = static_cast<int>(pushed_.size());
  for (const ValueRef& value : results) need(value);
  for (int member : effects_) needed[member] = true;
  Given given;
  for (size_t i = all.size(); i-- > 0;) {
    if (!needed[i]) continue;
    const Members::Member& member = all[i];
    if (!AreValues(member.kernel->input_types()) || !AreValues(member.kernel->output_types())) return false;
    for (size_t k = 0; k < member.inputs.size(); ++k) {
      const ValueRef& value = member.inputs[k];
      const std::pair<int, int> input(static_cast<int>(i), static_cast<int>(k));
      const bool is_resource = value.member == ValueRef::kArgument && value.index >= first_resource();
      if (member.input_attrs[k].on_host() && !is_resource && What(value) != Depends::kOnNothing) {
        if (OnlyCopiesNumber(member)) {
          given[input] = num_arguments + static_cast<int>(numbers_.size());
          numbers_.push_back(value);
          numbers.push_back(member.kernel->input_type(static_cast<int>(k)));
          continue;
        }
        if (What(value) == Depends::kOnCount) return false;
      }
      const ValueRef in_body = InBody(value);
      if (!(in_body == value)) given[input] = in_body.index;
      need(in_body);
    }
  }
  // Now it is.
  num_rows = static_cast<int>(rows_.size());
  std::vector<ValueRef> read_before_body;
  int row = 0;
  for (size_t i = 0; i < elements.size(); ++i) {
    if (elements[i].row_of < 0) read_before_body.push_back(elements_[i]);
    if (elements[i].row_of >= 0) elements[i].number = static_cast<int>(numbers_.size()) + row++;
  }
  const auto place = [&](int* argument) {
    if (*argument < 0) *argument = num_arguments + static_cast<int>(numbers_.size()) - 1 - *argument;
  };
  for (auto& [input, argument] : given) place(&argument);
  for (ValueRef& value : results) {
    if (value.member == ValueRef::kArgument) place(&value.index);
  }
  body = members_->Part(results, effects_, given);
  before = members_->Part(read_before_body);
  read_before = HostVariablesOf(before);
  return !body.members().empty();
}

bool LoopParts::ReadAfter() {
  Given given;
  for (size_t i = 0; i < pushed_.size(); ++i) given[pushed_[i]] = num_arguments + static_cast<int>(i);
  after = members_->Part(next_lists_, {}, given);
  for (const Members::Member& member : after.members()) {
    const std::string& op = member.kernel->type_string();
    if (op == "TensorListSetItem" || op == "TensorListPushBack" || op == "Identity") continue;
    if (!CountsOnHost(member) || op == kHostVariableOp) return false;
  }
  for (int argument : ArgumentsOf(after)) {
    if (argument >= num_host && argument < num_arguments && !IsIn(lists, argument)) return false;
  }
  read_after = HostVariablesOf(after);
  return true;
}

std::vector<int> LoopParts::HostVariablesOf(const Members& part) const {
  const std::set<int> arguments = ArgumentsOf(part);
  std::vector<int> places;
  for (size_t i = 0; i < host_variables.size(); ++i) {
    if (arguments.count(host_variables[i]) != 0) places.push_back(static_cast<int>(i));
  }
  return places;
}

bool LoopParts::ReadCounting() {
  std::vector<ValueRef> results{members_->results()[0]};
  results.insert(results.end(), next_on_host_.begin(), next_on_host_.end());
  results.insert(results.end(), numbers_.begin(), numbers_.end());
  results.insert(results.end(), rows_.begin(), rows_.end());
  const Members part = members_->Part(results);
  if (!std::all_of(part.members().begin(), part.members().end(), CountsOnHost)) return false;
  const std::set<int> arguments = ArgumentsOf(part);
  if (!arguments.empty() && *arguments.rbegin() >= num_host) return false;
  return counting.Make(part, host_variables);
}

bool LoopParts::ReadUses() {
  uses.resize(num_resources);
  is_resource_used.assign(num_resources, false);
  for (const Members::Member& member : body.members()) {
    std::vector<int> resources;
    for (const ValueRef& value : member.inputs) {
      const bool is_one =
          value.member == ValueRef::kArgument && value.index >= first_resource() && value.index < num_arguments;
      resources.push_back(is_one ? value.index - first_resource() : -1);
      if (is_one) is_resource_used[value.index - first_resource()] = true;
    }
    AddUses(member.kernel->def(), resources, &uses);
  }
  for (int argument : ArgumentsOf(body)) {
    if (argument < num_host) read_on_host.push_back(argument);
    if (argument >= num_host && argument < first_resource() && !IsValue(types_[argument])) return false;
  }
  return std::none_of(uses.begin(), uses.end(), [](const VariableUses& use) { return use.is_read_on_host; });
}

}  // namespace xpu::cluster

#include "tensorflow_plugin/graph/loop.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/util/device_name_utils.h"
#include "tensorflow_plugin/cluster/variable_uses.h"
#include "tensorflow_plugin/framework/op_traits.h"
#include "tensorflow_plugin/graph/node_traits.h"

namespace xpu::graph {
namespace {

namespace tf = tensorflow;

bool IsNumber(tf::DataType type) {
  return type == tf::DT_BOOL || type == tf::DT_INT32 || type == tf::DT_INT64 || type == tf::DT_FLOAT ||
         type == tf::DT_DOUBLE;
}

// Arithmetic of numbers that TensorFlow's kernels for the CPU do in host memory.
bool IsArithmeticOnHost(const tf::Node& node) {
  return TraitsOf(node.type_string()).Has(OpTrait::kCounts) &&
         std::all_of(node.input_types().begin(), node.input_types().end(), IsNumber) &&
         std::all_of(node.output_types().begin(), node.output_types().end(), IsNumber);
}

std::string NameOf(const tf::Node& node) { return absl::StrCat(node.type_string(), " ", node.name()); }
std::string DeviceOf(const tf::Node& node) {
  const std::string& name = node.assigned_device_name();
  tf::DeviceNameUtils::ParsedName device;
  if (!tf::DeviceNameUtils::ParseFullName(name, &device) || !device.has_type || !device.has_id) return name;
  return absl::StrCat(device.type, ":", device.id);
}

// True if the op at the end of an edge may write the variable whose handle it gets there.
bool Writes(const tf::Edge& e) {
  std::vector<int> variables(e.dst()->num_inputs(), -1);
  variables[e.dst_input()] = 0;
  std::vector<cluster::VariableUses> uses(1);
  cluster::AddUses(e.dst()->def(), variables, &uses);
  return uses[0].is_written;
}

// True if an op of the graph may write the variable whose handle an output gives.
bool MayBeWritten(const tf::Node& handle, int output) {
  std::vector<std::pair<const tf::Node*, int>> to_visit{{&handle, output}};
  while (!to_visit.empty()) {
    const auto [node, index] = to_visit.back();
    to_visit.pop_back();
    for (const tf::Edge* e : node->out_edges()) {
      if (e->IsControlEdge() || e->src_output() != index || !e->dst()->IsOp()) continue;
      if (e->dst()->IsEnter() || e->dst()->type_string() == "Identity") {
        to_visit.emplace_back(e->dst(), 0);
      } else if (Writes(*e)) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace

bool Loop::Read() {
  if (!ReadVariables()) return false;
  FindShadows();
  return ReadEnters() && NothingElseLeaves() && MemoryAgrees() && NumberMembers();
}

bool Loop::HasTransfer() const {
  return std::any_of(nodes_.begin(), nodes_.end(),
                     [](const tf::Node* node) { return IsTransfer(*node) && CannotBeMember(*node); });
}

bool Loop::CopiesToHost() {
  if (!ReadVariables()) return false;
  FindShadows();
  for (const tf::Node* node : nodes_) {
    for (const tf::Edge* e : node->out_edges()) {
      const bool is_read = !e->IsControlEdge() && e->dst() != condition_ && IsOnDevice(*e) && IsReadOnHost(*e);
      if (is_read && shadowed_.count(node) == 0) return true;
    }
  }
  return false;
}

bool Loop::KeepCountersOutOfClusters(std::set<const tf::Node*>* counted) {
  counted_ = counted;
  if (!ReadVariables()) return false;
  FindShadows();
  for (tf::Node* node : shadows_) {
    if (!node->IsConstant()) node->AddAttr(kCountedOnHost, true);
  }
  const size_t before = counted->size();
  for (const tf::Node* enter : enters_) {
    if (shadowed_.count(enter) != 0) counted->insert(enter);
  }
  return counted->size() > before;
}

bool Loop::ReadVariables() {
  for (tf::Node* node : nodes_) {
    if (IsOfHostVariable(*node)) continue;
    if (device_.empty()) device_ = node->assigned_device_name();
    if (node->assigned_device_name() != device_ || DeviceTypeOf(*node) != device_type_) {
      return CannotBeOneOp(absl::StrCat(NameOf(*node), " is on ", DeviceOf(*node)));
    }
  }
  for (tf::Node* node : nodes_) {
    if (!ReadMemory(*node)) return CannotBeOneOp(NameOf(*node) + " has no kernel for the device");
    if (!Sort(node)) return false;
  }
  if (condition_ == nullptr) return CannotBeOneOp("it has no condition");
  for (tf::Node* merge : merges_) {
    if (!AddVariable(merge)) return false;
  }
  return ReadSwitches();
}

bool Loop::IsOfHostVariable(const tf::Node& node) {
  const auto reads = [](const tf::Node& reader) {
    return DeviceTypeOf(reader) == tf::DEVICE_CPU && reader.type_string() == "ReadVariableOp" &&
           reader.output_type(0) == tf::DT_INT32 && InputsOf(reader)[0]->src()->IsEnter();
  };
  if (DeviceTypeOf(node) != tf::DEVICE_CPU) return false;
  if (!node.IsEnter() || node.output_type(0) != tf::DT_RESOURCE) return reads(node);
  return std::all_of(node.out_edges().begin(), node.out_edges().end(),
                     [&](const tf::Edge* e) { return e->IsControlEdge() || reads(*e->dst()); });
}

bool Loop::ReadMemory(const tf::Node& node) {
  MemoryTypes& memory = memory_[&node];
  if (DeviceTypeOf(node) == tf::DEVICE_CPU) {
    memory.inputs = memory.outputs = {tf::HOST_MEMORY};
    return true;
  }
  return MemoryOf(node, device_type_, &memory.inputs, &memory.outputs);
}

bool Loop::Sort(tf::Node* node) {
  if (node->IsEnter()) {
    enters_.push_back(node);
  } else if (node->IsMerge()) {
    merges_.push_back(node);
  } else if (node->IsLoopCond()) {
    if (condition_ != nullptr) return CannotBeOneOp("it has two conditions");
    condition_ = node;
  } else if (node->IsExit()) {
    exits_.push_back(node);
  } else if (!node->IsSwitch() && !node->IsNextIteration()) {
    members_.push_back(node);
    cannot_be_member_ = cannot_be_member_ || CannotBeMember(*node);
    const std::string why = IsOfHostVariable(*node) ? "" : WhyNotInLoop(*node, device_type_);
    if (!why.empty()) return CannotBeOneOp(absl::StrCat(NameOf(*node), " ", why));
  }
  return true;
}

bool Loop::AddVariable(tf::Node* merge) {
  Variable variable;
  for (const tf::Edge* e : InputsOf(*merge)) {
    if (e->src()->IsEnter() && variable.enter == nullptr) {
      variable.enter = e->src();
    } else if (e->src()->IsNextIteration() && variable.next == nullptr) {
      variable.next = e->src();
    } else {
      return CannotBeOneOp(NameOf(*merge) + " is of a condition within the loop");
    }
  }
  for (const tf::Edge* e : merge->out_edges()) {
    if (!e->IsControlEdge() && e->src_output() != 0) {
      return CannotBeOneOp(absl::StrCat(NameOf(*e->dst()), " reads which input ", NameOf(*merge), " had"));
    }
  }
  if (variable.enter == nullptr || variable.next == nullptr) {
    return CannotBeOneOp(NameOf(*merge) + " has no value for the next iteration");
  }
  variable_of_[merge] = static_cast<int>(variables_.size());
  variables_.push_back(std::move(variable));
  return true;
}

bool Loop::ReadSwitches() {
  for (tf::Node* node : nodes_) {
    if (!node->IsSwitch()) continue;
    const std::vector<const tf::Edge*> inputs = InputsOf(*node);
    const auto variable = variable_of_.find(inputs[0]->src());
    if (variable == variable_of_.end() || inputs[1]->src() != condition_) {
      return CannotBeOneOp(NameOf(*node) + " is of a condition within the loop");
    }
    switched_[node] = variable->second;
    for (const tf::Edge* e : node->out_edges()) {
      if (e->IsControlEdge()) continue;
      if ((e->src_output() == 0) != e->dst()->IsExit()) {
        return CannotBeOneOp(absl::StrCat(NameOf(*e->dst()), " reads ", NameOf(*node), " once the loop has ended"));
      }
    }
  }
  return true;
}

bool Loop::IsOnDevice(const tf::Edge& e) const {
  const auto memory = memory_.find(e.src());
  if (memory == memory_.end()) return !IsInHostMemory(e);
  return memory->second.outputs[e.src_output()] == tf::DEVICE_MEMORY;
}

bool Loop::IsReadOnHost(const tf::Edge& e) const {
  const tf::Node* reader = e.dst();
  if (reader->IsControlFlow()) {
    return counted_ != nullptr && reader->IsEnter() && counted_->count(reader) != 0 && inside_.count(reader) == 0;
  }
  return inside_.count(reader) != 0 && memory_.at(reader).inputs[e.dst_input()] == tf::HOST_MEMORY && IsOnDevice(e);
}

void Loop::FindShadows() {
  if (IsOnDevice(ConditionEdge()) && !AddShadows(ConditionEdge())) is_read_from_device_ = cannot_be_member_ = true;
  for (const tf::Node* node : nodes_) {
    for (const tf::Edge* e : node->out_edges()) {
      if (!e->IsControlEdge() && IsOnDevice(*e) && IsReadOnHost(*e)) AddShadows(*e);
    }
  }
  if (shadowed_.empty()) return;
  for (tf::Node* node : members_) {
    if (shadowed_.count(node) != 0) shadows_.push_back(node);
  }
  FindNeeded();
}

bool Loop::AddShadows(const tf::Edge& root) {
  std::set<const tf::Node*> added;
  std::vector<const tf::Edge*> to_visit{&root};
  while (!to_visit.empty()) {
    const tf::Edge& e = *to_visit.back();
    to_visit.pop_back();
    const tf::Node* node = e.src();
    if (!IsOnDevice(e) || shadowed_.count(node) != 0 || !added.insert(node).second) continue;
    if (node->IsSwitch() || node->IsMerge()) {
      const Variable& variable = variables_[node->IsMerge() ? variable_of_.at(node) : switched_.at(node)];
      // Its shadow begins with what it begins with.
      added.insert(variable.enter);
      to_visit.push_back(InputsOf(*variable.next)[0]);
    } else if (!node->IsEnter() && !ReadsVariable(*node)) {
      if (inside_.count(node) == 0 || !IsArithmeticOnHost(*node)) return false;
      const std::vector<const tf::Edge*> inputs = InputsOf(*node);
      to_visit.insert(to_visit.end(), inputs.begin(), inputs.end());
    }
  }
  shadowed_.insert(added.begin(), added.end());
  return true;
}

bool Loop::ReadsVariable(const tf::Node& node) const {
  if (node.type_string() != "ReadVariableOp" || !IsNumber(node.output_type(0))) return false;
  const tf::Node* enter = InputsOf(node)[0]->src();
  if (!enter->IsEnter() || inside_.count(enter) == 0) return false;
  const tf::Edge* handle = InputsOf(*enter)[0];
  // The handle may have come into a loop around this one.
  while (handle->src()->IsEnter()) handle = InputsOf(*handle->src())[0];
  return !MayBeWritten(*handle->src(), handle->src_output());
}

void Loop::FindNeeded() {
  std::vector<const tf::Edge*> to_visit;
  for (const tf::Node* node : nodes_) {
    const bool is_inner = node->IsSwitch() || node->IsMerge() || node->IsEnter() || node->IsNextIteration();
    if (is_inner || node == condition_ || shadowed_.count(node) != 0) continue;
    for (const tf::Edge* e : InputsOf(*node)) {
      if (!IsReadOnHost(*e)) to_visit.push_back(e);
    }
  }
  for (const Variable& variable : variables_) {
    if (shadowed_.count(variable.enter) == 0) to_visit.push_back(InputsOf(*variable.next)[0]);
  }
  while (!to_visit.empty()) {
    const tf::Node* node = to_visit.back()->src();
    to_visit.pop_back();
    if (shadowed_.count(node) == 0) continue;
    if (node->IsSwitch() || node->IsMerge()) {
      const Variable& variable = variables_[node->IsMerge() ? variable_of_.at(node) : switched_.at(node)];
      if (needed_.insert(variable.enter).second) to_visit.push_back(InputsOf(*variable.next)[0]);
    } else if (needed_.insert(node).second && !node->IsEnter()) {
      for (const tf::Edge* e : InputsOf(*node)) to_visit.push_back(e);
    }
  }
}

bool Loop::ReadEnters() {
  for (tf::Node* enter : enters_) {
    bool of_variable = false, constant = false;
    for (const Variable& variable : variables_) of_variable = of_variable || variable.enter == enter;
    if (!of_variable && !(tf::GetNodeAttr(enter->attrs(), "is_constant", &constant).ok() && constant)) {
      return CannotBeOneOp(NameOf(*enter) + " is there in the first iteration only");
    }
    const tf::DataType dtype = enter->output_type(0);
    if (of_variable && dtype == tf::DT_RESOURCE) {
      return CannotBeOneOp(NameOf(*enter) + " is a handle that may differ between iterations");
    }
    if (!CanBeInLoop(dtype)) return CannotBeOneOp(absl::StrCat(NameOf(*enter), " is of ", tf::DataTypeString(dtype)));
    if (shadowed_.count(enter) != 0) shadow_arguments_.push_back(enter);
    if (IsOnlyShadow(enter)) continue;
    std::vector<tf::Node*>& kind = dtype == tf::DT_RESOURCE ? resources_ : IsOnHost(*enter) ? host_ : on_device_;
    kind.push_back(enter);
  }
  int argument = 0;
  for (tf::Node* enter : host_) argument_of_[enter] = argument++;
  for (tf::Node* enter : shadow_arguments_) argument_of_shadow_[enter] = argument++;
  for (const std::vector<tf::Node*>* kind : {&on_device_, &resources_}) {
    for (tf::Node* enter : *kind) argument_of_[enter] = argument++;
  }
  return true;
}

bool Loop::NothingElseLeaves() {
  for (tf::Node* node : nodes_) {
    for (const tf::Edge* e : node->out_edges()) {
      if (node->IsExit() || !e->dst()->IsOp() || inside_.count(e->dst()) != 0) continue;
      if (e->dst()->IsEnter()) return CannotBeOneOp("the loop within it is not one op: " + e->dst()->name());
      return CannotBeOneOp(absl::StrCat(NameOf(*e->dst()), " after the loop reads ", NameOf(*node)));
    }
    for (const tf::Edge* e : node->in_edges()) {
      if (node->IsEnter() || !e->src()->IsOp() || inside_.count(e->src()) != 0) continue;
      if (e->src()->IsExit()) return CannotBeOneOp("the loop within it is not one op: " + e->src()->name());
      return CannotBeOneOp(absl::StrCat(NameOf(*node), " reads ", NameOf(*e->src()), " before the loop"));
    }
  }
  return true;
}

bool Loop::MemoryAgrees() {
  for (tf::Node* node : nodes_) {
    if (node->IsEnter()) continue;
    for (const tf::Edge* e : InputsOf(*node)) {
      if (IsOnlyShadow(node)) continue;
      if (node == condition_ && (is_read_from_device_ || shadowed_.count(e->src()) != 0)) continue;
      if (IsReadOnHost(*e) && shadowed_.count(e->src()) != 0) continue;
      const tf::MemoryType has = memory_.at(e->src()).outputs[e->src_output()];
      if (has == memory_.at(node).inputs[e->dst_input()]) continue;
      return CannotBeOneOp(absl::StrCat(NameOf(*node), " reads ", NameOf(*e->src()), ", which is copied to the ",
                                        has == tf::HOST_MEMORY ? "device" : "host", " in each iteration"));
    }
  }
  if (memory_.at(condition_).inputs[0] != tf::HOST_MEMORY) return CannotBeOneOp("its condition is on the device");
  return true;
}

Loop::Member Loop::ReadBy(const Member& member, const tf::Edge& e) const {
  return {e.src(), (member.is_shadow || IsReadOnHost(e)) && shadowed_.count(e.src()) != 0};
}

bool Loop::NumberMembers() {
  std::set<Member> needed;
  const Member root{condition_, true};
  std::vector<Member> to_visit{root};
  while (!to_visit.empty()) {
    const Member member = to_visit.back();
    to_visit.pop_back();
    for (const tf::Edge* e : member.node->in_edges()) {
      const tf::Node* source = e->src();
      // A shadow comes after nothing but what it reads.
      if (e->IsControlEdge() && (member.is_shadow && member.node != condition_)) continue;
      if (source->IsSwitch() || source->IsExit() || source->IsNextIteration()) {
        return CannotBeOneOp(NameOf(*source) + " comes before the condition");
      }
      if (!source->IsOp() || source->IsEnter() || source->IsMerge()) continue;
      const Member read = e->IsControlEdge() ? Member{source, false} : ReadBy(member, *e);
      if (!read.is_shadow && IsOnlyShadow(source)) continue;
      if (needed.insert(read).second) to_visit.push_back(read);
    }
  }
  for (const tf::Node* node : members_) {
    if (shadowed_.count(node) != 0) all_members_.push_back({node, true});
    if (!IsOnlyShadow(node)) all_members_.push_back({node, false});
  }
  std::stable_partition(all_members_.begin(), all_members_.end(),
                        [&](const Member& member) { return needed.count(member) != 0; });
  condition_members_ = static_cast<int>(needed.size());
  for (size_t i = 0; i < all_members_.size(); ++i) number_of_[all_members_[i]] = static_cast<int>(i);
  return true;
}

}  // namespace xpu::graph

#include "tensorflow_plugin/graph/whole_loops.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/graph/control_flow.h"
#include "tensorflow_plugin/cluster/cluster_op.h"
#include "tensorflow_plugin/cluster/host_variable_op.h"
#include "tensorflow_plugin/cluster/loop_op.h"
#include "tensorflow_plugin/cluster/members.h"
#include "tensorflow_plugin/cluster/variable_uses.h"
#include "tensorflow_plugin/framework/kernel_labels.h"
#include "tensorflow_plugin/framework/op_traits.h"
#include "tensorflow_plugin/graph/node_traits.h"
#include "tensorflow_plugin/graph/nodes.h"
#include "tensorflow_plugin/graph/wait_order.h"

namespace xpu::graph {
namespace {

namespace tf = tensorflow;
using cluster::ValueRef;

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

// The nodes of one frame, read as a loop.
class Loop {
 public:
  // `nodes` are in an order that may run.
  Loop(tf::Graph* graph, const std::string& device_type, const std::vector<tf::Node*>& nodes)
      : graph_(*graph), device_type_(device_type), nodes_(nodes), inside_(nodes.begin(), nodes.end()) {}

  // False: there is something in it that one op could not do.
  bool Read() {
    if (!ReadVariables()) return false;
    FindShadows();
    return ReadEnters() && NothingElseLeaves() && MemoryAgrees() && NumberMembers();
  }

  // `counted`: the Enters of all loops whose values the host has to know. True if there are more of them now.
  bool KeepCountersOutOfClusters(std::set<const tf::Node*>* counted) {
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

  // Puts the op in its place, which Read has found to be possible.
  absl::Status Replace() {
    tf::NodeDef def;
    def.set_op(cluster::kLoopOp);
    Describe(&def);
    tf::Node* op = nullptr;
    TF_RETURN_IF_ERROR(AddOp(&graph_, "xpu_loop_", device_, std::move(def), &op));
    TF_RETURN_IF_ERROR(Connect(op));
    for (tf::Node* node : nodes_) graph_.RemoveNode(node);
    return absl::OkStatus();
  }

 private:
  struct Variable {
    tf::Node* enter = nullptr;
    tf::Node* next = nullptr;  // the NextIteration
  };

  bool ReadVariables() {
    for (tf::Node* node : nodes_) {
      if (IsOfHostVariable(*node)) continue;
      if (device_.empty()) device_ = node->assigned_device_name();
      if (node->assigned_device_name() != device_ || DeviceTypeOf(*node) != device_type_) return false;
    }
    for (tf::Node* node : nodes_) {
      if (!ReadMemory(*node) || !Sort(node)) return false;
    }
    if (condition_ == nullptr) return false;
    for (tf::Node* merge : merges_) {
      if (!AddVariable(merge)) return false;
    }
    return ReadSwitches();
  }

  // True if a node reads a variable of 32-bit integers, which TensorFlow has on the CPU, or brings its handle to those
  // that do.
  static bool IsOfHostVariable(const tf::Node& node) {
    const auto reads = [](const tf::Node& reader) {
      return DeviceTypeOf(reader) == tf::DEVICE_CPU && reader.type_string() == "ReadVariableOp" &&
             reader.output_type(0) == tf::DT_INT32 && InputsOf(reader)[0]->src()->IsEnter();
    };
    if (DeviceTypeOf(node) != tf::DEVICE_CPU) return false;
    if (!node.IsEnter() || node.output_type(0) != tf::DT_RESOURCE) return reads(node);
    return std::all_of(node.out_edges().begin(), node.out_edges().end(),
                       [&](const tf::Edge* e) { return e->IsControlEdge() || reads(*e->dst()); });
  }

  bool ReadMemory(const tf::Node& node) {
    MemoryTypes& memory = memory_[&node];
    if (DeviceTypeOf(node) == tf::DEVICE_CPU) {
      memory.inputs = memory.outputs = {tf::HOST_MEMORY};
      return true;
    }
    return MemoryOf(node, device_type_, &memory.inputs, &memory.outputs);
  }

  bool Sort(tf::Node* node) {
    if (node->IsEnter()) {
      enters_.push_back(node);
    } else if (node->IsMerge()) {
      merges_.push_back(node);
    } else if (node->IsLoopCond()) {
      if (condition_ != nullptr) return false;
      condition_ = node;
    } else if (node->IsExit()) {
      exits_.push_back(node);
    } else if (!node->IsSwitch() && !node->IsNextIteration()) {
      members_.push_back(node);
      cannot_be_member_ = cannot_be_member_ || CannotBeMember(*node);
      return IsOfHostVariable(*node) || CanBeInLoop(*node, device_type_);
    }
    return true;
  }

  bool AddVariable(tf::Node* merge) {
    Variable variable;
    for (const tf::Edge* e : InputsOf(*merge)) {
      if (e->src()->IsEnter() && variable.enter == nullptr) {
        variable.enter = e->src();
      } else if (e->src()->IsNextIteration() && variable.next == nullptr) {
        variable.next = e->src();
      } else {
        return false;  // a condition within the loop
      }
    }
    for (const tf::Edge* e : merge->out_edges()) {
      if (!e->IsControlEdge() && e->src_output() != 0) return false;  // which input it was
    }
    if (variable.enter == nullptr || variable.next == nullptr) return false;
    variable_of_[merge] = static_cast<int>(variables_.size());
    variables_.push_back(std::move(variable));
    return true;
  }

  bool ReadSwitches() {
    for (tf::Node* node : nodes_) {
      if (!node->IsSwitch()) continue;
      const std::vector<const tf::Edge*> inputs = InputsOf(*node);
      const auto variable = variable_of_.find(inputs[0]->src());
      if (variable == variable_of_.end() || inputs[1]->src() != condition_) return false;
      switched_[node] = variable->second;
      for (const tf::Edge* e : node->out_edges()) {
        if (e->IsControlEdge()) continue;
        if ((e->src_output() == 0) != e->dst()->IsExit()) return false;
      }
    }
    return true;
  }

  const tf::Edge& ConditionEdge() const { return *InputsOf(*condition_)[0]; }
  bool IsOnDevice(const tf::Edge& e) const {
    const auto memory = memory_.find(e.src());
    if (memory == memory_.end()) return !IsInHostMemory(e);
    return memory->second.outputs[e.src_output()] == tf::DEVICE_MEMORY;
  }

  // True if an op of the loop needs a value in host memory that is the device's.
  bool IsReadOnHost(const tf::Edge& e) const {
    const tf::Node* reader = e.dst();
    if (reader->IsControlFlow()) {
      return counted_ != nullptr && reader->IsEnter() && counted_->count(reader) != 0 && inside_.count(reader) == 0;
    }
    return inside_.count(reader) != 0 && memory_.at(reader).inputs[e.dst_input()] == tf::HOST_MEMORY && IsOnDevice(e);
  }

  // The condition may be the device's, by its types alone: of 64-bit integers and floating-point numbers. If all that
  // it depends on is counted by plain ops, the host counts along, so that no iteration has to ask the device. Each such
  // node has a shadow, which computes the same in host memory. If there is more to it, the condition is read from the
  // device. The same holds for other values that ops need in host memory, such as the bounds of a loop within.
  void FindShadows() {
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

  // False if no plain ops lead to the value at an edge. Then there is nothing new.
  bool AddShadows(const tf::Edge& root) {
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

  // True if a node reads a number that stays as it is while the loop runs, for all that the graph says.
  bool ReadsVariable(const tf::Node& node) const {
    if (node.type_string() != "ReadVariableOp" || !IsNumber(node.output_type(0))) return false;
    const tf::Node* enter = InputsOf(node)[0]->src();
    if (!enter->IsEnter() || inside_.count(enter) == 0) return false;
    const tf::Edge* handle = InputsOf(*enter)[0];
    // The handle may have come into a loop around this one.
    while (handle->src()->IsEnter()) handle = InputsOf(*handle->src())[0];
    return !MayBeWritten(*handle->src(), handle->src_output());
  }

  // Which of what has a shadow the device needs all the same.
  void FindNeeded() {
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
  bool IsShadowAlone(const tf::Node* node) const { return shadowed_.count(node) != 0 && needed_.count(node) == 0; }

  // Those that are no variable's hold the same in all iterations.
  bool ReadEnters() {
    for (tf::Node* enter : enters_) {
      bool of_variable = false, constant = false;
      for (const Variable& variable : variables_) of_variable = of_variable || variable.enter == enter;
      if (!of_variable && !(tf::GetNodeAttr(enter->attrs(), "is_constant", &constant).ok() && constant)) return false;
      const tf::DataType dtype = enter->output_type(0);
      if (of_variable && dtype == tf::DT_RESOURCE) return false;
      if (!CanBeInLoop(dtype)) return false;
      if (shadowed_.count(enter) != 0) shadow_arguments_.push_back(enter);
      if (IsShadowAlone(enter)) continue;
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

  bool IsOnHost(const tf::Node& node) const { return memory_.at(&node).outputs[0] == tf::HOST_MEMORY; }

  bool NothingElseLeaves() const {
    for (tf::Node* node : nodes_) {
      for (const tf::Edge* e : node->out_edges()) {
        if (!node->IsExit() && e->dst()->IsOp() && inside_.count(e->dst()) == 0) return false;
      }
      for (const tf::Edge* e : node->in_edges()) {
        if (!node->IsEnter() && e->src()->IsOp() && inside_.count(e->src()) == 0) return false;
      }
    }
    return true;
  }

  // Otherwise TensorFlow would copy between host and device in every iteration.
  bool MemoryAgrees() const {
    for (tf::Node* node : nodes_) {
      if (node->IsEnter()) continue;
      for (const tf::Edge* e : InputsOf(*node)) {
        if (IsShadowAlone(node)) continue;
        if (node == condition_ && (is_read_from_device_ || shadowed_.count(e->src()) != 0)) continue;
        if (IsReadOnHost(*e) && shadowed_.count(e->src()) != 0) continue;
        if (memory_.at(e->src()).outputs[e->src_output()] != memory_.at(node).inputs[e->dst_input()]) return false;
      }
    }
    return memory_.at(condition_).inputs[0] == tf::HOST_MEMORY;
  }

  // A member of the op: a node, or its shadow.
  struct Member {
    const tf::Node* node;
    bool is_shadow;
    bool operator<(const Member& o) const { return std::tie(node, is_shadow) < std::tie(o.node, o.is_shadow); }
  };
  // The value that a member reads at an edge.
  Member ReadBy(const Member& member, const tf::Edge& e) const {
    return {e.src(), (member.is_shadow || IsReadOnHost(e)) && shadowed_.count(e.src()) != 0};
  }

  // The ops that the condition depends on come first; they must not depend on the condition.
  bool NumberMembers() {
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
        if (source->IsSwitch() || source->IsExit() || source->IsNextIteration()) return false;
        if (!source->IsOp() || source->IsEnter() || source->IsMerge()) continue;
        const Member read = e->IsControlEdge() ? Member{source, false} : ReadBy(member, *e);
        if (!read.is_shadow && IsShadowAlone(source)) continue;
        if (needed.insert(read).second) to_visit.push_back(read);
      }
    }
    for (const tf::Node* node : members_) {
      if (shadowed_.count(node) != 0) all_members_.push_back({node, true});
      if (!IsShadowAlone(node)) all_members_.push_back({node, false});
    }
    std::stable_partition(all_members_.begin(), all_members_.end(),
                          [&](const Member& member) { return needed.count(member) != 0; });
    condition_members_ = static_cast<int>(needed.size());
    for (size_t i = 0; i < all_members_.size(); ++i) number_of_[all_members_[i]] = static_cast<int>(i);
    return true;
  }

  ValueRef SourceOf(const Member& reader, const tf::Edge& e) const {
    const Member read = ReadBy(reader, e);
    const auto member = number_of_.find(read);
    if (member != number_of_.end()) return {member->second, e.src_output()};
    const tf::Node* source = e.src();
    if (!source->IsEnter()) {
      source = variables_[source->IsMerge() ? variable_of_.at(source) : switched_.at(source)].enter;
    }
    return {ValueRef::kArgument, (read.is_shadow ? argument_of_shadow_ : argument_of_).at(source)};
  }

  static void MakeShadow(tf::NodeDef* node) {
    node->set_name(node->name() + "/on_host");
    if (node->op() == "ReadVariableOp") {
      node->set_op(cluster::kHostVariableOp);
      return;
    }
    if (node->op() == "Const") node->set_op("HostConst");
    node->mutable_attr()->erase(labels::kAttribute);
    tf::AddNodeAttr(cluster::attr::kOnCpu, true, node);
  }

  static std::vector<tf::DataType> TypesOf(const std::vector<tf::Node*>& nodes) {
    std::vector<tf::DataType> types;
    for (const tf::Node* node : nodes) types.push_back(tf::BaseType(node->output_type(0)));
    return types;
  }

  void Describe(tf::NodeDef* def) {
    tf::GraphDef graph;
    for (const Member& member : all_members_) {
      tf::NodeDef* node = graph.add_node();
      *node = member.node->def();
      node->clear_input();
      for (const tf::Edge* e : InputsOf(*member.node)) node->add_input(ToString(SourceOf(member, *e)));
      if (member.is_shadow) MakeShadow(node);
      if (IsOfHostVariable(*member.node)) node->set_op(cluster::kHostVariableOp);
    }
    std::vector<std::string> results{ToString(SourceOf({condition_, true}, ConditionEdge()))};
    std::vector<int> variables, exits;
    std::map<const tf::Node*, int> number_of_variable;  // by its Enter
    for (const bool is_shadow : {false, true}) {
      const auto& arguments = is_shadow ? argument_of_shadow_ : argument_of_;
      for (const Variable& variable : variables_) {
        const auto argument = arguments.find(variable.enter);
        if (argument == arguments.end()) continue;
        number_of_variable.emplace(variable.enter, static_cast<int>(variables.size()));
        variables.push_back(argument->second);
        results.push_back(ToString(SourceOf({variable.next, is_shadow}, *InputsOf(*variable.next)[0])));
      }
    }
    std::stable_partition(exits_.begin(), exits_.end(), [this](tf::Node* exit) { return IsOnHost(*exit); });
    std::vector<tf::DataType> host_results, device_results;
    for (const tf::Node* exit : exits_) {
      exits.push_back(number_of_variable.at(variables_[switched_.at(InputsOf(*exit)[0]->src())].enter));
      (IsOnHost(*exit) ? host_results : device_results).push_back(tf::BaseType(exit->output_type(0)));
    }
    std::vector<tf::Node*> host = host_;
    host.insert(host.end(), shadow_arguments_.begin(), shadow_arguments_.end());
    tf::AddNodeAttr(cluster::attr::kHost, TypesOf(host), def);
    for (const char* transferred : {cluster::attr::kUploaded, cluster::attr::kFetched}) {
      tf::AddNodeAttr(transferred, std::vector<tf::DataType>(), def);
    }
    tf::AddNodeAttr(cluster::attr::kDevice, TypesOf(on_device_), def);
    tf::AddNodeAttr(cluster::attr::kResources, static_cast<int64_t>(resources_.size()), def);
    tf::AddNodeAttr(cluster::attr::kHostResults, host_results, def);
    tf::AddNodeAttr(cluster::attr::kDeviceResults, device_results, def);
    tf::AddNodeAttr(cluster::attr::kMembers, graph.SerializeAsString(), def);
    tf::AddNodeAttr(cluster::attr::kResults, results, def);
    tf::AddNodeAttr(cluster::attr::kVariables, variables, def);
    tf::AddNodeAttr(cluster::attr::kExits, exits, def);
    tf::AddNodeAttr(cluster::attr::kNoMember, cannot_be_member_, def);
    tf::AddNodeAttr(cluster::attr::kConditionOnDevice, is_read_from_device_, def);
    tf::AddNodeAttr(cluster::attr::kConditionMembers, static_cast<int64_t>(condition_members_), def);
  }

  // Nothing need be copied from the device.
  absl::Status AddConstantOnHost(const tf::Node& constant, tf::Node** on_host) {
    tf::NodeDef def = constant.def();
    def.set_op("HostConst");
    def.clear_input();
    TF_RETURN_IF_ERROR(AddOp(&graph_, "xpu_constant_", device_, std::move(def), on_host));
    for (const tf::Edge* e : constant.in_edges()) graph_.AddControlEdge(e->src(), *on_host);
    return absl::OkStatus();
  }

  absl::Status Connect(tf::Node* op) {
    for (const auto& [enter, argument] : argument_of_) {
      const tf::Edge* from = InputsOf(*enter)[0];
      graph_.AddEdge(from->src(), from->src_output(), op, argument);
    }
    for (const auto& [enter, argument] : argument_of_shadow_) {
      const tf::Edge* from = InputsOf(*enter)[0];
      tf::Node* source = from->src();
      if (source->IsConstant()) TF_RETURN_IF_ERROR(AddConstantOnHost(*source, &source));
      graph_.AddEdge(source, from->src_output(), op, argument);
    }
    std::set<tf::Node*> before, after;
    for (const tf::Node* enter : enters_) {
      for (const tf::Edge* e : enter->in_edges()) {
        if (e->IsControlEdge() && e->src()->IsOp()) before.insert(e->src());
      }
    }
    for (size_t i = 0; i < exits_.size(); ++i) {
      std::vector<const tf::Edge*> readers;
      for (const tf::Edge* e : exits_[i]->out_edges()) {
        if (!e->dst()->IsOp()) continue;
        if (e->IsControlEdge()) {
          after.insert(e->dst());
        } else {
          readers.push_back(e);
        }
      }
      RedirectReaders(&graph_, readers, op, static_cast<int>(i));
    }
    for (tf::Node* node : before) graph_.AddControlEdge(node, op);
    for (tf::Node* node : after) graph_.AddControlEdge(op, node);
    if (before.empty() && argument_of_.empty()) graph_.AddControlEdge(graph_.source_node(), op);
    graph_.AddControlEdge(op, graph_.sink_node());
    return absl::OkStatus();
  }

  tf::Graph& graph_;
  const std::string& device_type_;
  const std::vector<tf::Node*>& nodes_;
  const std::set<const tf::Node*> inside_;
  const std::set<const tf::Node*>* counted_ = nullptr;
  std::string device_;
  std::map<const tf::Node*, MemoryTypes> memory_;
  std::vector<tf::Node*> enters_, merges_, exits_, members_;
  tf::Node* condition_ = nullptr;  // the LoopCond
  bool is_read_from_device_ = false;
  bool cannot_be_member_ = false;  // an op that it depends on may not be captured
  std::vector<Variable> variables_;
  std::map<const tf::Node*, int> variable_of_, switched_;  // of merges, of switches: numbers of variables
  std::vector<tf::Node*> host_, on_device_, resources_;    // arguments: their Enters
  std::map<const tf::Node*, int> argument_of_;             // of Enters
  std::map<Member, int> number_of_;
  std::set<const tf::Node*> needed_;         // of those below, by the device, too
  std::set<const tf::Node*> shadowed_;       // whose values decide the condition, and which are the device's
  std::vector<tf::Node*> shadows_;           // members among them
  std::vector<tf::Node*> shadow_arguments_;  // and Enters
  std::map<const tf::Node*, int> argument_of_shadow_;
  std::vector<Member> all_members_;
  int condition_members_ = 0;
};

}  // namespace

namespace {

// The nodes of each loop, in an order that may run.
absl::Status FindFrames(tf::Graph* graph, std::map<std::string, std::vector<tf::Node*>>* frames) {
  std::vector<tf::ControlFlowInfo> info;
  TF_RETURN_IF_ERROR(tf::BuildControlFlowInfo(graph, &info));
  for (tf::Node* node : TopologicalOrder(*graph)) {
    const std::string& frame = info[node->id()].frame_name;
    if (!frame.empty()) (*frames)[frame].push_back(node);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status KeepCountersOutOfClusters(tf::Graph* graph, const std::string& device_type) {
  std::map<std::string, std::vector<tf::Node*>> frames;
  TF_RETURN_IF_ERROR(FindFrames(graph, &frames));
  // A loop around others counts along with them.
  std::set<const tf::Node*> counted;
  for (bool grew = true; grew;) {
    grew = false;
    for (const auto& [name, nodes] : frames) {
      grew |= Loop(graph, device_type, nodes).KeepCountersOutOfClusters(&counted);
    }
  }
  return absl::OkStatus();
}

absl::Status MakeLoopOps(tf::Graph* graph, const std::string& device_type) {
  // A loop around others can be one op once they are.
  for (bool changed = true; changed;) {
    changed = false;
    std::vector<tf::ControlFlowInfo> info;
    TF_RETURN_IF_ERROR(tf::BuildControlFlowInfo(graph, &info));
    const std::vector<tf::Node*> order = TopologicalOrder(*graph);
    const WaitOrder wait_order(*graph, order, info);
    std::map<std::string, std::vector<tf::Node*>> frames;
    for (tf::Node* node : order) {
      const std::string& frame = info[node->id()].frame_name;
      if (!frame.empty()) frames[frame].push_back(node);
    }
    for (const auto& [name, nodes] : frames) {
      // A loop that is one op starts when all its arguments are there.
      std::vector<int> group_of(info.size(), -1);
      for (const tf::Node* node : nodes) group_of[node->id()] = 0;
      Loop loop(graph, device_type, nodes);
      if (!loop.Read() || !wait_order.PointsThatDelayOthers(group_of).empty()) continue;
      TF_RETURN_IF_ERROR(loop.Replace());
      changed = true;
      if (wait_order.HasPoints()) break;  // it is of the nodes that were there
    }
  }
  return absl::OkStatus();
}

}  // namespace xpu::graph

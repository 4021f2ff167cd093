#include "tensorflow_plugin/graph/whole_loops.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/graph/control_flow.h"
#include "tensorflow_plugin/cluster/cluster_op.h"
#include "tensorflow_plugin/cluster/loop_op.h"
#include "tensorflow_plugin/cluster/members.h"
#include "tensorflow_plugin/graph/candidates.h"
#include "tensorflow_plugin/graph/nodes.h"
#include "tensorflow_plugin/graph/wait_order.h"

namespace xpu::graph {
namespace {

namespace tf = tensorflow;
using cluster::Source;

// The nodes of one frame, read as a loop.
class Loop {
 public:
  // `nodes` are in an order that may run.
  Loop(tf::Graph* graph, const std::string& device_type, const std::vector<tf::Node*>& nodes)
      : graph_(*graph), device_type_(device_type), nodes_(nodes), inside_(nodes.begin(), nodes.end()) {}

  // False: there is something in it that one op could not do.
  bool Read() {
    device_ = nodes_[0]->assigned_device_name();
    for (tf::Node* node : nodes_) {
      if (node->assigned_device_name() != device_ || DeviceTypeOf(*node) != device_type_) return false;
      if (!ReadMemory(*node) || !Sort(node)) return false;
    }
    if (condition_ == nullptr) return false;
    for (tf::Node* merge : merges_) {
      if (!AddVariable(merge)) return false;
    }
    return ReadSwitches() && ReadEnters() && NothingElseLeaves() && MemoryAgrees() && NumberMembers();
  }

  // Puts the op in its place, which Read has found to be possible.
  absl::Status Replace() {
    tf::NodeDef def;
    def.set_op(cluster::kLoopOp);
    Describe(&def);
    tf::Node* op = nullptr;
    TF_RETURN_IF_ERROR(AddOp(&graph_, "xpu_loop_", device_, std::move(def), &op));
    Connect(op);
    for (tf::Node* node : nodes_) graph_.RemoveNode(node);
    return absl::OkStatus();
  }

 private:
  struct Variable {
    tf::Node* enter = nullptr;
    tf::Node* next = nullptr;  // the NextIteration
  };

  struct Memory {
    tf::MemoryTypeVector inputs, outputs;
  };

  bool ReadMemory(const tf::Node& node) {
    Memory& memory = memory_[&node];
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
      return CanBeInLoop(*node, device_type_);
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

  // Those that are no variable's hold the same in all iterations.
  bool ReadEnters() {
    for (tf::Node* enter : enters_) {
      bool of_variable = false, constant = false;
      for (const Variable& variable : variables_) of_variable = of_variable || variable.enter == enter;
      if (!of_variable && !(tf::GetNodeAttr(enter->attrs(), "is_constant", &constant).ok() && constant)) return false;
      const tf::DataType dtype = enter->output_type(0);
      if (of_variable && dtype == tf::DT_RESOURCE) return false;
      if (!CanBeInLoop(dtype)) return false;
      std::vector<tf::Node*>& kind = dtype == tf::DT_RESOURCE ? resources_ : IsOnHost(*enter) ? host_ : on_device_;
      kind.push_back(enter);
    }
    int argument = 0;
    for (const std::vector<tf::Node*>* kind : {&host_, &on_device_, &resources_}) {
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
        if (memory_.at(e->src()).outputs[e->src_output()] != memory_.at(node).inputs[e->dst_input()]) return false;
      }
    }
    return memory_.at(condition_).inputs[0] == tf::HOST_MEMORY;
  }

  // What the condition needs comes first; that must not need the condition.
  bool NumberMembers() {
    std::set<const tf::Node*> needed;
    std::vector<const tf::Node*> to_visit{condition_};
    while (!to_visit.empty()) {
      const tf::Node* node = to_visit.back();
      to_visit.pop_back();
      for (const tf::Edge* e : node->in_edges()) {
        const tf::Node* source = e->src();
        if (source->IsSwitch() || source->IsExit() || source->IsNextIteration()) return false;
        if (!source->IsOp() || source->IsEnter() || source->IsMerge() || !needed.insert(source).second) continue;
        to_visit.push_back(source);
      }
    }
    std::stable_partition(members_.begin(), members_.end(), [&](tf::Node* node) { return needed.count(node) != 0; });
    condition_members_ = static_cast<int>(needed.size());
    for (size_t i = 0; i < members_.size(); ++i) number_of_[members_[i]] = static_cast<int>(i);
    return true;
  }

  Source SourceOf(const tf::Edge& e) const {
    const tf::Node* source = e.src();
    const auto member = number_of_.find(source);
    if (member != number_of_.end()) return {member->second, e.src_output()};
    if (!source->IsEnter()) {
      source = variables_[source->IsMerge() ? variable_of_.at(source) : switched_.at(source)].enter;
    }
    return {Source::kArgument, argument_of_.at(source)};
  }

  static std::vector<tf::DataType> TypesOf(const std::vector<tf::Node*>& nodes) {
    std::vector<tf::DataType> types;
    for (const tf::Node* node : nodes) types.push_back(tf::BaseType(node->output_type(0)));
    return types;
  }

  void Describe(tf::NodeDef* def) {
    tf::GraphDef graph;
    for (tf::Node* node : members_) {
      tf::NodeDef* member = graph.add_node();
      *member = node->def();
      member->clear_input();
      for (const tf::Edge* e : InputsOf(*node)) member->add_input(ToString(SourceOf(*e)));
    }
    std::vector<std::string> results{ToString(SourceOf(*InputsOf(*condition_)[0]))};
    std::vector<int> variables, exits;
    for (const Variable& variable : variables_) {
      variables.push_back(argument_of_.at(variable.enter));
      results.push_back(ToString(SourceOf(*InputsOf(*variable.next)[0])));
    }
    std::stable_partition(exits_.begin(), exits_.end(), [this](tf::Node* exit) { return IsOnHost(*exit); });
    std::vector<tf::DataType> host_results, device_results;
    for (const tf::Node* exit : exits_) {
      exits.push_back(switched_.at(InputsOf(*exit)[0]->src()));
      (IsOnHost(*exit) ? host_results : device_results).push_back(tf::BaseType(exit->output_type(0)));
    }
    tf::AddNodeAttr(cluster::attr::kHost, TypesOf(host_), def);
    for (const char* crossing : {cluster::attr::kUploaded, cluster::attr::kFetched}) {
      tf::AddNodeAttr(crossing, std::vector<tf::DataType>(), def);
    }
    tf::AddNodeAttr(cluster::attr::kDevice, TypesOf(on_device_), def);
    tf::AddNodeAttr(cluster::attr::kResources, static_cast<int64_t>(resources_.size()), def);
    tf::AddNodeAttr(cluster::attr::kHostResults, host_results, def);
    tf::AddNodeAttr(cluster::attr::kDeviceResults, device_results, def);
    tf::AddNodeAttr(cluster::attr::kMembers, graph.SerializeAsString(), def);
    tf::AddNodeAttr(cluster::attr::kResults, results, def);
    tf::AddNodeAttr(cluster::attr::kVariables, variables, def);
    tf::AddNodeAttr(cluster::attr::kExits, exits, def);
    tf::AddNodeAttr(cluster::attr::kConditionMembers, static_cast<int64_t>(condition_members_), def);
  }

  void Connect(tf::Node* op) {
    for (const auto& [enter, argument] : argument_of_) {
      const tf::Edge* from = InputsOf(*enter)[0];
      graph_.AddEdge(from->src(), from->src_output(), op, argument);
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
      ReadInstead(&graph_, readers, op, static_cast<int>(i));
    }
    for (tf::Node* node : before) graph_.AddControlEdge(node, op);
    for (tf::Node* node : after) graph_.AddControlEdge(op, node);
    if (before.empty() && argument_of_.empty()) graph_.AddControlEdge(graph_.source_node(), op);
    graph_.AddControlEdge(op, graph_.sink_node());
  }

  tf::Graph& graph_;
  const std::string& device_type_;
  const std::vector<tf::Node*>& nodes_;
  const std::set<const tf::Node*> inside_;
  std::string device_;
  std::map<const tf::Node*, Memory> memory_;
  std::vector<tf::Node*> enters_, merges_, exits_, members_;
  tf::Node* condition_ = nullptr;  // the LoopCond
  std::vector<Variable> variables_;
  std::map<const tf::Node*, int> variable_of_, switched_;  // of merges, of switches: numbers of variables
  std::vector<tf::Node*> host_, on_device_, resources_;    // arguments: their Enters
  std::map<const tf::Node*, int> argument_of_;             // of Enters
  std::map<const tf::Node*, int> number_of_;               // of members
  int condition_members_ = 0;
};

}  // namespace

absl::Status MakeLoopOps(tf::Graph* graph, const std::string& device_type) {
  // A loop around others can be one op once they are.
  for (bool changed = true; changed;) {
    changed = false;
    std::vector<tf::ControlFlowInfo> info;
    TF_RETURN_IF_ERROR(tf::BuildControlFlowInfo(graph, &info));
    const std::vector<tf::Node*> order = InOrder(*graph);
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
    }
  }
  return absl::OkStatus();
}

}  // namespace xpu::graph

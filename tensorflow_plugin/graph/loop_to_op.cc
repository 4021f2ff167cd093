#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow_plugin/cluster/cluster_op.h"
#include "tensorflow_plugin/cluster/host_variable_op.h"
#include "tensorflow_plugin/cluster/loop_op.h"
#include "tensorflow_plugin/framework/kernel_labels.h"
#include "tensorflow_plugin/graph/loop.h"

namespace xpu::graph {
namespace {

namespace tf = tensorflow;
using cluster::ValueRef;

void MakeShadow(tf::NodeDef* node) {
  node->set_name(node->name() + "/on_host");
  if (node->op() == "ReadVariableOp") {
    node->set_op(cluster::kHostVariableOp);
    return;
  }
  if (node->op() == "Const") node->set_op("HostConst");
  node->mutable_attr()->erase(labels::kAttribute);
  tf::AddNodeAttr(cluster::attr::kOnCpu, true, node);
}

std::vector<tf::DataType> TypesOf(const std::vector<tf::Node*>& nodes) {
  std::vector<tf::DataType> types;
  for (const tf::Node* node : nodes) types.push_back(tf::BaseType(node->output_type(0)));
  return types;
}

}  // namespace

absl::Status Loop::Replace() {
  tf::NodeDef def;
  def.set_op(cluster::kLoopOp);
  Describe(&def);
  tf::Node* op = nullptr;
  TF_RETURN_IF_ERROR(AddOp(&graph_, "xpu_loop_", device_, std::move(def), &op));
  TF_RETURN_IF_ERROR(Connect(op));
  for (tf::Node* node : nodes_) graph_.RemoveNode(node);
  return absl::OkStatus();
}

ValueRef Loop::SourceOf(const Member& reader, const tf::Edge& e) const {
  const Member read = ReadBy(reader, e);
  const auto member = number_of_.find(read);
  if (member != number_of_.end()) return {member->second, e.src_output()};
  const tf::Node* source = e.src();
  if (!source->IsEnter()) {
    source = variables_[source->IsMerge() ? variable_of_.at(source) : switched_.at(source)].enter;
  }
  return {ValueRef::kArgument, (read.is_shadow ? argument_of_shadow_ : argument_of_).at(source)};
}

void Loop::Describe(tf::NodeDef* def) {
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

absl::Status Loop::AddConstantOnHost(const tf::Node& constant, tf::Node** on_host) {
  tf::NodeDef def = constant.def();
  def.set_op("HostConst");
  def.clear_input();
  TF_RETURN_IF_ERROR(AddOp(&graph_, "xpu_constant_", device_, std::move(def), on_host));
  for (const tf::Edge* e : constant.in_edges()) graph_.AddControlEdge(e->src(), *on_host);
  return absl::OkStatus();
}

absl::Status Loop::Connect(tf::Node* op) {
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

}  // namespace xpu::graph

#include "tensorflow_plugin/graph/cluster_pass.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "tensorflow/core/common_runtime/optimization_registry.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow_plugin/cluster/cluster_op.h"
#include "tensorflow_plugin/cluster/dump.h"
#include "tensorflow_plugin/cluster/integers_on_device.h"
#include "tensorflow_plugin/cluster/members.h"
#include "tensorflow_plugin/direct_call/function_graph.h"
#include "tensorflow_plugin/framework/kernel_labels.h"
#include "tensorflow_plugin/framework/op_traits.h"
#include "tensorflow_plugin/graph/direct_call_plan.h"
#include "tensorflow_plugin/graph/form_clusters.h"
#include "tensorflow_plugin/graph/may_wait.h"
#include "tensorflow_plugin/graph/nodes.h"
#include "tensorflow_plugin/graph/shape_placement.h"
#include "tensorflow_plugin/graph/slice_placement.h"
#include "tensorflow_plugin/graph/transfers.h"
#include "tensorflow_plugin/graph/whole_loops.h"

namespace xpu::graph {
namespace {

namespace tf = tensorflow;
using cluster::ValueRef;

using Output = std::pair<tf::Node*, int>;

// Makes the op of one cluster, puts it into the graph and takes out its members.
class Replacement {
 public:
  Replacement(tf::Graph* graph, const Grouping& grouping, int number)
      : graph_(*graph), grouping_(grouping), number_(number), nodes_(grouping.clusters[number]) {}

  absl::Status Run() {
    FindArguments();
    for (tf::Node* node : nodes_) AddMember(node);
    FindResults();
    tf::NodeDef def;
    def.set_op(cluster::kOp);
    Describe(&def);
    tf::Node* op = nullptr;
    TF_RETURN_IF_ERROR(AddOp(&graph_, "xpu_cluster_", nodes_[0]->assigned_device_name(), std::move(def), &op));
    Connect(op);
    for (tf::Node* node : nodes_) graph_.RemoveNode(node);
    for (tf::Node* constant : constants_) {
      bool read = false;
      for (const tf::Edge* e : constant->out_edges()) read |= !e->IsControlEdge() || e->dst()->IsOp();
      if (!read) graph_.RemoveNode(constant);
    }
    return absl::OkStatus();
  }

 private:
  // The ops of clusters that stand already have come after the grouping.
  bool IsGrouped(const tf::Node& node) const { return node.id() < static_cast<int>(grouping_.cluster.size()); }
  bool IsMember(const tf::Node& node) const { return IsGrouped(node) && grouping_.cluster[node.id()] == number_; }
  bool IsOwnConstant(const tf::Edge& e) const { return IsGrouped(*e.src()) && GetsOwnConstant(grouping_, e); }

  // True if members read a value on the device that comes from the host, or the host reads a member's value there. The
  // cluster then copies it. Not in a loop that may be captured.
  bool MayCopy() const { return grouping_.copies[number_]; }
  bool IsUploaded(const tf::Edge& e) const {
    const bool near = DeviceTypeOf(*e.src()) == tf::DEVICE_CPU || IsOnDevice(*e.src());
    return MayCopy() && near && IsInHostMemory(e);
  }
  bool IsFetched(const tf::Edge& e) const {
    return MayCopy() && IsOnDevice(*e.dst()) && IsInHostMemory(e, /*source=*/false);
  }
  bool IsOnDevice(const tf::Node& node) const {
    return node.assigned_device_name() == nodes_[0]->assigned_device_name();
  }

  // Arguments are those in host memory, those that are copied to the device, those in device memory, and variables.
  // Each kind is in the order in which it is met.
  void FindArguments() {
    for (tf::Node* node : nodes_) {
      for (const tf::Edge* e : InputsOf(*node)) {
        if (IsMember(*e->src()) || IsOwnConstant(*e)) continue;
        const Output output(e->src(), e->src_output());
        std::vector<Output>& kind = KindOf(*node, *e);
        if (std::find(kind.begin(), kind.end(), output) == kind.end()) kind.push_back(output);
      }
    }
  }

  std::vector<Output>& KindOf(const tf::Node& node, const tf::Edge& e) {
    if (node.input_type(e.dst_input()) == tf::DT_RESOURCE) return resources_;
    // If only the shape of a value is read, its elements are no part of a signature.
    const bool is_shape = grouping_.traits[node.id()].shape_only;
    if ((IsUploadedCast(node) || (is_shape && IsUploaded(e))) && MayCopy()) return uploaded_;
    if (grouping_.traits[node.id()].inputs[e.dst_input()] == tf::HOST_MEMORY) return host_;
    return IsUploaded(e) ? uploaded_ : device_;
  }

  bool IsUploadedCast(const tf::Node& node) const { return IsCastFromHost(node, grouping_.traits[node.id()]); }

  ValueRef ArgumentOf(const tf::Node& node, const tf::Edge& e) {
    const std::vector<Output>& kind = KindOf(node, e);
    const auto found = std::find(kind.begin(), kind.end(), Output(e.src(), e.src_output()));
    int index = static_cast<int>(found - kind.begin());
    for (const std::vector<Output>* before : Arguments()) {
      if (before == &kind) break;
      index += static_cast<int>(before->size());
    }
    return {ValueRef::kArgument, index};
  }

  void AddMember(tf::Node* node) {
    tf::NodeDef def = node->def();
    def.clear_input();
    for (const tf::Edge* e : InputsOf(*node)) {
      ValueRef source;
      if (IsMember(*e->src())) {
        source = {numbers_.at(e->src()), e->src_output()};
      } else if (IsOwnConstant(*e)) {
        source = {NumberOfConstant(e->src(), IsConstantOnDevice(grouping_, *e)), 0};
      } else {
        source = ArgumentOf(*node, *e);
        if (IsUploadedCast(*node) && &KindOf(*node, *e) == &uploaded_) {
          tf::AddNodeAttr(labels::kAttribute, labels::kOnDevice, &def);
        }
      }
      def.add_input(ToString(source));
    }
    for (const tf::Edge* e : node->in_edges()) {
      if (e->IsControlEdge() && e->src()->IsOp() && !IsMember(*e->src())) before_.insert(e->src());
    }
    if (FollowsUpdates(*node)) {
      follow_updates_.insert(node);
    } else {
      tf::AddNodeAttr(cluster::attr::kFollowsNoUpdate, true, &def);
    }
    numbers_[node] = members_.node_size();
    *members_.add_node() = std::move(def);
  }

  // True if some path through the cluster leads to it from a member that may update a variable.
  bool FollowsUpdates(const tf::Node& node) const {
    for (const tf::Edge* e : node.in_edges()) {
      const tf::Node& source = *e->src();
      if (!source.IsOp()) continue;
      // A constant may be what holds a member behind others.
      if (source.IsConstant() ? FollowsUpdates(source)
                              : IsMember(source) && (follow_updates_.count(&source) != 0 || MayUpdate(source))) {
        return true;
      }
    }
    return false;
  }
  static bool MayUpdate(const tf::Node& node) {
    const auto& types = node.input_types();
    return std::find(types.begin(), types.end(), tf::DT_RESOURCE) != types.end() &&
           !TraitsOf(node.type_string()).Has(OpTrait::kOnlyReads);
  }

  // `on_device`: members read it in device memory, though TensorFlow has it in host memory.
  int NumberOfConstant(tf::Node* constant, bool on_device) {
    const std::pair<const tf::Node*, bool> key(constant, on_device);
    const auto found = numbers_of_constants_.find(key);
    if (found != numbers_of_constants_.end()) return found->second;
    tf::NodeDef def = constant->def();
    def.clear_input();
    if (on_device) {
      def.set_name(def.name() + "/on_device");
      tf::AddNodeAttr(labels::kAttribute, cluster::kConstantOnDevice, &def);
    }
    // An edge that holds a constant in its frame holds the cluster there.
    for (const tf::Edge* e : constant->in_edges()) {
      if (e->src()->IsOp() && !IsMember(*e->src())) before_.insert(e->src());
    }
    if (std::find(constants_.begin(), constants_.end(), constant) == constants_.end()) constants_.push_back(constant);
    const int number = members_.node_size();
    numbers_of_constants_[key] = number;
    *members_.add_node() = std::move(def);
    return number;
  }

  void FindResults() {
    for (tf::Node* node : nodes_) {
      for (const tf::Edge* e : node->out_edges()) {
        if (!e->dst()->IsOp() || IsMember(*e->dst())) continue;
        if (e->IsControlEdge()) {
          after_.insert(e->dst());
          continue;
        }
        std::vector<Output>& kind = KindOfResult(*e);
        const Output output(node, e->src_output());
        if (std::find(kind.begin(), kind.end(), output) == kind.end()) kind.push_back(output);
      }
    }
  }

  std::vector<Output>& KindOfResult(const tf::Edge& e) {
    if (grouping_.traits[e.src()->id()].outputs[e.src_output()] == tf::HOST_MEMORY) return host_results_;
    return IsFetched(e) ? fetched_ : device_results_;
  }

  std::array<const std::vector<Output>*, 4> Arguments() const { return {&host_, &uploaded_, &device_, &resources_}; }
  std::array<std::vector<Output>*, 3> Results() { return {&host_results_, &fetched_, &device_results_}; }

  static std::vector<tf::DataType> TypesOf(const std::vector<Output>& outputs) {
    std::vector<tf::DataType> types;
    for (const Output& output : outputs) types.push_back(tf::BaseType(output.first->output_type(output.second)));
    return types;
  }

  void Describe(tf::NodeDef* def) {
    std::vector<std::string> results;
    for (const std::vector<Output>* kind : Results()) {
      for (const Output& output : *kind)
        results.push_back(ToString(ValueRef{numbers_.at(output.first), output.second}));
    }
    tf::AddNodeAttr(cluster::attr::kHost, TypesOf(host_), def);
    tf::AddNodeAttr(cluster::attr::kUploaded, TypesOf(uploaded_), def);
    tf::AddNodeAttr(cluster::attr::kDevice, TypesOf(device_), def);
    tf::AddNodeAttr(cluster::attr::kResources, static_cast<int64_t>(resources_.size()), def);
    tf::AddNodeAttr(cluster::attr::kHostResults, TypesOf(host_results_), def);
    tf::AddNodeAttr(cluster::attr::kFetched, TypesOf(fetched_), def);
    tf::AddNodeAttr(cluster::attr::kDeviceResults, TypesOf(device_results_), def);
    tf::AddNodeAttr(cluster::attr::kMembers, members_.SerializeAsString(), def);
    tf::AddNodeAttr(cluster::attr::kResults, results, def);
  }

  void Connect(tf::Node* op) {
    int input = 0;
    for (const std::vector<Output>* kind : Arguments()) {
      for (const Output& from : *kind) graph_.AddEdge(from.first, from.second, op, input++);
    }
    int output = 0;
    for (const std::vector<Output>* kind : Results()) {
      for (const Output& from : *kind) {
        std::vector<const tf::Edge*> readers;
        for (const tf::Edge* e : from.first->out_edges()) {
          if (!e->IsControlEdge() && e->src_output() == from.second && !IsMember(*e->dst()) &&
              &KindOfResult(*e) == kind) {
            readers.push_back(e);
          }
        }
        RedirectReaders(&graph_, readers, op, output++);
      }
    }
    for (tf::Node* node : before_) graph_.AddControlEdge(node, op);
    for (tf::Node* node : after_) graph_.AddControlEdge(op, node);
    if (before_.empty() && input == 0) graph_.AddControlEdge(graph_.source_node(), op);
    graph_.AddControlEdge(op, graph_.sink_node());
  }

  tf::Graph& graph_;
  const Grouping& grouping_;
  const int number_;
  const std::vector<tf::Node*>& nodes_;
  std::vector<Output> host_, uploaded_, device_, resources_;  // arguments
  std::vector<Output> host_results_, fetched_, device_results_;
  std::map<const tf::Node*, int> numbers_;  // of members
  std::map<std::pair<const tf::Node*, bool>, int> numbers_of_constants_;
  std::vector<tf::Node*> constants_;
  std::set<tf::Node*> before_, after_;        // by control edges
  std::set<const tf::Node*> follow_updates_;  // members
  tf::GraphDef members_;
};

class ClusterPass : public tf::GraphOptimizationPass {
 public:
  explicit ClusterPass(std::string device_type) : device_type_(std::move(device_type)) {}

  // An error here would be the user's. A pass that fails has not changed the graph, which runs as it is: a line says
  // why.
  absl::Status Run(const tf::GraphOptimizationPassOptions& options) override {
    if (options.graph == nullptr || *options.graph == nullptr) return absl::OkStatus();
    if (const absl::Status status = Divide(options.graph->get()); !status.ok()) {
      std::fprintf(stderr, "tensorflow_xpu: a graph runs op by op where it could run in clusters: %s\n",
                   status.ToString().c_str());
    }
    if (options.function_def != nullptr && direct_call::IsExpected(options.function_def->signature().name())) {
      direct_call::OfferGraph(PlanCall(**options.graph));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Divide(tf::Graph* graph) {
    DrawFromStartsOnDevice(graph);
    PlaceShapesWithReaders(graph, device_type_);
    TF_RETURN_IF_ERROR(EmbedAssertionTexts(graph, device_type_));
    std::set<std::string> copying_loops;
    TF_RETURN_IF_ERROR(FindLoopsThatCopy(graph, device_type_, &copying_loops));
    TF_RETURN_IF_ERROR(ReadBeginsOnDevice(graph, device_type_, copying_loops));
    TF_RETURN_IF_ERROR(CopyCountsInLoops(graph, device_type_, copying_loops));
    TF_RETURN_IF_ERROR(KeepCountersOutOfClusters(graph, device_type_));
    // A loop that is one op needs no executor, and one that cannot be captured still has clusters in it.
    TF_RETURN_IF_ERROR(MakeClusters(graph, Scope::kLoops, copying_loops));
    std::map<std::string, std::string> outside;  // by loop, why its iterations are in no list
    TF_RETURN_IF_ERROR(MakeLoopOps(graph, device_type_, &outside));
    TF_RETURN_IF_ERROR(MakeClusters(graph, Scope::kOutside, copying_loops));
    if (outside.empty()) return absl::OkStatus();
    // Copies become ops, and then loops that have nothing else to keep them in the executor do.
    TF_RETURN_IF_ERROR(CopyInLoops(graph, device_type_));
    TF_RETURN_IF_ERROR(MakeLoopOps(graph, device_type_, &outside));
    cluster::DumpLoops(outside);
    return absl::OkStatus();
  }

  // Random ops that get their seeds, or keys and counters, in host memory get them on the device, where Keras has them
  // in a variable. A value that the host knew would be part of a cluster's signature, and there would be another
  // signature for every step.
  void DrawFromStartsOnDevice(tf::Graph* graph) {
    for (tf::Node* node : graph->op_nodes()) {
      if (node->op_def().is_stateful() || DeviceTypeOf(*node) != device_type_ ||
          !TraitsOf(node->type_string()).Has(OpTrait::kDrawsFromStart)) {
        continue;
      }
      node->AddAttr(labels::kAttribute, labels::kOnDevice);
      // There is no such kernel of some ops, or if the device cannot draw so.
      if (!tf::FindKernelDef(tf::DeviceType(device_type_), node->def(), nullptr, nullptr).ok()) {
        node->ClearAttr(labels::kAttribute);
      }
    }
  }

  absl::Status MakeClusters(tf::Graph* graph, Scope scope, const std::set<std::string>& copying_loops) {
    Grouping grouping;
    TF_RETURN_IF_ERROR(Group(*graph, device_type_, scope, copying_loops, &grouping));
    for (size_t i = 0; i < grouping.clusters.size(); ++i) {
      TF_RETURN_IF_ERROR(Replacement(graph, grouping, static_cast<int>(i)).Run());
    }
    return absl::OkStatus();
  }

  const std::string device_type_;
};

}  // namespace

void RegisterClusterPass(const std::string& device_type) {
  RememberKnownOps();
  tf::OptimizationPassRegistry::Global()->Register(tf::OptimizationPassRegistry::POST_REWRITE_FOR_EXEC, 1000,
                                                   std::make_unique<ClusterPass>(device_type));
}

}  // namespace xpu::graph

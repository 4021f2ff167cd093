#include "tensorflow_plugin/graph/form_clusters.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "tensorflow/core/graph/control_flow.h"
#include "tensorflow_plugin/cluster/loop_op.h"
#include "tensorflow_plugin/graph/nodes.h"
#include "tensorflow_plugin/graph/update_order.h"
#include "tensorflow_plugin/graph/wait_order.h"

namespace xpu::graph {
namespace {

namespace tf = tensorflow;

// The reason why a node's values may be dead: (predicate, its value) of every switch that it depends on. The predicate
// is a node and its output.
struct Condition {
  int predicate = 0, output = 0, value = 0;
  bool operator<(const Condition& o) const {
    return std::tie(predicate, output, value) < std::tie(o.predicate, o.output, o.value);
  }
};
using Conditions = std::set<Condition>;

class Grouper {
 public:
  Grouper(const tf::Graph& graph, const std::string& device_type, Scope scope,
          const std::set<std::string>& copying_loops, Grouping* grouping)
      : graph_(graph), device_type_(device_type), scope_(scope), copying_loops_(copying_loops), out_(*grouping) {}

  absl::Status Run() {
    TF_RETURN_IF_ERROR(tf::BuildControlFlowInfo(&graph_, &frames_));
    const int ids = graph_.num_node_ids();
    out_.traits.resize(ids);
    out_.cluster.assign(ids, -1);
    keys_.assign(ids, -1);
    levels_.assign(ids, 0);
    conditions_.resize(ids);
    static_.assign(ids, false);
    const std::vector<tf::Node*> order = TopologicalOrder(graph_);
    for (const tf::Node* node : order) {
      FindConditions(*node);
      Classify(*node);
    }
    LeaveOutShapesOfOthers(order);
    LeaveOutWhatOthersRead(order);
    const WaitOrder wait_order(graph_, order, frames_);
    for (;;) {
      do {
        if (!FindLevels(order)) return absl::OkStatus();
      } while (LeaveOutCrossingLists(order));
      AddClusters(order);
      const std::vector<int> delaying = wait_order.PointsThatDelayOthers(out_.cluster);
      if (delaying.empty()) return absl::OkStatus();
      out_.clusters.clear();
      out_.copies.clear();
      out_.cluster.assign(ids, -1);
      if (!Separate(order, wait_order, delaying)) return absl::InternalError("clusters add to what an op waits for");
    }
  }

 private:
  void FindConditions(const tf::Node& node) {
    Conditions& mine = conditions_[node.id()];
    if (node.IsMerge()) {
      // A loop is alive as its entry is. Otherwise alive if one of the branches is.
      bool first = true;
      for (const tf::Edge* e : node.in_edges()) {
        if (e->IsControlEdge() || e->src()->IsNextIteration()) continue;
        const Conditions from = Through(*e);
        if (first) mine = from;
        Conditions both;
        std::set_intersection(mine.begin(), mine.end(), from.begin(), from.end(), std::inserter(both, both.end()));
        mine = std::move(both);
        first = false;
      }
      return;
    }
    for (const tf::Edge* e : node.in_edges()) {
      if (!e->src()->IsOp() || e->src()->IsNextIteration()) continue;
      const Conditions from = Through(*e);
      mine.insert(from.begin(), from.end());
    }
    if (node.IsExit()) {  // of a loop: what came before it holds again
      const std::string& frame = frames_[node.id()].frame_name;
      for (auto it = mine.begin(); it != mine.end();) {
        it = frames_[it->predicate].frame_name == frame ? mine.erase(it) : std::next(it);
      }
    }
  }

  // The conditions of an edge's end.
  Conditions Through(const tf::Edge& e) const {
    Conditions conditions = conditions_[e.src()->id()];
    if (e.src()->IsSwitch() && !e.IsControlEdge()) {
      const tf::Edge* predicate = nullptr;
      if (e.src()->input_edge(1, &predicate).ok()) {
        conditions.insert({predicate->src()->id(), predicate->src_output(), e.src_output()});
      }
    }
    return conditions;
  }

  void Classify(const tf::Node& node) {
    if (DeviceTypeOf(node) != device_type_) return;
    const bool in_loop = !frames_[node.id()].frame_name.empty();
    NodeTraits& traits = out_.traits[node.id()];
    traits = NodeTraitsOf(node, device_type_);
    static_[node.id()] = traits.role == Role::kConstant || traits.shape_only ||
                         (traits.role == Role::kHost && InputsAreStatic(node, false));
    // Numbers that the host makes anew in every step would need a capture each.
    if (traits.role == Role::kHost && !static_[node.id()]) traits.role = Role::kOutside;
    if (traits.role == Role::kCompute && in_loop && !InputsAreStatic(node, true) &&
        !(MayCopy(node) && IsCastFromHost(node, traits))) {
      traits.role = Role::kOutside;
    }
    if (traits.role == Role::kOutside || traits.role == Role::kConstant || in_loop != (scope_ == Scope::kLoops)) return;
    keys_[node.id()] = KeyOf(node);
  }

  // True if its cluster may copy values between host and device.
  bool MayCopy(const tf::Node& node) const {
    const std::string& frame = frames_[node.id()].frame_name;
    return frame.empty() || copying_loops_.count(frame) != 0;
  }

  // True if the inputs in host memory, except variables, follow from shapes and constants. `device`: some are not
  // there.
  bool InputsAreStatic(const tf::Node& node, bool device) const {
    for (const tf::Edge* e : node.in_edges()) {
      if (e->IsControlEdge() || node.input_type(e->dst_input()) == tf::DT_RESOURCE) continue;
      if (device && out_.traits[node.id()].inputs[e->dst_input()] == tf::DEVICE_MEMORY) continue;
      if (!static_[e->src()->id()]) return false;
    }
    return true;
  }

  // A shape of a value outside the cluster, read outside the cluster, is computed there as well. Inside, it would wait
  // for the cluster, and its reader could be in yet another one.
  void LeaveOutShapesOfOthers(const std::vector<tf::Node*>& order) {
    std::vector<bool> apart(graph_.num_node_ids(), false);  // no member computes what it reads
    for (const tf::Node* node : order) {
      const NodeTraits& traits = out_.traits[node->id()];
      bool is_apart = traits.role == Role::kHost || traits.shape_only;
      for (const tf::Edge* e : node->in_edges()) is_apart = is_apart && (!e->src()->IsOp() || apart[e->src()->id()]);
      apart[node->id()] = is_apart || keys_[node->id()] < 0;
    }
    for (auto node = order.rbegin(); node != order.rend(); ++node) {
      if (keys_[(*node)->id()] < 0 || !apart[(*node)->id()]) continue;
      for (const tf::Edge* e : (*node)->out_edges()) {
        if (!e->IsControlEdge() && e->dst()->IsOp() && !e->dst()->IsRetval() && keys_[e->dst()->id()] < 0) {
          keys_[(*node)->id()] = -1;
        }
      }
    }
  }

  // Leaves out ops that cost nothing, such as reads of variables, if only ops outside of clusters read them. Those ops
  // would wait for the cluster otherwise, and the ops that read their results would be another cluster.
  void LeaveOutWhatOthersRead(const std::vector<tf::Node*>& order) {
    for (auto node = order.rbegin(); node != order.rend(); ++node) {
      int& key = keys_[(*node)->id()];
      if (key < 0 || out_.traits[(*node)->id()].role != Role::kFree) continue;
      int readers = 0;
      bool is_apart = true;
      for (const tf::Edge* e : (*node)->out_edges()) {
        if (e->IsControlEdge() || !e->dst()->IsOp()) continue;
        ++readers;
        is_apart = is_apart && keys_[e->dst()->id()] < 0 && !e->dst()->IsRetval();
      }
      for (const tf::Edge* e : (*node)->in_edges())
        is_apart = is_apart && (!e->src()->IsOp() || keys_[e->src()->id()] < 0);
      if (is_apart && readers > 0) key = -1;
    }
  }

  int KeyOf(const tf::Node& node) {
    Key key{node.assigned_device_name(), frames_[node.id()].frame_name, conditions_[node.id()]};
    return keys_by_meaning_.emplace(std::move(key), static_cast<int>(keys_by_meaning_.size())).first->second;
  }

  // False if there are none, which no graph that can run leads to.
  bool FindLevels(const std::vector<tf::Node*>& order) {
    // A loop gives nothing before all of it has run, whatever path leads through its iterations. Its exits have the
    // level of all that is in it, which may come later in the order.
    std::map<std::string, int> of_frame;
    for (size_t round = 0; round <= order.size(); ++round) {
      bool changed = false;
      for (const tf::Node* node : order) {
        int level = LevelOf(*node);
        const std::string& frame = frames_[node->id()].frame_name;
        if (!frame.empty()) {
          int& highest = of_frame[frame];
          highest = std::max(highest, level);
          if (node->IsExit()) level = highest;
        }
        changed = changed || level != levels_[node->id()];
        levels_[node->id()] = level;
      }
      if (!changed) return true;
    }
    return false;
  }

  // True if there was a node whose list would leave or enter a group.
  bool LeaveOutCrossingLists(const std::vector<tf::Node*>& order) {
    bool found = false;
    for (const tf::Node* node : order) {
      for (const tf::Edge* e : node->out_edges()) {
        if (e->IsControlEdge() || node->output_type(e->src_output()) != tf::DT_VARIANT) continue;
        const int from = e->src()->id(), to = e->dst()->id();
        if (keys_[from] == keys_[to] && levels_[from] == levels_[to]) continue;
        found = found || keys_[from] >= 0 || keys_[to] >= 0;
        keys_[from] = keys_[to] = -1;
      }
    }
    return found;
  }

  int LevelOf(const tf::Node& node) const {
    int level = 0;
    for (const tf::Edge* e : node.in_edges()) {
      const tf::Node& source = *e->src();
      if (!source.IsOp() || source.IsNextIteration()) continue;
      if (!IsOwnConstant(*e)) {
        level = std::max(level, LevelAfter(source, node, e));
        continue;
      }
      // A node that comes before the constant comes before the cluster, or is in it.
      for (const tf::Edge* before : source.in_edges()) {
        if (before->src()->IsOp()) level = std::max(level, LevelAfter(*before->src(), node, nullptr));
      }
    }
    return level;
  }

  // `e`: the edge between the two, if there is one.
  int LevelAfter(const tf::Node& source, const tf::Node& node, const tf::Edge* e) const {
    const bool leaves =
        keys_[source.id()] >= 0 && (keys_[node.id()] != keys_[source.id()] || (e != nullptr && ChangesMemory(*e)));
    return levels_[source.id()] + (leaves ? 1 : 0);
  }

  bool IsOwnConstant(const tf::Edge& e) const { return keys_[e.dst()->id()] >= 0 && GetsOwnConstant(out_, e); }

  // TensorFlow copies such values from the host or back.
  bool ChangesMemory(const tf::Edge& e) const {
    if (e.IsControlEdge()) return false;
    return out_.traits[e.src()->id()].outputs[e.src_output()] != out_.traits[e.dst()->id()].inputs[e.dst_input()];
  }

  // Gives nodes that are needed before one of these points other keys than nodes that are not. False if that changes
  // nothing.
  bool Separate(const std::vector<tf::Node*>& order, const WaitOrder& wait_order, const std::vector<int>& points) {
    std::map<std::pair<int, std::vector<bool>>, int> keys;
    std::set<int> divided;
    for (const tf::Node* node : order) {
      int& key = keys_[node->id()];
      if (key < 0) continue;
      std::vector<bool> needed;
      for (int point : points) needed.push_back(wait_order.IsNeededBefore(*node, point));
      divided.insert(key);
      key = keys.emplace(std::make_pair(key, std::move(needed)), static_cast<int>(keys.size())).first->second;
    }
    levels_.assign(levels_.size(), 0);
    return keys.size() > divided.size();
  }

  void AddClusters(const std::vector<tf::Node*>& order) {
    std::map<std::pair<int, int>, std::vector<tf::Node*>> groups;
    for (tf::Node* node : order) {
      if (keys_[node->id()] >= 0) groups[{levels_[node->id()], keys_[node->id()]}].push_back(node);
    }
    for (auto& [level_and_key, nodes] : groups) {
      if (IsWorthwhile(nodes)) AddCluster(WithUpdatesLate(nodes));
    }
  }

  bool IsWorthwhile(const std::vector<tf::Node*>& nodes) const {
    int computing = 0;
    for (const tf::Node* node : nodes) {
      if (node->type_string() == cluster::kLoopOp) return true;
      computing += out_.traits[node->id()].role == Role::kCompute;
    }
    return computing >= 2;
  }

  void AddCluster(std::vector<tf::Node*> nodes) {
    for (tf::Node* node : nodes) out_.cluster[node->id()] = static_cast<int>(out_.clusters.size());
    out_.copies.push_back(MayCopy(*nodes[0]));
    out_.clusters.push_back(std::move(nodes));
  }

  struct Key {
    std::string device, frame;
    Conditions conditions;
    bool operator<(const Key& o) const {
      return std::tie(device, frame, conditions) < std::tie(o.device, o.frame, o.conditions);
    }
  };

  const tf::Graph& graph_;
  const std::string& device_type_;
  const Scope scope_;
  const std::set<std::string>& copying_loops_;
  Grouping& out_;
  std::vector<tf::ControlFlowInfo> frames_;
  std::vector<Conditions> conditions_;
  std::map<Key, int> keys_by_meaning_;
  // By node id.
  std::vector<int> keys_;  // -1: no member of any cluster
  std::vector<int> levels_;
  std::vector<bool> static_;  // its values follow from shapes and constants
};

}  // namespace

bool IsCastFromHost(const tf::Node& node, const NodeTraits& traits) {
  return node.type_string() == "Cast" && traits.inputs[0] == tf::HOST_MEMORY && traits.outputs[0] == tf::DEVICE_MEMORY;
}

bool GetsOwnConstant(const Grouping& grouping, const tf::Edge& e) {
  const tf::Node &constant = *e.src(), &reader = *e.dst();
  return !e.IsControlEdge() && grouping.traits[constant.id()].role == Role::kConstant &&
         constant.assigned_device_name() == reader.assigned_device_name() &&
         (grouping.traits[constant.id()].outputs[0] == grouping.traits[reader.id()].inputs[e.dst_input()] ||
          IsConstantOnDevice(grouping, e));
}

bool IsConstantOnDevice(const Grouping& grouping, const tf::Edge& e) {
  return e.src()->IsConstant() && e.src()->output_type(e.src_output()) == tf::DT_INT32 &&
         grouping.traits[e.src()->id()].outputs[0] == tf::HOST_MEMORY &&
         grouping.traits[e.dst()->id()].inputs[e.dst_input()] == tf::DEVICE_MEMORY;
}

absl::Status Group(const tf::Graph& graph, const std::string& device_type, Scope scope,
                   const std::set<std::string>& copying_loops, Grouping* grouping) {
  return Grouper(graph, device_type, scope, copying_loops, grouping).Run();
}

}  // namespace xpu::graph

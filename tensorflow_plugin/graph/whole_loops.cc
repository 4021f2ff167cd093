#include "tensorflow_plugin/graph/whole_loops.h"

#include <map>
#include <set>
#include <vector>

#include "tensorflow/core/graph/control_flow.h"
#include "tensorflow_plugin/graph/loop.h"
#include "tensorflow_plugin/graph/nodes.h"
#include "tensorflow_plugin/graph/wait_order.h"

namespace xpu::graph {
namespace {

namespace tf = tensorflow;

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

#include "tensorflow_plugin/graph/whole_loops.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
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

bool HasOpOn(const std::vector<tf::Node*>& nodes, const std::string& device_type) {
  return std::any_of(nodes.begin(), nodes.end(),
                     [&](const tf::Node* node) { return DeviceTypeOf(*node) == device_type; });
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

absl::Status FindLoopsThatCopy(tf::Graph* graph, const std::string& device_type, std::set<std::string>* loops) {
  std::map<std::string, std::vector<tf::Node*>> frames;
  TF_RETURN_IF_ERROR(FindFrames(graph, &frames));
  for (const auto& [name, nodes] : frames) {
    if (Loop(graph, device_type, nodes).CopiesToHost()) loops->insert(name);
  }
  return absl::OkStatus();
}

absl::Status MakeLoopOps(tf::Graph* graph, const std::string& device_type, std::map<std::string, std::string>* why) {
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
      if (!loop.Read()) {
        if (HasOpOn(nodes, device_type)) (*why)[name] = "not one op, because " + loop.WhyNotOneOp();
        continue;
      }
      if (!wait_order.PointsThatDelayOthers(group_of).empty()) {
        (*why)[name] = "not one op, because an op that may wait for another one would then start after that one";
        continue;
      }
      why->erase(name);
      if (loop.IsReadFromDevice()) {
        (*why)[name] = "one op, which reads its condition from the device in each iteration";
      } else if (loop.HasTransfer()) {
        (*why)[name] = "one op, which copies values between host and device in each iteration";
      }
      TF_RETURN_IF_ERROR(loop.Replace());
      changed = true;
      if (wait_order.HasPoints()) break;  // it is of the nodes that were there
    }
  }
  return absl::OkStatus();
}

}  // namespace xpu::graph

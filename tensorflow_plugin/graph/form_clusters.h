// Groups of nodes that can become one op each: convex together, in one frame, alive together.
#ifndef TENSORFLOW_PLUGIN_GRAPH_FORM_CLUSTERS_H_
#define TENSORFLOW_PLUGIN_GRAPH_FORM_CLUSTERS_H_

#include <set>
#include <string>
#include <vector>

#include "tensorflow/core/graph/graph.h"
#include "tensorflow_plugin/graph/node_traits.h"

namespace xpu::graph {

struct Grouping {
  std::vector<NodeTraits> traits;                        // by node id
  std::vector<int> cluster;                              // by node id; -1: of none
  std::vector<std::vector<tensorflow::Node*>> clusters;  // their nodes, in an order that may run
  std::vector<bool> copies;                              // by cluster: it may copy values between host and device
};

// True if a node is the cast of an integer that it reads in host memory itself. A cluster that copies values uploads
// it, because what it is would belong to a capture otherwise.
bool IsCastFromHost(const tensorflow::Node& node, const NodeTraits& traits);

// True if a cluster that the edge leads to gets a copy of the constant that it leads from. A constant that TensorFlow
// has to copy to the host gets none.
bool GetsOwnConstant(const Grouping& grouping, const tensorflow::Edge& e);
// True if the edge leads from an integer constant, which TensorFlow has in host memory, to device memory.
bool IsConstantOnDevice(const Grouping& grouping, const tensorflow::Edge& e);

// Which nodes to group: those in the iterations of loops, or those outside.
enum class Scope { kLoops, kOutside };

// Groups the nodes of a scope that are placed on devices of this type. Clusters outside of loops may copy values
// between host and device. Those of a loop only if that is among `copying_loops`, because no capture could have it.
//
// Every node gets a level: that of a node it reads from, or one more where the edge between them leaves a group. Nodes
// of one device, frame, condition and level form a cluster. Every edge that leaves one leads to a higher level, so no
// path leads out of a cluster and back, nor around several. TensorLists stay within a cluster.
absl::Status Group(const tensorflow::Graph& graph, const std::string& device_type, Scope scope,
                   const std::set<std::string>& copying_loops, Grouping* grouping);

}  // namespace xpu::graph

#endif  // TENSORFLOW_PLUGIN_GRAPH_FORM_CLUSTERS_H_

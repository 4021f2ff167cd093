// What the passes ask of placed nodes.
#ifndef TENSORFLOW_PLUGIN_GRAPH_NODES_H_
#define TENSORFLOW_PLUGIN_GRAPH_NODES_H_

#include <string>
#include <vector>

#include "tensorflow/core/graph/graph.h"

namespace xpu::graph {

// The type of the device that a node was placed on; empty if it was not.
std::string DeviceTypeOf(const tensorflow::Node& node);

// The ops of a graph, each after those whose values it reads; edges that lead back into a loop's next iteration are no
// edges of an iteration.
std::vector<tensorflow::Node*> InOrder(const tensorflow::Graph& graph);

}  // namespace xpu::graph

#endif  // TENSORFLOW_PLUGIN_GRAPH_NODES_H_

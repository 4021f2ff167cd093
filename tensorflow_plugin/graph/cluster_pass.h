// The graph pass that puts one op in the place of each cluster.
#ifndef TENSORFLOW_PLUGIN_GRAPH_CLUSTER_PASS_H_
#define TENSORFLOW_PLUGIN_GRAPH_CLUSTER_PASS_H_

#include <string>

namespace xpu::graph {

// From now on graphs with nodes on devices of this type are rewritten, after TensorFlow's own optimizers and before
// they are divided among devices.
void RegisterClusterPass(const std::string& device_type);

}  // namespace xpu::graph

#endif  // TENSORFLOW_PLUGIN_GRAPH_CLUSTER_PASS_H_

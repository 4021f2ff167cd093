// Changes to placed graphs that save transfers in the iterations of a loop.
#ifndef TENSORFLOW_PLUGIN_GRAPH_PLACEMENT_PASS_H_
#define TENSORFLOW_PLUGIN_GRAPH_PLACEMENT_PASS_H_

#include <string>

namespace xpu::graph {

// From now on graphs with nodes on devices of this type are rewritten, before they are divided into clusters and among
// devices.
void RegisterPlacementPass(const std::string& device_type);

}  // namespace xpu::graph

#endif  // TENSORFLOW_PLUGIN_GRAPH_PLACEMENT_PASS_H_

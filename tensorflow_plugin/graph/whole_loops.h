// Loops that become one op each.
#ifndef TENSORFLOW_PLUGIN_GRAPH_WHOLE_LOOPS_H_
#define TENSORFLOW_PLUGIN_GRAPH_WHOLE_LOOPS_H_

#include <string>

#include "tensorflow/core/graph/graph.h"

namespace xpu::graph {

// To be called before there are clusters: keeps apart what decides a loop's condition and is the device's by its types
// alone, so that the host can count along.
absl::Status KeepCountersApart(tensorflow::Graph* graph, const std::string& device_type);

// Each loop whose ops could all be members of a cluster, on one device of this type, whose condition is decided in host
// memory and in which no value passes between host and device, becomes one op (cluster/loop_op.h), loops within loops
// first. A loop like this needs nobody to start its iterations; and as every op in it is the same whenever the shapes
// and the host's values are, a cluster can have it as a member, whose commands are those of all iterations.
absl::Status MakeLoopOps(tensorflow::Graph* graph, const std::string& device_type);

}  // namespace xpu::graph

#endif  // TENSORFLOW_PLUGIN_GRAPH_WHOLE_LOOPS_H_

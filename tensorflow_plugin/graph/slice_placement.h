// Slices that begin at a number that differs from iteration to iteration.
#ifndef TENSORFLOW_PLUGIN_GRAPH_SLICE_PLACEMENT_H_
#define TENSORFLOW_PLUGIN_GRAPH_SLICE_PLACEMENT_H_

#include <set>
#include <string>

#include "tensorflow/core/graph/graph.h"

namespace xpu::graph {

// In loops that copy values between host and device, slices whose size is constant read their begin on the device
// (labels::kBeginOnDevice). So they can be members of a cluster, which uploads the begin. TensorFlow has it in host
// memory, where it would be part of the cluster's signature. `loops`: see FindLoopsThatCopy in whole_loops.h. In other
// loops the slices stay as they are, because the host counts there.
absl::Status ReadBeginsOnDevice(tensorflow::Graph* graph, const std::string& device_type,
                                const std::set<std::string>& loops);

}  // namespace xpu::graph

#endif  // TENSORFLOW_PLUGIN_GRAPH_SLICE_PLACEMENT_H_

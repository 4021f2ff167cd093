// Copies between a device's memory and host memory, in loops.
#ifndef TENSORFLOW_PLUGIN_GRAPH_TRANSFERS_H_
#define TENSORFLOW_PLUGIN_GRAPH_TRANSFERS_H_

#include <set>
#include <string>

#include "tensorflow/core/graph/graph.h"

namespace xpu::graph {

// An op gives a value in device memory, and another op of the device reads it in host memory, or the other way round.
// TensorFlow puts two ops between them, which hand the value over by a name; another thread may go on. In a loop they
// can take half of an iteration. Here one op copies the value. For loops that are not one op yet, after all clusters.
absl::Status CopyInLoops(tensorflow::Graph* graph, const std::string& device_type);

// The same before clusters are formed, for values on the host that are read on the device. They must follow from
// shapes, constants, and how often the loops around them have run. A capture of such a loop knows them, so the list has
// them as constants. `copying_loops`: loops that no capture can have, and whose clusters copy values themselves.
absl::Status CopyCountsInLoops(tensorflow::Graph* graph, const std::string& device_type,
                               const std::set<std::string>& copying_loops);

}  // namespace xpu::graph

#endif  // TENSORFLOW_PLUGIN_GRAPH_TRANSFERS_H_

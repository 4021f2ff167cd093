// Loops that become one op each.
#ifndef TENSORFLOW_PLUGIN_GRAPH_WHOLE_LOOPS_H_
#define TENSORFLOW_PLUGIN_GRAPH_WHOLE_LOOPS_H_

#include <map>
#include <set>
#include <string>

#include "tensorflow/core/graph/graph.h"

namespace xpu::graph {

// Call this before clusters are formed. It separates the ops that decide a loop's condition and are on the device by
// their types alone, so that the host can count along.
absl::Status KeepCountersOutOfClusters(tensorflow::Graph* graph, const std::string& device_type);

// Call this before clusters are formed. Finds the loops that copy values from the device to the host in each iteration.
// No capture can have these, so their clusters may copy values, too.
absl::Status FindLoopsThatCopy(tensorflow::Graph* graph, const std::string& device_type, std::set<std::string>* loops);

// Makes one op (cluster/loop_op.h) of each loop whose ops could all be members of a cluster, on one device of this
// type. No value may pass between host and device, except by an op that copies it (transfers.h). Inner loops come
// first. Nobody needs to start the iterations of such a loop. Without copies, its ops are the same whenever the shapes
// and the host's values are. So a cluster can have it as a member, and its commands are those of all iterations. `why`
// gets, by loop, the reason why its iterations are in no cluster's command list. Reasons that hold no more go.
absl::Status MakeLoopOps(tensorflow::Graph* graph, const std::string& device_type,
                         std::map<std::string, std::string>* why);

}  // namespace xpu::graph

#endif  // TENSORFLOW_PLUGIN_GRAPH_WHOLE_LOOPS_H_

// Makes AddN ops of the updates that TensorFlow has replaced them by.
#ifndef TENSORFLOW_PLUGIN_GRAPH_RESTORE_SUMS_H_
#define TENSORFLOW_PLUGIN_GRAPH_RESTORE_SUMS_H_

#include <string>

#include "tensorflow/core/graph/graph.h"

namespace xpu::graph {

// TensorFlow's memory optimizer assumes 256 MB for a device that it does not know. In a graph that needs more than four
// fifths of that, it replaces each AddN by updates of a temporary variable. No cluster can have such ops, so that a
// layer normalization would end one. This pass makes them an AddN again.
absl::Status RestoreSums(tensorflow::Graph* graph, const std::string& device_type);

}  // namespace xpu::graph

#endif  // TENSORFLOW_PLUGIN_GRAPH_RESTORE_SUMS_H_

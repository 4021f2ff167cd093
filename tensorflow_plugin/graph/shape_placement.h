// Arithmetic of shapes, and what is asserted of them, becomes such as can be part of a cluster.
#ifndef TENSORFLOW_PLUGIN_GRAPH_SHAPE_PLACEMENT_H_
#define TENSORFLOW_PLUGIN_GRAPH_SHAPE_PLACEMENT_H_

#include <string>

#include "tensorflow/core/graph/graph.h"

namespace xpu::graph {

// TensorFlow puts ops that read a shape alone beside what it is the shape of. Where that is the CPU, and the device has
// another reader of it, they go there.
void PlaceShapesWithReaders(tensorflow::Graph* graph, const std::string& device_type);

// Assertions get the op whose texts are attributes (cluster/assert_op.h): as constants on the CPU they would be values
// that cross.
absl::Status EmbedAssertionTexts(tensorflow::Graph* graph, const std::string& device_type);

}  // namespace xpu::graph

#endif  // TENSORFLOW_PLUGIN_GRAPH_SHAPE_PLACEMENT_H_

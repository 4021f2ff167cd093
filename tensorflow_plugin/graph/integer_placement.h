// 32-bit integers that are computed of what is in device memory, and read there, stay there.
#ifndef TENSORFLOW_PLUGIN_GRAPH_INTEGER_PLACEMENT_H_
#define TENSORFLOW_PLUGIN_GRAPH_INTEGER_PLACEMENT_H_

#include <string>

#include "tensorflow/core/graph/graph.h"

namespace xpu::graph {

// TensorFlow has 32-bit integers of any device in host memory, since most are shapes. Some are data, such as tokens
// that were cast and the rows of an embedding that they choose. These would be copied to the host, which waits for
// them, and back. Ops between two such copies get the kernels that leave them in device memory.
void KeepIntegersOnDevice(tensorflow::Graph* graph, const std::string& device_type);

}  // namespace xpu::graph

#endif  // TENSORFLOW_PLUGIN_GRAPH_INTEGER_PLACEMENT_H_

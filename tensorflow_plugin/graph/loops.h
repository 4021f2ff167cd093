// What makes an iteration of a loop cross between device and host, mended in placed graphs.
#ifndef TENSORFLOW_PLUGIN_GRAPH_LOOPS_H_
#define TENSORFLOW_PLUGIN_GRAPH_LOOPS_H_

#include <string>

namespace tensorflow {
class Graph;
}  // namespace tensorflow

namespace xpu::graph {

// Logic of a device whose operands are all in host memory (comparisons of counters are) stays there: a loop's
// condition is decided on the host.
void KeepLogicOnHost(tensorflow::Graph* graph, const std::string& device_type);

// Sums and zeros of TensorLists, for which TensorFlow has kernels on the CPU alone, go to the device that all their
// lists are on. With them on the CPU every iteration that a gradient goes back through would copy a whole list to the
// host, and back.
void KeepListsOnDevice(tensorflow::Graph* graph, const std::string& device_type);

// Lists that a loop pushes int32 to and its gradient pops from, counters and shapes, keep it where it is: in host
// memory.
void KeepCountersOnHost(tensorflow::Graph* graph, const std::string& device_type);

// All three, in every graph with nodes on devices of this type, before it is divided into clusters and among devices.
void RegisterLoopPass(const std::string& device_type);

}  // namespace xpu::graph

#endif  // TENSORFLOW_PLUGIN_GRAPH_LOOPS_H_

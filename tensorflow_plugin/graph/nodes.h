// Questions of the passes about placed nodes.
#ifndef TENSORFLOW_PLUGIN_GRAPH_NODES_H_
#define TENSORFLOW_PLUGIN_GRAPH_NODES_H_

#include <string>
#include <vector>

#include "tensorflow/core/framework/memory_types.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/graph/graph.h"

namespace xpu::graph {

// The type of the device that a node was placed on; empty if it was not.
std::string DeviceTypeOf(const tensorflow::Node& node);

// The ops of a graph, each after those whose values it reads. Edges that lead back into a loop's next iteration do not
// count.
std::vector<tensorflow::Node*> TopologicalOrder(const tensorflow::Graph& graph);

// The edges of a node's inputs, in order, without control edges.
std::vector<const tensorflow::Edge*> InputsOf(const tensorflow::Node& node);

// The value of a constant; false for other nodes.
bool ReadConstant(const tensorflow::Node& node, tensorflow::Tensor* value);

// The elements of a tensor of 32-bit or 64-bit integers; false for other types.
bool ReadIntegers(const tensorflow::Tensor& value, std::vector<int64_t>* integers);

// Which inputs and outputs of a node lie in host memory.
struct MemoryTypes {
  tensorflow::MemoryTypeVector inputs, outputs;
};

// Where a node has its inputs and outputs on a device of this type; false if there is no kernel for it.
bool MemoryOf(const tensorflow::Node& node, const std::string& device_type, tensorflow::MemoryTypeVector* inputs,
              tensorflow::MemoryTypeVector* outputs);

// True if the source (or target) of an edge has its value in host memory: on the CPU, or kept there by a device's
// kernel.
bool IsInHostMemory(const tensorflow::Edge& e, bool source = true);

// Adds an op on `device` that stands for others. Its name begins with `prefix`.
absl::Status AddOp(tensorflow::Graph* graph, const std::string& prefix, const std::string& device,
                   tensorflow::NodeDef def, tensorflow::Node** op);

// Who reads at the ends of these edges reads output `output` of `op` instead.
void RedirectReaders(tensorflow::Graph* graph, const std::vector<const tensorflow::Edge*>& edges, tensorflow::Node* op,
                     int output);

}  // namespace xpu::graph

#endif  // TENSORFLOW_PLUGIN_GRAPH_NODES_H_

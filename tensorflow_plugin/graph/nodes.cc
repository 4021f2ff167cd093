#include "tensorflow_plugin/graph/nodes.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow/core/graph/algorithm.h"
#include "tensorflow/core/util/device_name_utils.h"

namespace xpu::graph {

namespace tf = tensorflow;

std::string DeviceTypeOf(const tf::Node& node) {
  tf::DeviceNameUtils::ParsedName device;
  return tf::DeviceNameUtils::ParseFullName(node.assigned_device_name(), &device) ? device.type : "";
}

std::vector<tf::Node*> TopologicalOrder(const tf::Graph& graph) {
  std::vector<tf::Node*> order;
  tf::GetReversePostOrder(graph, &order, {}, [](const tf::Edge& e) { return !e.src()->IsNextIteration(); });
  order.erase(std::remove_if(order.begin(), order.end(), [](const tf::Node* n) { return !n->IsOp(); }), order.end());
  return order;
}

std::vector<const tf::Edge*> InputsOf(const tf::Node& node) {
  std::vector<const tf::Edge*> edges;
  (void)node.input_edges(&edges);  // fails where an input is missing: no graph with one is placed
  return edges;
}

bool ReadConstant(const tf::Node& node, tf::Tensor* value) {
  const tf::TensorProto* proto = nullptr;
  return node.IsConstant() && tf::GetNodeAttr(node.def(), "value", &proto).ok() && value->FromProto(*proto);
}

bool ReadIntegers(const tf::Tensor& value, std::vector<int64_t>* integers) {
  for (int64_t i = 0; i < value.NumElements(); ++i) {
    if (value.dtype() == tf::DT_INT32) {
      integers->push_back(value.flat<int32_t>()(i));
    } else if (value.dtype() == tf::DT_INT64) {
      integers->push_back(value.flat<int64_t>()(i));
    } else {
      return false;
    }
  }
  return true;
}

bool MemoryOf(const tf::Node& node, const std::string& device_type, tf::MemoryTypeVector* inputs,
              tf::MemoryTypeVector* outputs) {
  return tf::MemoryTypesForNode(tf::OpRegistry::Global(), tf::DeviceType(device_type), node.def(), inputs, outputs)
      .ok();
}

bool IsInHostMemory(const tf::Edge& e, bool source) {
  const tf::Node& node = source ? *e.src() : *e.dst();
  const std::string device_type = DeviceTypeOf(node);
  if (device_type == tf::DEVICE_CPU) return true;
  tf::MemoryTypeVector inputs, outputs;
  return MemoryOf(node, device_type, &inputs, &outputs) &&
         (source ? outputs[e.src_output()] : inputs[e.dst_input()]) == tf::HOST_MEMORY;
}

absl::Status AddOp(tf::Graph* graph, const std::string& prefix, const std::string& device, tf::NodeDef def,
                   tf::Node** op) {
  // A session keeps the kernels of stateful ops by name, for all of its graphs.
  static std::atomic<int> serial{0};
  def.set_name(graph->NewName(prefix + std::to_string(serial++)));
  def.set_device(device);
  absl::Status status;
  *op = graph->AddNode(std::move(def), &status);
  if (status.ok()) (*op)->set_assigned_device_name(device);
  return status;
}

void RedirectReaders(tf::Graph* graph, const std::vector<const tf::Edge*>& edges, tf::Node* op, int output) {
  for (const tf::Edge* e : edges) {
    tf::Node* const reader = e->dst();
    const int at = e->dst_input();
    graph->RemoveEdge(e);
    graph->AddEdge(op, output, reader, at);
  }
}

}  // namespace xpu::graph

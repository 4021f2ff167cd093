#include "tensorflow_plugin/graph/nodes.h"

#include <algorithm>

#include "tensorflow/core/graph/algorithm.h"
#include "tensorflow/core/util/device_name_utils.h"

namespace xpu::graph {

namespace tf = tensorflow;

std::string DeviceTypeOf(const tf::Node& node) {
  tf::DeviceNameUtils::ParsedName device;
  return tf::DeviceNameUtils::ParseFullName(node.assigned_device_name(), &device) ? device.type : "";
}

std::vector<tf::Node*> InOrder(const tf::Graph& graph) {
  std::vector<tf::Node*> order;
  tf::GetReversePostOrder(graph, &order, {}, [](const tf::Edge& e) { return !e.src()->IsNextIteration(); });
  order.erase(std::remove_if(order.begin(), order.end(), [](const tf::Node* n) { return !n->IsOp(); }), order.end());
  return order;
}

}  // namespace xpu::graph

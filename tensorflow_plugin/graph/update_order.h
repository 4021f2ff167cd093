// The order of a cluster's members in which updates of variables come late.
#ifndef TENSORFLOW_PLUGIN_GRAPH_UPDATE_ORDER_H_
#define TENSORFLOW_PLUGIN_GRAPH_UPDATE_ORDER_H_

#include <vector>

#include "tensorflow/core/graph/graph.h"

namespace xpu::graph {

// Takes members in an order that may run, and gives another one. Where edges allow it, a member that updates a variable
// comes behind the members that use the value before. So the update can write into the variable's memory, where it
// would otherwise have to leave that value to them. Members that have the same variable as an input keep their order.
std::vector<tensorflow::Node*> WithUpdatesLate(const std::vector<tensorflow::Node*>& members);

}  // namespace xpu::graph

#endif  // TENSORFLOW_PLUGIN_GRAPH_UPDATE_ORDER_H_

// Which graphs can be called directly (direct_call/direct_call.h).
#ifndef TENSORFLOW_PLUGIN_GRAPH_DIRECT_CALL_PLAN_H_
#define TENSORFLOW_PLUGIN_GRAPH_DIRECT_CALL_PLAN_H_

#include <memory>

#include "tensorflow/core/graph/graph.h"
#include "tensorflow_plugin/direct_call/call_plan.h"

namespace xpu::graph {

// The steps of a graph with its clusters in it; null if it has many ops, control flow, ops with a state of their own,
// or values that cross between devices by more than being read.
std::unique_ptr<direct_call::CallPlan> PlanCall(const tensorflow::Graph& graph);

}  // namespace xpu::graph

#endif  // TENSORFLOW_PLUGIN_GRAPH_DIRECT_CALL_PLAN_H_

// Which graphs can be called directly (direct_call/direct_call.h).
#ifndef TENSORFLOW_PLUGIN_GRAPH_DIRECT_CALL_PLAN_H_
#define TENSORFLOW_PLUGIN_GRAPH_DIRECT_CALL_PLAN_H_

#include <memory>

#include "tensorflow/core/graph/graph.h"
#include "tensorflow_plugin/direct_call/call_plan.h"

namespace xpu::graph {

// The steps of a graph with its clusters in it. Null if it has many ops, control flow or ops with a state of their own.
// Null also if values pass between devices in another way than by being read.
std::unique_ptr<direct_call::CallPlan> PlanCall(const tensorflow::Graph& graph);

}  // namespace xpu::graph

#endif  // TENSORFLOW_PLUGIN_GRAPH_DIRECT_CALL_PLAN_H_

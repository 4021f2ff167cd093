#include "tensorflow_plugin/graph/direct_call_plan.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/control_flow.h"
#include "tensorflow_plugin/framework/op_traits.h"
#include "tensorflow_plugin/graph/nodes.h"
#include "tensorflow_plugin/graph/wait_order.h"

namespace xpu::graph {
namespace {

namespace tf = tensorflow;

// More of them, without constants, are work for an executor.
constexpr int kMostSteps = 24;

// On the CPU only what brings data, says its shape and hands it on: for the others TensorFlow has passes and threads of
// its own. (It puts ops that read shapes alone beside what they are the shapes of.)
bool MayRunOnHost(const tf::Node& node) { return TraitsOf(node.type_string()).Has(OpTrait::kServesDirectCalls); }

bool KeepsNothing(const tf::Node& node) {
  return !node.op_def().is_stateful() || TraitsOf(node.type_string()).Has(OpTrait::kKeepsNothing);
}

class Planner {
 public:
  explicit Planner(const tf::Graph& graph) : graph_(graph) {}

  // Null if the graph is not fit.
  std::unique_ptr<direct_call::CallPlan> Run() {
    auto plan = std::make_unique<direct_call::CallPlan>();
    const std::vector<tf::Node*> order = TopologicalOrder(graph_);
    const bool done = Sort(plan.get()) && WaitsInOrder(order) && AddSteps(order, plan.get()) && AddResults(plan.get());
    return done ? std::move(plan) : nullptr;
  }

 private:
  // Arguments, results and the others.
  bool Sort(direct_call::CallPlan* plan) {
    for (const tf::Node* node : graph_.op_nodes()) {
      if (node->IsArg()) {
        const int index = IndexOf(*node);
        if (index < 0 || !LearnMemory(*node)) return false;
        if (index >= static_cast<int>(plan->arguments.size())) plan->arguments.resize(index + 1);
        plan->arguments[index] = PlaceOf(*node, 0);
        // TensorFlow would have to copy a value that is in host memory but carries the device's name.
        if (plan->arguments[index].in_host_memory && node->output_type(0) != tf::DT_RESOURCE &&
            DeviceTypeOf(*node) != tf::DEVICE_CPU) {
          return false;
        }
        if (node->output_type(0) == tf::DT_VARIANT) return false;
        values_[node] = index;
      } else if (node->IsRetval()) {
        const int index = IndexOf(*node);
        if (index < 0) return false;
        if (index >= static_cast<int>(results_.size())) results_.resize(index + 1);
        results_[index] = node;
      } else {
        ++num_steps_;
        num_counted_ += !node->IsConstant();
        if (num_counted_ > kMostSteps || !MayRun(*node) || !LearnMemory(*node)) return false;
      }
    }
    plan->num_values = static_cast<int>(plan->arguments.size());
    return num_steps_ > 0;
  }

  static int IndexOf(const tf::Node& node) {
    int index = -1;
    return tf::GetNodeAttr(node.attrs(), "index", &index).ok() ? index : -1;
  }

  static bool MayRun(const tf::Node& node) {
    if (node.IsControlFlow() || node.IsSend() || node.IsRecv() || node.IsFunctionCall() || node.IsWhileNode() ||
        node.IsIfNode() || node.IsCaseNode()) {
      return false;
    }
    for (tf::DataType type : node.output_types()) {
      if (tf::IsRefType(type)) return false;
    }
    return KeepsNothing(node) && (DeviceTypeOf(node) != tf::DEVICE_CPU || MayRunOnHost(node));
  }

  bool LearnMemory(const tf::Node& node) {
    MemoryTypes& memory = memory_[&node];
    return MemoryOf(node, DeviceTypeOf(node), &memory.inputs, &memory.outputs);
  }
  bool IsOnHost(const tf::Node& node, bool output, int index) const {
    const MemoryTypes& memory = memory_.at(&node);
    return DeviceTypeOf(node) == tf::DEVICE_CPU || (output ? memory.outputs : memory.inputs)[index] == tf::HOST_MEMORY;
  }
  direct_call::CallPlan::ValuePlacement PlaceOf(const tf::Node& node, int output) const {
    return {node.output_type(output), node.assigned_device_name(), IsOnHost(node, true, output)};
  }

  // True if the reader of the value finds it where it lies.
  bool IsThere(const tf::Edge& e) const {
    const bool from_host = IsOnHost(*e.src(), true, e.src_output()), on_host = IsOnHost(*e.dst(), false, e.dst_input());
    return from_host == on_host && (on_host || e.src()->assigned_device_name() == e.dst()->assigned_device_name());
  }

  // Steps run one after the other: none may wait for a later one.
  bool WaitsInOrder(const std::vector<tf::Node*>& order) const {
    std::vector<tf::ControlFlowInfo> frames;
    return tf::BuildControlFlowInfo(&graph_, &frames).ok() && WaitOrder(graph_, order, frames).IsTotal();
  }

  bool AddSteps(const std::vector<tf::Node*>& order, direct_call::CallPlan* plan) {
    for (const tf::Node* node : order) {
      if (node->IsArg() || node->IsRetval()) continue;
      direct_call::CallPlan::PlannedOp& step = plan->steps.emplace_back();
      step.def = node->def();
      step.def.set_device(node->assigned_device_name());
      step.device = node->assigned_device_name();
      step.def.clear_input();  // the graph's edges hold them, and the kernel's constructor counts them
      for (const tf::Edge* e : InputsOf(*node)) {
        if (!IsThere(*e)) return false;
        step.def.add_input("value");
        step.inputs.push_back(values_.at(e->src()) + e->src_output());
      }
      step.first_output = values_[node] = plan->num_values;
      plan->num_values += node->num_outputs();
    }
    return static_cast<int>(plan->steps.size()) == num_steps_;
  }

  bool AddResults(direct_call::CallPlan* plan) {
    for (const tf::Node* node : results_) {
      const tf::Edge* e = nullptr;
      if (node == nullptr || !node->input_edge(0, &e).ok()) return false;
      const direct_call::CallPlan::ValuePlacement place = PlaceOf(*e->src(), e->src_output());
      const bool is_object = place.type == tf::DT_VARIANT;
      if (place.type == tf::DT_RESOURCE || (is_object && place.device != node->assigned_device_name())) return false;
      if (!place.in_host_memory && place.device != node->assigned_device_name()) return false;
      plan->results.push_back(place);
      plan->result_values.push_back(values_.at(e->src()) + e->src_output());
    }
    return true;
  }

  const tf::Graph& graph_;
  int num_steps_ = 0, num_counted_ = 0;
  std::vector<const tf::Node*> results_;
  std::map<const tf::Node*, int> values_;  // the first of a node
  std::map<const tf::Node*, MemoryTypes> memory_;
};

}  // namespace

std::unique_ptr<direct_call::CallPlan> PlanCall(const tf::Graph& graph) { return Planner(graph).Run(); }

}  // namespace xpu::graph

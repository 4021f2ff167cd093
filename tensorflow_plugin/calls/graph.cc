#include "tensorflow_plugin/calls/graph.h"

#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/memory_types.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/util/device_name_utils.h"
#include "tensorflow_plugin/calls/run.h"
#include "tensorflow_plugin/cluster/cluster_op.h"

namespace xpu::calls {
namespace {

namespace tf = tensorflow;

// More of them are work for an executor.
constexpr size_t kMostSteps = 24;

std::atomic<bool> switched_off{false};

struct Watch {
  std::string expected;  // empty: nothing
  std::unique_ptr<Plan> seen;
};
thread_local Watch watch;

std::string DeviceTypeOf(const tf::Node& node) {
  tf::DeviceNameUtils::ParsedName name;
  return tf::DeviceNameUtils::ParseFullName(node.assigned_device_name(), &name) && name.has_type ? name.type : "";
}

// On the CPU only what brings data and hands it on: for the others TensorFlow has passes and threads of its own.
bool MayRunOnHost(const std::string& op) {
  static const auto* const ops = new std::set<std::string>{
      "Const",        "Identity",         "IteratorGetNext", "IteratorGetNextAsOptional", "NoOp", "OptionalFromValue",
      "OptionalNone", "OptionalGetValue", "OptionalHasValue"};
  return ops->count(op) != 0;
}

// Ops that TensorFlow calls stateful for what they refer to: their kernels keep nothing from call to call. A cluster's
// kernels share it (cluster_op.h).
bool KeepsNothing(const tf::Node& node) {
  static const auto* const ops = new std::set<std::string>{
      cluster::kOp,       "IteratorGetNext",     "IteratorGetNextAsOptional", "ReadVariableOp",
      "AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp",       "ResourceGather",
      "VarHandleOp",      "VarIsInitializedOp"};
  return !node.op_def().is_stateful() || ops->count(node.type_string()) != 0;
}

class Planner {
 public:
  explicit Planner(const tf::Graph& graph) : graph_(graph) {}

  // Null if the graph is not fit.
  std::unique_ptr<Plan> Run() {
    auto plan = std::make_unique<Plan>();
    return Sort(plan.get()) && AddSteps(plan.get()) && AddResults(plan.get()) ? std::move(plan) : nullptr;
  }

 private:
  // Arguments, results and the others.
  bool Sort(Plan* plan) {
    for (const tf::Node* node : graph_.op_nodes()) {
      if (node->IsArg()) {
        const int index = IndexOf(*node);
        if (index < 0 || !LearnMemory(*node)) return false;
        if (index >= static_cast<int>(plan->arguments.size())) plan->arguments.resize(index + 1);
        plan->arguments[index] = PlaceOf(*node, 0);
        // What has its device's name and lies with the host, TensorFlow would have to bring there.
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
        if (rest_.size() == kMostSteps || !MayRun(*node) || !LearnMemory(*node)) return false;
        rest_.push_back(node);
      }
    }
    plan->num_values = static_cast<int>(plan->arguments.size());
    return !rest_.empty();
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
    return KeepsNothing(node) && (DeviceTypeOf(node) != tf::DEVICE_CPU || MayRunOnHost(node.type_string()));
  }

  bool LearnMemory(const tf::Node& node) {
    Memory& memory = memory_[&node];
    return tf::MemoryTypesForNode(tf::OpRegistry::Global(), tf::DeviceType(DeviceTypeOf(node)), node.def(),
                                  &memory.inputs, &memory.outputs)
        .ok();
  }
  bool IsOnHost(const tf::Node& node, bool output, int index) const {
    const Memory& memory = memory_.at(&node);
    return DeviceTypeOf(node) == tf::DEVICE_CPU || (output ? memory.outputs : memory.inputs)[index] == tf::HOST_MEMORY;
  }
  Plan::Place PlaceOf(const tf::Node& node, int output) const {
    return {node.output_type(output), node.assigned_device_name(), IsOnHost(node, true, output)};
  }

  // Whether who reads the value finds it where it lies.
  bool IsThere(const tf::Edge& e) const {
    const bool from_host = IsOnHost(*e.src(), true, e.src_output()), on_host = IsOnHost(*e.dst(), false, e.dst_input());
    return from_host == on_host && (on_host || e.src()->assigned_device_name() == e.dst()->assigned_device_name());
  }

  bool AddSteps(Plan* plan) {
    std::set<const tf::Node*> done;
    const auto is_ready = [&](const tf::Node& node) {
      for (const tf::Edge* e : node.in_edges()) {
        if (e->src()->IsOp() && !e->src()->IsArg() && done.count(e->src()) == 0) return false;
      }
      return true;
    };
    while (done.size() < rest_.size()) {
      const size_t before = done.size();
      for (const tf::Node* node : rest_) {
        if (done.count(node) != 0 || !is_ready(*node)) continue;
        done.insert(node);
        Plan::Step& step = plan->steps.emplace_back();
        step.def = node->def();
        step.def.set_device(node->assigned_device_name());
        step.device = node->assigned_device_name();
        step.inputs.resize(node->num_inputs());
        step.def.clear_input();  // the graph's edges hold them, and the kernel's constructor counts them
        for (int i = 0; i < node->num_inputs(); ++i) step.def.add_input("value");
        for (const tf::Edge* e : node->in_edges()) {
          if (e->IsControlEdge()) continue;
          if (!IsThere(*e)) return false;
          step.inputs[e->dst_input()] = values_.at(e->src()) + e->src_output();
        }
        step.first_output = values_[node] = plan->num_values;
        plan->num_values += node->num_outputs();
      }
      if (done.size() == before) return false;  // a cycle
    }
    return true;
  }

  bool AddResults(Plan* plan) {
    for (const tf::Node* node : results_) {
      const tf::Edge* e = nullptr;
      if (node == nullptr || !node->input_edge(0, &e).ok()) return false;
      const Plan::Place place = PlaceOf(*e->src(), e->src_output());
      const bool is_object = place.type == tf::DT_VARIANT;
      if (place.type == tf::DT_RESOURCE || (is_object && place.device != node->assigned_device_name())) return false;
      if (!place.in_host_memory && place.device != node->assigned_device_name()) return false;
      plan->results.push_back(place);
      plan->result_values.push_back(values_.at(e->src()) + e->src_output());
    }
    return true;
  }

  struct Memory {
    tf::MemoryTypeVector inputs, outputs;
  };
  const tf::Graph& graph_;
  std::vector<const tf::Node*> rest_, results_;
  std::map<const tf::Node*, int> values_;  // the first of a node
  std::map<const tf::Node*, Memory> memory_;
};

}  // namespace

void SwitchOff() { switched_off = true; }

void ExpectGraph(const std::string& function) { watch = Watch{switched_off ? "" : function, nullptr}; }

void SeeGraph(const std::string& function, const tf::Graph& graph) {
  if (!watch.expected.empty() && watch.expected == function) watch.seen = Planner(graph).Run();
}

DirectCall* TakeCall(const tf::ProcessFunctionLibraryRuntime& library) {
  const Watch seen = std::exchange(watch, Watch());
  return seen.seen == nullptr ? nullptr : MakeCall(*seen.seen, library).release();
}

}  // namespace xpu::calls

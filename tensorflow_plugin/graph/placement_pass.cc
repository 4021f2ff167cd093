#include "tensorflow_plugin/graph/placement_pass.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "tensorflow/core/common_runtime/optimization_registry.h"
#include "tensorflow/core/framework/memory_types.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/graph/control_flow.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/util/device_name_utils.h"
#include "tensorflow_plugin/framework/kernel_labels.h"
#include "tensorflow_plugin/framework/op_traits.h"
#include "tensorflow_plugin/graph/integer_placement.h"
#include "tensorflow_plugin/graph/nodes.h"
#include "tensorflow_plugin/graph/restore_dilations.h"
#include "tensorflow_plugin/graph/restore_sums.h"

namespace xpu::graph {
namespace {

namespace tf = tensorflow;

bool Has(const tf::Node& node, OpTrait trait) { return TraitsOf(node.type_string()).Has(trait); }

bool PassesOn(const tf::Node& node) {
  return node.IsIdentity() || node.IsEnter() || node.IsExit() || node.IsNextIteration() || node.IsSwitch() ||
         node.IsMerge();
}

// True if all inputs and outputs are arrays of numbers, and a device of this type has a kernel for the node.
bool IsOfNumbers(const tf::Node& node, const std::string& device_type) {
  const auto is_number = [](tf::DataType type) { return tf::DataTypeCanUseMemcpy(type) && !tf::IsRefType(type); };
  return std::all_of(node.input_types().begin(), node.input_types().end(), is_number) &&
         std::all_of(node.output_types().begin(), node.output_types().end(), is_number) &&
         tf::FindKernelDef(tf::DeviceType(device_type), node.def(), nullptr, nullptr).ok();
}

// True if an output can only be a TensorList of numbers that have gradients.
class Lists {
 public:
  bool IsList(const tf::Node& node, int output) {
    if (!seen_.insert(&node).second) return true;  // around a loop: the other ways into it decide
    if (Has(node, OpTrait::kMakesTensorList)) {
      tf::DataType element = tf::DT_INVALID;
      return output == 0 && tf::GetNodeAttr(node.attrs(), "element_dtype", &element).ok() &&
             (tf::DataTypeIsFloating(element) || tf::DataTypeIsComplex(element));
    }
    if (output != 0 && !node.IsSwitch()) return false;
    if (!PassesOn(node) && !IsAboutLists(node)) return false;
    for (const tf::Edge* e : node.in_edges()) {
      if (e->IsControlEdge() || (node.IsSwitch() && e->dst_input() != 0)) continue;
      if (!IsList(*e->src(), e->src_output())) return false;
    }
    return node.num_inputs() > 0;
  }

  // An op that gives a list where it gets lists.
  static bool IsAboutLists(const tf::Node& node) {
    return Has(node, OpTrait::kAddsTensorLists) && node.output_type(0) == tf::DT_VARIANT;
  }

 private:
  std::set<const tf::Node*> seen_;
};

// The device that all lists come from which a node reads, if it is of this type; else nothing.
std::string DeviceOfLists(const tf::Node& node, const std::string& device_type) {
  std::string device;
  for (const tf::Edge* e : node.in_edges()) {
    if (e->IsControlEdge()) continue;
    const std::string& from = e->src()->assigned_device_name();
    if (DeviceTypeOf(*e->src()) != device_type || (!device.empty() && from != device)) return "";
    device = from;
  }
  return device;
}

// The device of the list that an op on the CPU updates, if it is of this type and has a kernel for that op. Otherwise
// nothing.
std::string DeviceOfUpdate(const tf::Node& node, const std::string& device_type) {
  const tf::Node* list = nullptr;
  if (!Has(node, OpTrait::kMakesTensorList) || DeviceTypeOf(node) != tf::DEVICE_CPU || node.num_inputs() == 0 ||
      node.input_type(0) != tf::DT_VARIANT || !node.input_node(0, &list).ok() || DeviceTypeOf(*list) != device_type ||
      !tf::FindKernelDef(tf::DeviceType(device_type), node.def(), nullptr, nullptr).ok()) {
    return "";
  }
  return list->assigned_device_name();
}

bool IsPushOrPop(const tf::Node& node) {
  return Has(node, OpTrait::kAccumulates) && node.input_type(0) == tf::DT_VARIANT;
}

// The nodes that lists of one int32 accumulator pass through; `from` is one of them. Empty if a list comes from a
// place, or gets to one, where its elements are expected in device memory.
std::set<tf::Node*> AccumulatorOf(tf::Node* from) {
  std::set<tf::Node*> found = {from};
  std::vector<tf::Node*> open = {from};
  while (!open.empty()) {
    tf::Node* node = open.back();
    open.pop_back();
    const bool is_list = Has(*node, OpTrait::kAccumulates);
    tf::DataType element = tf::DT_INVALID;
    if (is_list && (!tf::GetNodeAttr(node->attrs(), "element_dtype", &element).ok() || element != tf::DT_INT32)) {
      return {};
    }
    if (!is_list && !PassesOn(*node)) return {};
    if (node->assigned_device_name() != from->assigned_device_name()) return {};
    for (const tf::EdgeSet* edges : {&node->in_edges(), &node->out_edges()}) {
      for (const tf::Edge* e : *edges) {
        if (e->IsControlEdge() || e->src()->output_type(e->src_output()) != tf::DT_VARIANT) continue;
        for (tf::Node* next : {e->src(), e->dst()}) {
          if (found.insert(next).second) open.push_back(next);
        }
      }
    }
  }
  return found;
}

// Nodes of loops that TensorFlow placed on the CPU, though a device can have them, too, with their values in host
// memory. A function's 32-bit integers pass through them. With them on the CPU a loop that they bound would ask it
// before every iteration.
class HostMemory {
 public:
  HostMemory(tf::Graph* graph, const std::string& device_type) : graph_(*graph), device_type_(device_type) {}

  absl::Status KeepOnDevice() {
    std::vector<tf::ControlFlowInfo> frames;
    TF_RETURN_IF_ERROR(tf::BuildControlFlowInfo(&graph_, &frames));
    for (tf::Node* node : graph_.op_nodes()) {
      if (!frames[node->id()].frame_name.empty() && MayMove(*node)) movable_.insert(node);
    }
    while (!movable_.empty()) {
      const std::set<tf::Node*, ById> together = TakeTogether();
      const std::string device = DeviceThatGains(together);
      for (tf::Node* node : together) {
        if (!device.empty()) node->set_assigned_device_name(device);
      }
    }
    return absl::OkStatus();
  }

 private:
  struct ById {
    bool operator()(const tf::Node* a, const tf::Node* b) const { return a->id() < b->id(); }
  };

  // True if the device would have it with all its values in host memory. A node that a program puts on the CPU stays
  // there, unless it only passes a value on.
  bool MayMove(const tf::Node& node) const {
    if (DeviceTypeOf(node) != tf::DEVICE_CPU || node.op_def().is_stateful() || node.num_outputs() == 0) return false;
    if (!PassesOn(node)) {
      tf::DeviceNameUtils::ParsedName wish;
      if (node.num_inputs() == 0 || (tf::DeviceNameUtils::ParseFullName(node.requested_device(), &wish) &&
                                     wish.has_type && wish.type != device_type_)) {
        return false;
      }
    }
    if (!IsOfNumbers(node, device_type_)) return false;
    tf::MemoryTypeVector inputs, outputs;
    const auto on_host = [](tf::MemoryType type) { return type == tf::HOST_MEMORY; };
    return MemoryOf(node, device_type_, &inputs, &outputs) && std::all_of(inputs.begin(), inputs.end(), on_host) &&
           std::all_of(outputs.begin(), outputs.end(), on_host);
  }

  // Nodes that pass values to each other.
  std::set<tf::Node*, ById> TakeTogether() {
    std::set<tf::Node*, ById> found;
    std::vector<tf::Node*> open;
    const auto visit = [&](tf::Node* node) {
      if (movable_.erase(node) == 0) return;
      found.insert(node);
      open.push_back(node);
    };
    visit(*movable_.begin());
    while (!open.empty()) {
      tf::Node* node = open.back();
      open.pop_back();
      for (const tf::Edge* e : node->in_edges()) visit(e->src());
      for (const tf::Edge* e : node->out_edges()) visit(e->dst());
    }
    return found;
  }

  // The device that exchanges values with them, in every iteration, more often than the CPU does; else nothing.
  std::string DeviceThatGains(const std::set<tf::Node*, ById>& nodes) const {
    std::string device;
    int gained = 0, lost = 0;
    const auto count = [&](const tf::Node& other, const tf::Node& node) {
      if (!other.IsOp() || nodes.count(const_cast<tf::Node*>(&other)) != 0) return true;
      if (DeviceTypeOf(other) != device_type_) return ++lost, true;
      ++gained;
      if (device.empty()) device = other.assigned_device_name();
      return device == other.assigned_device_name() &&
             tf::DeviceNameUtils::IsSameAddressSpace(device, node.assigned_device_name());
    };
    for (const tf::Node* node : nodes) {
      for (const tf::Edge* e : node->in_edges()) {
        if (!node->IsEnter() && !count(*e->src(), *node)) return "";
      }
      for (const tf::Edge* e : node->out_edges()) {
        if (!node->IsExit() && !count(*e->dst(), *node)) return "";
      }
    }
    return gained > lost ? device : "";
  }

  tf::Graph& graph_;
  const std::string& device_type_;
  std::set<tf::Node*, ById> movable_;
};

// The device of this type whose ops alone read a constant, where the device's kernel has it; else nothing.
std::string DeviceOfReaders(const tf::Node& constant, const std::string& device_type) {
  tf::MemoryTypeVector inputs, outputs;
  if (!IsOfNumbers(constant, device_type) || !MemoryOf(constant, device_type, &inputs, &outputs)) return "";
  std::string device;
  for (const tf::Edge* e : constant.out_edges()) {
    if (e->IsControlEdge()) continue;
    const std::string& reader = e->dst()->assigned_device_name();
    if (DeviceTypeOf(*e->dst()) != device_type || (!device.empty() && reader != device) ||
        IsInHostMemory(*e, /*source=*/false) != (outputs[0] == tf::HOST_MEMORY)) {
      return "";
    }
    device = reader;
  }
  return tf::DeviceNameUtils::IsSameAddressSpace(device, constant.assigned_device_name()) ? device : "";
}

// Constants on the CPU go to the device that reads them. TensorFlow leaves there what it computes of ops that have no
// kernel for the device, such as Range. A value from the CPU would be copied in each call, or in each iteration of a
// loop.
void MoveConstants(tf::Graph* graph, const std::string& device_type) {
  for (tf::Node* node : graph->op_nodes()) {
    if (!node->IsConstant() || DeviceTypeOf(*node) != tf::DEVICE_CPU) continue;
    const std::string device = DeviceOfReaders(*node, device_type);
    if (!device.empty()) node->set_assigned_device_name(device);
  }
}

// Constants in device memory that kernels of the device read in host memory, such as the value of PadV2, are there once
// more. A copy to the host would wait for the device, and the cluster behind it for the copy.
absl::Status ReadConstantsOnHost(tf::Graph* graph, const std::string& device_type) {
  for (tf::Node* node : TopologicalOrder(*graph)) {
    if (!node->IsConstant() || DeviceTypeOf(*node) != device_type || node->num_outputs() != 1) continue;
    tf::MemoryTypeVector inputs, outputs;
    if (!MemoryOf(*node, device_type, &inputs, &outputs) || outputs[0] != tf::DEVICE_MEMORY) continue;
    std::vector<const tf::Edge*> readers;
    for (const tf::Edge* e : node->out_edges()) {
      if (!e->IsControlEdge() && e->dst()->IsOp() && !e->dst()->IsControlFlow() &&
          e->dst()->assigned_device_name() == node->assigned_device_name() && IsInHostMemory(*e, /*source=*/false)) {
        readers.push_back(e);
      }
    }
    if (readers.empty()) continue;
    tf::NodeDef def = node->def();
    def.clear_input();
    def.set_op("HostConst");
    tf::Node* on_host = nullptr;
    TF_RETURN_IF_ERROR(AddOp(graph, "xpu_constant_", node->assigned_device_name(), std::move(def), &on_host));
    std::set<tf::Node*> before;
    for (const tf::Edge* e : node->in_edges()) before.insert(e->src());
    for (tf::Node* source : before) graph->AddControlEdge(source, on_host);
    RedirectReaders(graph, readers, on_host, 0);
  }
  return absl::OkStatus();
}

// Logic of a device whose operands are all in host memory (comparisons of counters are) stays there: a loop's condition
// is decided on the host. So are assertions about shapes, which are of all dimensions at once.
void KeepLogicOnHost(tf::Graph* graph, const std::string& device_type) {
  for (tf::Node* node : TopologicalOrder(*graph)) {  // one may read what another gives
    if (!Has(*node, OpTrait::kFollowsOperands) || DeviceTypeOf(*node) != device_type) continue;
    const bool reduces = Has(*node, OpTrait::kFollowsReaders);
    bool on_host = true;
    for (const tf::Edge* e : node->in_edges()) on_host = on_host && (e->IsControlEdge() || IsInHostMemory(*e));
    for (const tf::Edge* e : node->out_edges()) {
      on_host = on_host && (!reduces || e->IsControlEdge() || IsInHostMemory(*e, /*source=*/false));
    }
    if (on_host) node->AddAttr(labels::kAttribute, labels::kOnHost);
  }
}

// Sums and zeros of TensorLists, for which TensorFlow has kernels on the CPU alone, go to the device of all their
// lists. So do the updates of lists that TensorFlow placed beside them. With them on the CPU every iteration that a
// gradient goes back through would copy a whole list to the host, and back.
void KeepListsOnDevice(tf::Graph* graph, const std::string& device_type) {
  bool moved = true;
  while (moved) {  // one may read what another gives
    moved = false;
    for (tf::Node* node : graph->op_nodes()) {
      if (!Lists::IsAboutLists(*node) || DeviceTypeOf(*node) != tf::DEVICE_CPU) continue;
      for (const tf::Edge* e : node->in_edges()) {
        const std::string of_update = DeviceOfUpdate(*e->src(), device_type);
        if (!of_update.empty()) e->src()->set_assigned_device_name(of_update);
      }
      const std::string device = DeviceOfLists(*node, device_type);
      if (device.empty() || !Lists().IsList(*node, 0)) continue;
      node->set_assigned_device_name(device);
      node->AddAttr(labels::kAttribute, labels::kTensorLists);
      moved = true;
    }
  }
}

// Lists that a loop pushes int32 to and its gradient pops from, counters and shapes, keep it where it is: in host
// memory.
void KeepCountersOnHost(tf::Graph* graph, const std::string& device_type) {
  for (tf::Node* node : graph->op_nodes()) {
    if (!IsPushOrPop(*node) || DeviceTypeOf(*node) != device_type) continue;
    if (node->attrs().Find(labels::kAttribute) != nullptr) continue;  // of one that was found
    for (tf::Node* member : AccumulatorOf(node)) {
      if (IsPushOrPop(*member)) member->AddAttr(labels::kAttribute, labels::kOnHost);
    }
  }
}

class PlacementPass : public tf::GraphOptimizationPass {
 public:
  explicit PlacementPass(std::string device_type) : device_type_(std::move(device_type)) {}

  absl::Status Run(const tf::GraphOptimizationPassOptions& options) override {
    if (options.graph == nullptr || *options.graph == nullptr) return absl::OkStatus();
    TF_RETURN_IF_ERROR(RestoreSums(options.graph->get(), device_type_));
    TF_RETURN_IF_ERROR(RestoreDilations(options.graph->get(), device_type_));
    TF_RETURN_IF_ERROR(HostMemory(options.graph->get(), device_type_).KeepOnDevice());
    MoveConstants(options.graph->get(), device_type_);
    TF_RETURN_IF_ERROR(ReadConstantsOnHost(options.graph->get(), device_type_));
    KeepListsOnDevice(options.graph->get(), device_type_);
    KeepIntegersOnDevice(options.graph->get(), device_type_);
    KeepLogicOnHost(options.graph->get(), device_type_);
    KeepCountersOnHost(options.graph->get(), device_type_);
    return absl::OkStatus();
  }

 private:
  const std::string device_type_;
};

}  // namespace

void RegisterPlacementPass(const std::string& device_type) {
  // Before the one that makes clusters.
  tf::OptimizationPassRegistry::Global()->Register(tf::OptimizationPassRegistry::POST_REWRITE_FOR_EXEC, 999,
                                                   std::make_unique<PlacementPass>(device_type));
}

}  // namespace xpu::graph

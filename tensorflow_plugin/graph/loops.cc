#include "tensorflow_plugin/graph/loops.h"

#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "tensorflow/core/common_runtime/optimization_registry.h"
#include "tensorflow/core/framework/memory_types.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow_plugin/framework/labels.h"
#include "tensorflow_plugin/graph/integers.h"
#include "tensorflow_plugin/graph/nodes.h"

namespace xpu::graph {
namespace {

namespace tf = tensorflow;
using Set = std::set<std::string>;

// Ops whose first output is a TensorList of the elements that their attribute element_dtype says.
const Set& MakeLists() {
  static const Set* ops = new Set{
      "EmptyTensorList",    "TensorListConcatLists", "TensorListFromTensor", "TensorListPopBack",
      "TensorListPushBack", "TensorListReserve",     "TensorListScatterV2",  "TensorListScatterIntoExistingList",
      "TensorListSetItem",  "TensorListSplit"};
  return *ops;
}

bool PassesOn(const tf::Node& node) {
  return node.IsIdentity() || node.IsEnter() || node.IsExit() || node.IsNextIteration() || node.IsSwitch() ||
         node.IsMerge();
}

// Whether all that an output can be is a TensorList of numbers that have gradients.
class Lists {
 public:
  bool IsList(const tf::Node& node, int output) {
    if (!seen_.insert(&node).second) return true;  // around a loop: the other ways into it decide
    if (MakeLists().count(node.type_string()) != 0) {
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
    return (node.type_string() == "AddN" || node.type_string() == "ZerosLike") && node.output_type(0) == tf::DT_VARIANT;
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

// The device of the list that an op on the CPU updates, if it is of this type and has a kernel for that op; else
// nothing.
std::string DeviceOfUpdate(const tf::Node& node, const std::string& device_type) {
  const tf::Node* list = nullptr;
  if (MakeLists().count(node.type_string()) == 0 || DeviceTypeOf(node) != tf::DEVICE_CPU || node.num_inputs() == 0 ||
      node.input_type(0) != tf::DT_VARIANT || !node.input_node(0, &list).ok() || DeviceTypeOf(*list) != device_type ||
      !tf::FindKernelDef(tf::DeviceType(device_type), node.def(), nullptr, nullptr).ok()) {
    return "";
  }
  return list->assigned_device_name();
}

bool IsPushOrPop(const tf::Node& node) {
  return node.type_string() == "TensorListPushBack" || node.type_string() == "TensorListPopBack";
}

// The nodes that lists of one int32 accumulator pass through, `from` being one; empty if a list comes from, or gets to,
// where somebody expects its elements in device memory.
std::set<tf::Node*> AccumulatorOf(tf::Node* from) {
  std::set<tf::Node*> found = {from};
  std::vector<tf::Node*> open = {from};
  while (!open.empty()) {
    tf::Node* node = open.back();
    open.pop_back();
    const bool is_list = IsPushOrPop(*node) || node->type_string() == "EmptyTensorList";
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

// Logic of a device whose operands are all in host memory (comparisons of counters are) stays there: a loop's condition
// is decided on the host. So are assertions about shapes, which are of all dimensions at once.
void KeepLogicOnHost(tf::Graph* graph, const std::string& device_type) {
  static const Set* const logic = new Set{"LogicalAnd", "LogicalNot", "LogicalOr"};
  static const Set* const reductions = new Set{"All", "Any"};
  for (tf::Node* node : InOrder(*graph)) {  // one may read what another gives
    const bool reduces = reductions->count(node->type_string()) != 0;
    if ((!reduces && logic->count(node->type_string()) == 0) || DeviceTypeOf(*node) != device_type) continue;
    bool on_host = true;
    for (const tf::Edge* e : node->in_edges()) on_host = on_host && (e->IsControlEdge() || IsInHostMemory(*e));
    for (const tf::Edge* e : node->out_edges()) {
      on_host = on_host && (!reduces || e->IsControlEdge() || IsInHostMemory(*e, /*source=*/false));
    }
    if (on_host) node->AddAttr(labels::kAttribute, labels::kOnHost);
  }
}

// Sums and zeros of TensorLists, for which TensorFlow has kernels on the CPU alone, go to the device that all their
// lists are on, and with them the updates of lists that TensorFlow placed beside them. With them on the CPU every
// iteration that a gradient goes back through would copy a whole list to the host, and back.
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

class LoopPass : public tf::GraphOptimizationPass {
 public:
  explicit LoopPass(std::string device_type) : device_type_(std::move(device_type)) {}

  absl::Status Run(const tf::GraphOptimizationPassOptions& options) override {
    if (options.graph == nullptr || *options.graph == nullptr) return absl::OkStatus();
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

void RegisterLoopPass(const std::string& device_type) {
  // Before the one that makes clusters.
  tf::OptimizationPassRegistry::Global()->Register(tf::OptimizationPassRegistry::POST_REWRITE_FOR_EXEC, 999,
                                                   std::make_unique<LoopPass>(device_type));
}

}  // namespace xpu::graph

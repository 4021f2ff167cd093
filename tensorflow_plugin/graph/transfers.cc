#include "tensorflow_plugin/graph/transfers.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/control_flow.h"
#include "tensorflow_plugin/cluster/transfer_op.h"
#include "tensorflow_plugin/framework/kernel_labels.h"
#include "tensorflow_plugin/framework/op_traits.h"
#include "tensorflow_plugin/graph/node_traits.h"
#include "tensorflow_plugin/graph/nodes.h"

namespace xpu::graph {
namespace {

namespace tf = tensorflow;

// An output that is read in the other memory.
struct Transfer {
  tf::Node* source;
  int output;
  bool from_host;
  std::vector<const tf::Edge*> readers;
};
using Transfers = std::map<std::tuple<int, int, bool>, Transfer>;  // by the source, its output, and where that is

// Those within loops.
absl::Status FindTransfers(tf::Graph* graph, const std::string& device_type, const std::set<std::string>& without_loops,
                           Transfers* transfers) {
  std::vector<tf::ControlFlowInfo> frames;
  TF_RETURN_IF_ERROR(tf::BuildControlFlowInfo(graph, &frames));
  for (tf::Node* node : graph->op_nodes()) {
    const std::string& frame = frames[node->id()].frame_name;
    if (frame.empty() || without_loops.count(frame) != 0 || DeviceTypeOf(*node) != device_type) continue;
    tf::MemoryTypeVector inputs, outputs;
    if (!MemoryOf(*node, device_type, &inputs, &outputs)) continue;
    for (const tf::Edge* e : node->out_edges()) {
      if (e->IsControlEdge() || !e->dst()->IsOp()) continue;
      const tf::Node& reader = *e->dst();
      const tf::DataType type = node->output_type(e->src_output());
      const bool from_host = outputs[e->src_output()] == tf::HOST_MEMORY;
      if (!tf::DataTypeCanUseMemcpy(type) || tf::IsRefType(type) ||
          reader.assigned_device_name() != node->assigned_device_name() ||
          IsInHostMemory(*e, /*source=*/false) == from_host) {
        continue;
      }
      Transfer& transfer = (*transfers)[{node->id(), e->src_output(), from_host}];
      transfer.source = node;
      transfer.output = e->src_output();
      transfer.from_host = from_host;
      transfer.readers.push_back(e);
    }
  }
  return absl::OkStatus();
}

// `counted`: an attribute of the op.
absl::Status Copy(tf::Graph* graph, const Transfer& transfer, bool counted) {
  tf::NodeDef def;
  def.set_op(transfer.from_host ? cluster::kToDeviceOp : cluster::kToHostOp);
  tf::AddNodeAttr("dtype", transfer.source->output_type(transfer.output), &def);
  if (counted) tf::AddNodeAttr(kCopiesCount, true, &def);
  tf::Node* op = nullptr;
  TF_RETURN_IF_ERROR(AddOp(graph, "xpu_transfer_", transfer.source->assigned_device_name(), std::move(def), &op));
  graph->AddEdge(transfer.source, transfer.output, op, 0);
  RedirectReaders(graph, transfer.readers, op, 0);
  return absl::OkStatus();
}

// True if a node's value has more readers than the transfer's.
bool HasOtherReaders(const tf::Node& node, const Transfer& transfer) {
  size_t readers = 0;
  for (const tf::Edge* e : node.out_edges()) readers += !e->IsControlEdge() && e->dst()->IsOp() ? 1 : 0;
  return readers != transfer.readers.size();
}

// Has a number copied, and not the [[number]] that is made of it for the readers alone. The device then does that. Such
// a copy needs nothing but the number, so that iterations of a loop can run in blocks.
void CopyBeforeExpandDims(const std::string& device_type, Transfer* transfer) {
  for (;;) {
    tf::Node* const node = transfer->source;
    if (node->type_string() != "ExpandDims" || HasOtherReaders(*node, *transfer) ||
        node->attrs().Find(labels::kAttribute) != nullptr) {
      return;
    }
    const tf::Edge* const from = InputsOf(*node)[0];
    if (from->src()->assigned_device_name() != node->assigned_device_name() || !IsInHostMemory(*from)) return;
    node->AddAttr(labels::kAttribute, labels::kOnDevice);
    if (!tf::FindKernelDef(tf::DeviceType(device_type), node->def(), nullptr, nullptr).ok()) {
      node->ClearAttr(labels::kAttribute);
      return;
    }
    transfer->source = from->src();
    transfer->output = from->src_output();
    transfer->readers = {from};
  }
}

// Finds out which values on the host follow from shapes, constants, and how often loops have run.
class Counts {
 public:
  explicit Counts(const std::string& device_type) : device_type_(device_type) {}

  bool IsCount(const tf::Node& node) {
    std::set<const tf::Node*> visited{&node};
    std::vector<const tf::Node*> to_visit{&node};
    while (!to_visit.empty()) {
      const tf::Node& visiting = *to_visit.back();
      to_visit.pop_back();
      if (visiting.IsConstant() || TraitsOf(visiting.type_string()).Has(OpTrait::kGivesShapes)) continue;
      if (!visiting.IsControlFlow() && !IsOnHost(visiting)) return false;
      for (const tf::Edge* e : InputsOf(visiting)) {
        // Which way a value takes is the loop's condition.
        if (visiting.IsSwitch() && e->dst_input() != 0) continue;
        if (visited.insert(e->src()).second) to_visit.push_back(e->src());
      }
    }
    return true;
  }

 private:
  // True for arithmetic of values in host memory.
  bool IsOnHost(const tf::Node& node) const {
    if (node.op_def().is_stateful() || node.num_inputs() == 0) return false;
    const auto on_host = [](const tf::MemoryTypeVector& types) {
      return std::all_of(types.begin(), types.end(), [](tf::MemoryType type) { return type == tf::HOST_MEMORY; });
    };
    if (DeviceTypeOf(node) != device_type_) return true;
    tf::MemoryTypeVector inputs, outputs;
    return MemoryOf(node, device_type_, &inputs, &outputs) && on_host(inputs) && on_host(outputs);
  }

  const std::string& device_type_;
};

}  // namespace

absl::Status CopyCountsInLoops(tf::Graph* graph, const std::string& device_type,
                               const std::set<std::string>& copying_loops) {
  Transfers transfers;
  TF_RETURN_IF_ERROR(FindTransfers(graph, device_type, copying_loops, &transfers));
  Counts counts(device_type);
  for (auto& [key, transfer] : transfers) {
    if (!transfer.from_host || !counts.IsCount(*transfer.source)) continue;
    CopyBeforeExpandDims(device_type, &transfer);
    TF_RETURN_IF_ERROR(Copy(graph, transfer, /*counted=*/true));
  }
  return absl::OkStatus();
}

absl::Status CopyInLoops(tf::Graph* graph, const std::string& device_type) {
  Transfers transfers;
  TF_RETURN_IF_ERROR(FindTransfers(graph, device_type, {}, &transfers));
  for (const auto& [key, transfer] : transfers) TF_RETURN_IF_ERROR(Copy(graph, transfer, /*counted=*/false));
  return absl::OkStatus();
}

}  // namespace xpu::graph

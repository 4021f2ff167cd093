#include "tensorflow_plugin/graph/transfers.h"

#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/control_flow.h"
#include "tensorflow_plugin/cluster/transfer_op.h"
#include "tensorflow_plugin/graph/nodes.h"

namespace xpu::graph {

namespace tf = tensorflow;

absl::Status CopyInLoops(tf::Graph* graph, const std::string& device_type) {
  std::vector<tf::ControlFlowInfo> frames;
  TF_RETURN_IF_ERROR(tf::BuildControlFlowInfo(graph, &frames));
  struct Readers {
    tf::Node* source;
    int output;
    bool from_host;
    std::vector<const tf::Edge*> edges;
  };
  std::map<std::tuple<int, int, bool>, Readers> crossings;  // by the source, its output, and where that is
  for (tf::Node* node : graph->op_nodes()) {
    if (frames[node->id()].frame_name.empty() || DeviceTypeOf(*node) != device_type) continue;
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
      Readers& readers = crossings[{node->id(), e->src_output(), from_host}];
      readers.source = node;
      readers.output = e->src_output();
      readers.from_host = from_host;
      readers.edges.push_back(e);
    }
  }
  for (const auto& [key, readers] : crossings) {
    tf::NodeDef def;
    def.set_op(readers.from_host ? cluster::kToDeviceOp : cluster::kToHostOp);
    tf::AddNodeAttr("dtype", readers.source->output_type(readers.output), &def);
    tf::Node* op = nullptr;
    TF_RETURN_IF_ERROR(AddOp(graph, "xpu_transfer_", readers.source->assigned_device_name(), std::move(def), &op));
    graph->AddEdge(readers.source, readers.output, op, 0);
    RedirectReaders(graph, readers.edges, op, 0);
  }
  return absl::OkStatus();
}

}  // namespace xpu::graph

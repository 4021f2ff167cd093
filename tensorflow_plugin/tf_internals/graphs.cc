// Graphs, which passes read and change.
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow_plugin/tf_internals/checks.h"

namespace xpu::tf_internals {

namespace tf = tensorflow;

void CheckGraphs(Check& check) {
  tf::Graph graph(tf::OpRegistry::Global());
  tf::NodeDef source, sink;
  source.set_name("source");
  source.set_op("Placeholder");
  tf::AddNodeAttr("dtype", tf::DT_FLOAT, &source);
  sink.set_name("sink");
  sink.set_op("Identity");
  sink.add_input("source");
  tf::AddNodeAttr("T", tf::DT_FLOAT, &sink);
  absl::Status status;
  tf::Node* const first = graph.AddNode(source, &status);
  tf::Node* const second = status.ok() ? graph.AddNode(sink, &status) : nullptr;
  if (!check.Is("whether a graph takes nodes", status.ok(), true)) return;
  const tf::Edge* const edge = graph.AddEdge(first, 0, second, 0);
  if (!check.Is("the number of a graph's nodes", graph.num_op_nodes(), 2) ||
      !check.Is("the name of a node", second->name(), "sink") ||
      !check.Is("its op", second->type_string(), "Identity") ||
      !check.Is("the number of its inputs", second->num_inputs(), 1) ||
      !check.Is("its input's type", static_cast<int>(second->input_type(0)), static_cast<int>(tf::DT_FLOAT)) ||
      !check.Is("the number of edges to it", second->in_edges().size(), 1) ||
      !check.Is("the edge to it", *second->in_edges().begin(), edge) ||
      !check.Is("where that comes from", edge->src(), first)) {
    return;
  }
  int nodes = 0;
  for (tf::Node* node : graph.op_nodes()) nodes += node == first || node == second;
  if (!check.Is("the number of nodes that a loop meets", nodes, 2)) return;
  second->AddAttr("_xpu_probe", true);
  if (!check.Is("whether a node takes an attribute", second->def().attr().count("_xpu_probe"), 1)) return;
  graph.RemoveNode(second);
  check.Is("the number of edges from a node whose reader is gone", first->out_edges().size(), 0);
}

}  // namespace xpu::tf_internals

// Graphs, which passes read and change.
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow_plugin/tf_internals/checks.h"

namespace xpu::tf_internals {

namespace tf = tensorflow;

namespace {

// A graph with a source and a sink, which no edge connects yet.
struct TwoNodes {
  TwoNodes() : graph(tf::OpRegistry::Global()) {
    tf::NodeDef of_source, of_sink;
    of_source.set_name("source");
    of_source.set_op("Placeholder");
    tf::AddNodeAttr("dtype", tf::DT_FLOAT, &of_source);
    of_sink.set_name("sink");
    of_sink.set_op("Identity");
    of_sink.add_input("source");
    tf::AddNodeAttr("T", tf::DT_FLOAT, &of_sink);
    source = graph.AddNode(of_source, &status);
    sink = status.ok() ? graph.AddNode(of_sink, &status) : nullptr;
  }

  tf::Graph graph;
  absl::Status status;
  tf::Node *source, *sink;
};

}  // namespace

void CheckNodes(Check& check) {
  constexpr char kDevice[] = "/job:localhost/replica:0/task:0/device:CPU:0", kAttribute[] = "_xpu_probe";
  TwoNodes two;
  if (!check.Is("whether a graph takes nodes", two.status.ok(), true) ||
      !check.Is("the number of a graph's nodes", two.graph.num_op_nodes(), 2) ||
      !check.Is("the name of a node", two.sink->name(), "sink") ||
      !check.Is("its op", two.sink->type_string(), "Identity")) {
    return;
  }
  int nodes = 0;
  for (tf::Node* node : two.graph.op_nodes()) nodes += node == two.source || node == two.sink;
  if (!check.Is("the number of nodes that a loop meets", nodes, 2)) return;
  two.sink->set_assigned_device_name(kDevice);
  two.sink->AddAttr(kAttribute, true);
  if (!check.Is("the device of a node", two.sink->assigned_device_name(), kDevice) ||
      !check.Is("whether a node takes an attribute", two.sink->def().attr().count(kAttribute), 1)) {
    return;
  }
  two.sink->ClearAttr(kAttribute);
  check.Is("whether it has lost an attribute", two.sink->def().attr().count(kAttribute), 0);
}

bool KnowsNodes() {
  Check check;
  CheckNodes(check);
  return check.why().empty();
}

void CheckGraphs(Check& check) {
  CheckNodes(check);
  if (!check.why().empty()) return;
  TwoNodes two;
  const tf::Edge* const edge = two.graph.AddEdge(two.source, 0, two.sink, 0);
  if (!check.Is("the number of a node's inputs", two.sink->num_inputs(), 1) ||
      !check.Is("its input's type", static_cast<int>(two.sink->input_type(0)), static_cast<int>(tf::DT_FLOAT)) ||
      !check.Is("the number of edges to it", two.sink->in_edges().size(), 1) ||
      !check.Is("the edge to it", *two.sink->in_edges().begin(), edge) ||
      !check.Is("where that comes from", edge->src(), two.source)) {
    return;
  }
  two.graph.RemoveNode(two.sink);
  check.Is("the number of edges from a node whose reader is gone", two.source->out_edges().size(), 0);
}

}  // namespace xpu::tf_internals

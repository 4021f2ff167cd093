#include "tensorflow_plugin/graph/shape_placement.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow_plugin/cluster/assert_op.h"
#include "tensorflow_plugin/framework/op_traits.h"
#include "tensorflow_plugin/graph/nodes.h"

namespace xpu::graph {
namespace {

namespace tf = tensorflow;

// False if something that it would say is text that is computed.
bool Describe(const tf::Node& node, tf::NodeDef* def, std::vector<const tf::Edge*>* values) {
  const std::vector<const tf::Edge*> inputs = InputsOf(node);
  int64_t summarize = 0;
  if (inputs.empty() || !tf::GetNodeAttr(node.attrs(), "summarize", &summarize).ok()) return false;
  std::vector<tf::DataType> types;
  std::vector<std::string> texts = {""};
  for (size_t i = 1; i < inputs.size(); ++i) {
    if (i > 1) texts.back() += " ";
    tf::Tensor text;
    const bool is_text = node.input_type(static_cast<int>(i)) == tf::DT_STRING;
    if (is_text && ReadConstant(*inputs[i]->src(), &text)) {
      absl::StrAppend(&texts.back(), "[", text.SummarizeValue(summarize), "]");
      continue;
    }
    if (is_text) return false;
    types.push_back(tf::BaseType(node.input_type(static_cast<int>(i))));
    values->push_back(inputs[i]);
    texts.emplace_back();
  }
  def->set_op(cluster::kAssertOp);
  def->set_name(node.name());
  def->set_device(node.assigned_device_name());
  tf::AddNodeAttr(cluster::attr::kValueTypes, types, def);
  tf::AddNodeAttr(cluster::attr::kTexts, texts, def);
  tf::AddNodeAttr(cluster::attr::kSummarize, summarize, def);
  return true;
}

// True if a node gives a shape of its one argument, which is no variable and no list.
bool IsShapeOfOne(const tf::Node& node) {
  return TraitsOf(node.type_string()).Has(OpTrait::kGivesShapes) && node.num_inputs() == 1 &&
         node.op_def().input_arg(0).number_attr().empty() && node.input_type(0) != tf::DT_RESOURCE;
}

absl::Status Replace(tf::Graph* graph, tf::Node* node) {
  tf::NodeDef def;
  std::vector<const tf::Edge*> values;
  if (!Describe(*node, &def, &values)) return absl::OkStatus();
  absl::Status status;
  tf::Node* const op = graph->AddNode(std::move(def), &status);
  TF_RETURN_IF_ERROR(status);
  op->set_assigned_device_name(node->assigned_device_name());
  const tf::Edge* const condition = InputsOf(*node)[0];
  graph->AddEdge(condition->src(), condition->src_output(), op, 0);
  int input = 1;
  for (const tf::Edge* e : values) graph->AddEdge(e->src(), e->src_output(), op, input++);
  for (const tf::Edge* e : node->in_edges()) {
    if (e->IsControlEdge()) graph->AddControlEdge(e->src(), op);
  }
  for (const tf::Edge* e : node->out_edges()) graph->AddControlEdge(op, e->dst());
  graph->RemoveNode(node);
  return absl::OkStatus();
}

}  // namespace

void PlaceShapesWithReaders(tf::Graph* graph, const std::string& device_type) {
  for (tf::Node* node : graph->op_nodes()) {
    const tf::Edge* from = nullptr;
    // 32-bit integers would be read in host memory there, too.
    if (!IsShapeOfOne(*node) || DeviceTypeOf(*node) != tf::DEVICE_CPU || !node->input_edge(0, &from).ok() ||
        node->input_type(0) == tf::DT_INT32) {
      continue;
    }
    for (const tf::Edge* e : from->src()->out_edges()) {
      if (e->src_output() != from->src_output() || e->IsControlEdge() || DeviceTypeOf(*e->dst()) != device_type)
        continue;
      tf::MemoryTypeVector inputs, outputs;
      if (!MemoryOf(*node, device_type, &inputs, &outputs)) break;
      node->set_assigned_device_name(e->dst()->assigned_device_name());
      break;
    }
  }
}

absl::Status EmbedAssertionTexts(tf::Graph* graph, const std::string& device_type) {
  std::vector<tf::Node*> assertions;
  for (tf::Node* node : graph->op_nodes()) {
    if (node->type_string() == "Assert" && DeviceTypeOf(*node) == device_type) assertions.push_back(node);
  }
  for (tf::Node* node : assertions) TF_RETURN_IF_ERROR(Replace(graph, node));
  return absl::OkStatus();
}

}  // namespace xpu::graph

#include "tensorflow_plugin/graph/restore_sums.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow_plugin/graph/nodes.h"

namespace xpu::graph {
namespace {

namespace tf = tensorflow;

template <typename Numbers>
bool AreZeros(const Numbers& numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [](auto number) { return number == 0; });
}

// True of a constant of numbers that are all zeros. TensorFlow writes such a constant as one number, however large it
// is.
bool IsConstantOfZeros(const tf::Node& node) {
  const tf::TensorProto* value = nullptr;
  return node.IsConstant() && tf::GetNodeAttr(node.def(), "value", &value).ok() && AreZeros(value->tensor_content()) &&
         AreZeros(value->float_val()) && AreZeros(value->double_val()) && AreZeros(value->int_val()) &&
         AreZeros(value->int64_val()) && AreZeros(value->uint32_val()) && AreZeros(value->uint64_val()) &&
         AreZeros(value->half_val()) && AreZeros(value->scomplex_val()) && AreZeros(value->dcomplex_val());
}

// The ops of one temporary variable. One sets it to zeros, one for each term adds the term, and one reads and destroys
// it.
class TakenApart {
 public:
  explicit TakenApart(tf::Node* variable) : variable_(variable) {}

  // True if they are these ops and no other op depends on them.
  bool Find() {
    std::vector<tf::Node*> readers;
    if (!ReadersOf(*variable_, &readers) || readers.size() != 1 || readers[0]->type_string() != "Assign") return false;
    start_ = readers[0];
    tf::Node* zeros = nullptr;
    if (!start_->input_node(1, &zeros).ok()) return false;
    // TensorFlow replaces zeros of a known shape by a constant, which several sums may share.
    if (IsConstantOfZeros(*zeros)) {
      constant_ = zeros;
    } else if (zeros->type_string() == "ZerosLike") {
      readers.clear();
      if (!ReadersOf(*zeros, &readers) || readers.size() != 1) return false;
      inner_.insert(zeros);
    } else {
      return false;
    }
    readers.clear();
    if (!ReadersOf(*start_, &readers)) return false;
    for (tf::Node* node : readers) {
      if (node->type_string() == "AssignAdd") {
        additions_.push_back(node);
      } else if (node->type_string() == "DestroyTemporaryVariable" && end_ == nullptr) {
        end_ = node;
      } else {
        return false;
      }
    }
    if (end_ == nullptr || additions_.empty()) return false;
    inner_.insert({variable_, start_});
    inner_.insert(additions_.begin(), additions_.end());
    for (tf::Node* node : inner_) {
      for (const tf::Edge* e : node->out_edges()) {
        if (e->dst()->IsOp() && e->dst() != end_ && inner_.count(e->dst()) == 0) return false;
        // Without such an edge the variable might be read before the term is added.
        if (e->dst() == end_ && e->IsControlEdge()) awaited_.insert(node);
      }
    }
    // In the order of the sum's terms.
    std::sort(additions_.begin(), additions_.end(), [](const tf::Node* a, const tf::Node* b) {
      return std::make_pair(a->name().size(), a->name()) < std::make_pair(b->name().size(), b->name());
    });
    return std::all_of(additions_.begin(), additions_.end(), [&](tf::Node* n) { return awaited_.count(n) != 0; });
  }

  absl::Status Restore(tf::Graph* graph) {
    tf::DataType type;
    TF_RETURN_IF_ERROR(tf::GetNodeAttr(end_->attrs(), "T", &type));
    tf::NodeDef def;
    def.set_name(end_->name());
    def.set_op("AddN");
    def.set_device(end_->requested_device());
    tf::AddNodeAttr("N", static_cast<int64_t>(additions_.size()), &def);
    tf::AddNodeAttr("T", type, &def);
    absl::Status status;
    tf::Node* const sum = graph->AddNode(std::move(def), &status);
    TF_RETURN_IF_ERROR(status);
    sum->set_assigned_device_name(end_->assigned_device_name());
    int input = 0;
    for (tf::Node* addition : additions_) {
      const tf::Edge* term = nullptr;
      TF_RETURN_IF_ERROR(addition->input_edge(1, &term));
      graph->AddEdge(term->src(), term->src_output(), sum, input++);
    }
    inner_.insert(end_);
    for (tf::Node* node : inner_) {
      for (const tf::Edge* e : node->in_edges()) {
        if (e->IsControlEdge() && e->src()->IsOp() && inner_.count(e->src()) == 0) graph->AddControlEdge(e->src(), sum);
      }
    }
    std::vector<const tf::Edge*> readers;
    for (const tf::Edge* e : end_->out_edges()) {
      if (e->IsControlEdge()) {
        graph->AddControlEdge(sum, e->dst());
      } else {
        readers.push_back(e);
      }
    }
    RedirectReaders(graph, readers, sum, 0);
    for (tf::Node* node : inner_) graph->RemoveNode(node);
    if (constant_ != nullptr) RemoveUnread(graph, constant_);
    return absl::OkStatus();
  }

 private:
  static void RemoveUnread(tf::Graph* graph, tf::Node* constant) {
    for (const tf::Edge* e : constant->out_edges()) {
      if (e->dst()->IsOp()) return;
    }
    graph->RemoveNode(constant);
  }

  // The nodes that read its output; false if it has another one.
  static bool ReadersOf(const tf::Node& node, std::vector<tf::Node*>* readers) {
    if (node.num_outputs() != 1) return false;
    for (const tf::Edge* e : node.out_edges()) {
      if (!e->IsControlEdge()) readers->push_back(e->dst());
    }
    return true;
  }

  tf::Node* const variable_;
  tf::Node *start_ = nullptr, *constant_ = nullptr, *end_ = nullptr;
  std::vector<tf::Node*> additions_;
  std::set<tf::Node*> inner_, awaited_;
};

}  // namespace

absl::Status RestoreSums(tf::Graph* graph, const std::string& device_type) {
  std::vector<tf::Node*> variables;
  for (tf::Node* node : graph->op_nodes()) {
    if (node->type_string() == "TemporaryVariable" && DeviceTypeOf(*node) == device_type) variables.push_back(node);
  }
  for (tf::Node* variable : variables) {
    TakenApart sum(variable);
    if (sum.Find()) TF_RETURN_IF_ERROR(sum.Restore(graph));
  }
  return absl::OkStatus();
}

}  // namespace xpu::graph

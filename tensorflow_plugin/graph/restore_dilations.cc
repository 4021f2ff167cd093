#include "tensorflow_plugin/graph/restore_dilations.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow_plugin/framework/kernel_labels.h"
#include "tensorflow_plugin/graph/nodes.h"

namespace xpu::graph {
namespace {

namespace tf = tensorflow;

// The rows and the columns of images.
constexpr int kAxes = 2;

// The numbers of a constant that is an input of a node; false if it is something else.
bool ReadNumbers(const tf::Node& node, int input, std::vector<int64_t>* numbers) {
  const tf::Node* source = nullptr;
  tf::Tensor value;
  return node.input_node(input, &source).ok() && ReadConstant(*source, &value) && ReadIntegers(value, numbers);
}

bool Has(const tf::Node& node, const char* attribute, const std::vector<int64_t>& wanted) {
  std::vector<int64_t> value;
  return tf::GetNodeAttr(node.attrs(), attribute, &value).ok() && value == wanted;
}
bool Has(const tf::Node& node, const char* attribute, const char* wanted) {
  std::string value;
  return tf::GetNodeAttr(node.attrs(), attribute, &value).ok() && value == wanted;
}

tf::Node* Source(const tf::Node& node, int input) {
  tf::Node* source = nullptr;
  return node.input_node(input, &source).ok() ? source : nullptr;
}

// True if no op but one reads a node's value.
bool IsReadOnce(const tf::Node& node) {
  int readers = 0;
  for (const tf::Edge* e : node.out_edges()) readers += e->IsControlEdge() ? 0 : 1;
  return readers == 1;
}

// A convolution that has been taken apart. One along a line of pixels has them as columns of one row.
class TakenApart {
 public:
  explicit TakenApart(tf::Node* to_space) : to_space_(to_space) {}

  // True if the ops are such a convolution.
  bool Find(const std::string& device_type) {
    convolution_ = Source(*to_space_, 0);
    if (convolution_ != nullptr && convolution_->type_string() == "Squeeze") {
      squeeze_ = convolution_;
      convolution_ = Source(*squeeze_, 0);
    }
    if (convolution_ == nullptr ||
        (convolution_->type_string() != "Conv2D" && convolution_->type_string() != "DepthwiseConv2dNative")) {
      return false;
    }
    to_batch_ = Source(*convolution_, 0);
    if (squeeze_ != nullptr) {
      expand_ = to_batch_;
      to_batch_ = expand_ == nullptr ? nullptr : Source(*expand_, 0);
    }
    const std::vector<int64_t> ones(4, 1);
    return to_batch_ != nullptr && to_batch_->type_string() == "SpaceToBatchND" && IsLine() &&
           Has(*convolution_, "data_format", "NHWC") && Has(*convolution_, "padding", "VALID") &&
           Has(*convolution_, "strides", ones) && Has(*convolution_, "dilations", ones) && IsReadOnce(*convolution_) &&
           (squeeze_ == nullptr || IsReadOnce(*squeeze_)) && AreOn(device_type) && IsInOnePiece() && FindGeometry();
  }

  absl::Status Restore(tf::Graph* graph) {
    tf::Node* x = Source(*to_batch_, 0);
    const tf::Edge* of_x = nullptr;
    TF_RETURN_IF_ERROR(to_batch_->input_edge(0, &of_x));
    int output = of_x->src_output();
    if (expand_ != nullptr) {
      tf::Node* expanded = nullptr;
      TF_RETURN_IF_ERROR(Add(graph, expand_->def(), *expand_, &expanded));
      TF_RETURN_IF_ERROR(Connect(graph, x, output, *expand_, expanded));
      x = expanded;
      output = 0;
    }
    tf::NodeDef def = convolution_->def();
    for (const char* attribute : {"padding", "explicit_paddings", "dilations"}) def.mutable_attr()->erase(attribute);
    tf::AddNodeAttr("padding", "EXPLICIT", &def);
    tf::AddNodeAttr("explicit_paddings", paddings_, &def);
    tf::AddNodeAttr("dilations", dilations_, &def);
    tf::AddNodeAttr(labels::kMultiplesOfPadded, multiples_, &def);
    tf::Node* whole = nullptr;
    TF_RETURN_IF_ERROR(Add(graph, std::move(def), *convolution_, &whole));
    TF_RETURN_IF_ERROR(Connect(graph, x, output, *convolution_, whole));
    KeepOrder(graph, whole);
    tf::Node* result = whole;
    if (squeeze_ != nullptr) {
      TF_RETURN_IF_ERROR(Add(graph, squeeze_->def(), *squeeze_, &result));
      TF_RETURN_IF_ERROR(Connect(graph, whole, 0, *squeeze_, result));
    }
    std::vector<const tf::Edge*> readers;
    for (const tf::Edge* e : to_space_->out_edges()) {
      if (!e->IsControlEdge()) readers.push_back(e);
    }
    RedirectReaders(graph, readers, result, 0);
    for (tf::Node* node : {to_space_, squeeze_, convolution_, expand_, to_batch_}) {
      if (node != nullptr && IsUnread(*node)) graph->RemoveNode(node);
    }
    return absl::OkStatus();
  }

 private:
  std::vector<tf::Node*> nodes() const {
    std::vector<tf::Node*> all = {to_batch_, convolution_, to_space_};
    if (squeeze_ != nullptr) all.insert(all.end(), {expand_, squeeze_});
    return all;
  }

  // True if the ops around the convolution, if there are any, make columns of one row of a line and a line of these.
  bool IsLine() const {
    if (squeeze_ == nullptr) return true;
    std::vector<int64_t> axis;
    return expand_->type_string() == "ExpandDims" && ReadNumbers(*expand_, 1, &axis) && axis.size() == 1 &&
           (axis[0] == -3 || axis[0] == 1) &&
           (Has(*squeeze_, "squeeze_dims", std::vector<int64_t>{-3}) ||
            Has(*squeeze_, "squeeze_dims", std::vector<int64_t>{1}));
  }

  bool AreOn(const std::string& device_type) const {
    const std::vector<tf::Node*> all = nodes();
    return DeviceTypeOf(*to_space_) == device_type && std::all_of(all.begin(), all.end(), [&](const tf::Node* node) {
             return node->assigned_device_name() == to_space_->assigned_device_name();
           });
  }

  bool FindGeometry() {
    std::vector<int64_t> blocks, of_space, paddings, crops;
    if (!ReadNumbers(*to_batch_, 1, &blocks) || !ReadNumbers(*to_batch_, 2, &paddings) ||
        !ReadNumbers(*to_space_, 1, &of_space) || !ReadNumbers(*to_space_, 2, &crops) || blocks != of_space ||
        paddings.size() != 2 * blocks.size() || crops.size() != paddings.size()) {
      return false;
    }
    const size_t first = squeeze_ != nullptr ? 1 : 0;
    if (blocks.empty() || first + blocks.size() > kAxes) return false;
    paddings_.assign(8, 0);
    dilations_.assign(4, 1);
    multiples_.assign(2 * kAxes, 0);
    for (int axis = 0; axis < kAxes; ++axis) multiples_[2 * axis + 1] = 1;
    for (size_t i = 0; i < blocks.size(); ++i) {
      const size_t axis = first + i;
      dilations_[1 + axis] = blocks[i];
      multiples_[2 * axis] = paddings[2 * i] + paddings[2 * i + 1];
      multiples_[2 * axis + 1] = blocks[i];
      for (int side = 0; side < 2; ++side) {
        const int64_t padding = paddings[2 * i + side], crop = crops[2 * i + side];
        if (padding < crop || crop < 0 || blocks[i] < 1) return false;
        paddings_[2 * (1 + axis) + side] = padding - crop;
      }
    }
    return true;
  }

  static absl::Status Add(tf::Graph* graph, tf::NodeDef def, const tf::Node& like, tf::Node** node) {
    absl::Status status;
    def.clear_input();
    *node = graph->AddNode(std::move(def), &status);
    if (status.ok()) (*node)->set_assigned_device_name(like.assigned_device_name());
    return status;
  }

  // Gives a node the inputs of another one, but for the first.
  static absl::Status Connect(tf::Graph* graph, tf::Node* first, int output, const tf::Node& like, tf::Node* node) {
    graph->AddEdge(first, output, node, 0);
    for (int i = 1; i < like.num_inputs(); ++i) {
      const tf::Edge* e = nullptr;
      TF_RETURN_IF_ERROR(like.input_edge(i, &e));
      graph->AddEdge(e->src(), e->src_output(), node, i);
    }
    return absl::OkStatus();
  }

  // True if nothing runs between the ops: what the first ones are awaited by may be what the last ones wait for.
  bool IsInOnePiece() const {
    const auto has_order = [](const tf::EdgeSet& edges) {
      return std::any_of(edges.begin(), edges.end(),
                         [](const tf::Edge* e) { return e->IsControlEdge() && e->src()->IsOp() && e->dst()->IsOp(); });
    };
    return !has_order(to_batch_->out_edges()) && !has_order(to_space_->in_edges()) &&
           (squeeze_ == nullptr || (!has_order(expand_->out_edges()) && !has_order(squeeze_->in_edges())));
  }

  // The convolution runs after and before what its ops run after and before.
  void KeepOrder(tf::Graph* graph, tf::Node* whole) const {
    std::set<tf::Node*> before, after;
    for (const tf::Node* node : nodes()) {
      for (const tf::Edge* e : node->in_edges()) {
        if (e->IsControlEdge()) before.insert(e->src());
      }
      for (const tf::Edge* e : node->out_edges()) {
        if (e->IsControlEdge()) after.insert(e->dst());
      }
    }
    for (tf::Node* node : before) graph->AddControlEdge(node, whole);
    for (tf::Node* node : after) graph->AddControlEdge(whole, node);
  }

  static bool IsUnread(const tf::Node& node) {
    return std::all_of(node.out_edges().begin(), node.out_edges().end(),
                       [](const tf::Edge* e) { return e->IsControlEdge(); });
  }

  tf::Node* const to_space_;
  tf::Node *squeeze_ = nullptr, *convolution_ = nullptr, *expand_ = nullptr, *to_batch_ = nullptr;
  std::vector<int64_t> paddings_, dilations_, multiples_;  // attributes
};

}  // namespace

absl::Status RestoreDilations(tf::Graph* graph, const std::string& device_type) {
  std::vector<tf::Node*> ends;
  for (tf::Node* node : graph->op_nodes()) {
    if (node->type_string() == "BatchToSpaceND" && DeviceTypeOf(*node) == device_type) ends.push_back(node);
  }
  for (tf::Node* end : ends) {
    TakenApart convolution(end);
    if (convolution.Find(device_type)) TF_RETURN_IF_ERROR(convolution.Restore(graph));
  }
  return absl::OkStatus();
}

}  // namespace xpu::graph

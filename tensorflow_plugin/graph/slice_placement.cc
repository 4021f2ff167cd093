#include "tensorflow_plugin/graph/slice_placement.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/graph/control_flow.h"
#include "tensorflow_plugin/framework/kernel_labels.h"
#include "tensorflow_plugin/framework/op_traits.h"
#include "tensorflow_plugin/graph/nodes.h"

namespace xpu::graph {
namespace {

namespace tf = tensorflow;

// The elements of a constant vector of integers.
bool ReadVector(const tf::Node& node, std::vector<int64_t>* values) {
  tf::Tensor tensor;
  return ReadConstant(node, &tensor) && tensor.dims() == 1 && ReadIntegers(tensor, values);
}

// True if a node makes a vector of so many elements, as Python's x[i, j] does, of single numbers.
bool IsVectorOf(const tf::Node& node, size_t elements) {
  std::vector<int64_t> values;
  if (ReadVector(node, &values)) return values.size() == elements;
  if (node.type_string() == "ExpandDims") return elements == 1;  // TensorFlow makes it of a Pack of one
  int64_t n = 0, axis = -1;
  return node.type_string() == "Pack" && tf::GetNodeAttr(node.attrs(), "N", &n).ok() &&
         tf::GetNodeAttr(node.attrs(), "axis", &axis).ok() && axis == 0 && n == static_cast<int64_t>(elements);
}

// True if a StridedSlice chooses one element each of some axes that follow each other, and has the others whole.
bool ChoosesElements(const tf::Node& slice, const std::vector<int64_t>& strides) {
  int32_t begin = 0, end = 0, ellipsis = 0, new_axis = 0, shrink = 0;
  const auto read = [&](const char* name, int32_t* mask) { return tf::GetNodeAttr(slice.attrs(), name, mask).ok(); };
  if (!read("begin_mask", &begin) || !read("end_mask", &end) || !read("ellipsis_mask", &ellipsis) ||
      !read("new_axis_mask", &new_axis) || !read("shrink_axis_mask", &shrink) || strides.size() >= 32) {
    return false;
  }
  int first = -1, last = -1, count = 0;
  for (int i = 0; i < static_cast<int>(strides.size()); ++i) {
    const auto has = [i](int32_t mask) { return (mask >> i & 1) != 0; };
    if (has(ellipsis) || has(new_axis)) continue;
    if (has(shrink)) {
      if (strides[i] <= 0) return false;
      if (count++ == 0) first = i;
      last = i;
    } else if (!has(begin) || !has(end)) {
      return false;
    }
  }
  return count > 0 && last - first + 1 == count;
}

class Slices {
 public:
  Slices(tf::Graph* graph, const std::string& device_type) : graph_(*graph), device_type_(device_type) {}

  absl::Status Visit(tf::Node* node) {
    const bool is_strided = node->type_string() == "StridedSlice";
    if ((!is_strided && node->type_string() != "Slice") || DeviceTypeOf(*node) != device_type_ ||
        node->attrs().Find(labels::kAttribute) != nullptr) {
      return absl::OkStatus();
    }
    tf::MemoryTypeVector inputs, outputs;
    if (!MemoryOf(*node, device_type_, &inputs, &outputs) || inputs[0] != tf::DEVICE_MEMORY) return absl::OkStatus();
    const std::vector<const tf::Edge*> edges = InputsOf(*node);
    std::vector<int64_t> sizes;
    if (IsStatic(*edges[1]->src()) || !ReadVector(*edges.back()->src(), &sizes)) return absl::OkStatus();
    if (is_strided) {
      if (!ChoosesElements(*node, sizes) || !IsVectorOf(*edges[2]->src(), sizes.size())) return absl::OkStatus();
    } else if (std::any_of(sizes.begin(), sizes.end(), [](int64_t size) { return size < 0; })) {
      return absl::OkStatus();
    }
    node->AddAttr(labels::kAttribute, labels::kBeginOnDevice);
    if (!tf::FindKernelDef(tf::DeviceType(device_type_), node->def(), nullptr, nullptr).ok()) {
      node->ClearAttr(labels::kAttribute);
      return absl::OkStatus();
    }
    if (!is_strided) return absl::OkStatus();
    // The end of one element follows from its begin. Its place takes something that the host does not compute anew.
    tf::Node* const end = edges[2]->src();
    TF_RETURN_IF_ERROR(graph_.UpdateEdge(edges[3]->src(), edges[3]->src_output(), node, 2));
    const bool is_read = std::any_of(end->out_edges().begin(), end->out_edges().end(),
                                     [](const tf::Edge* e) { return e->dst()->IsOp(); });
    if (!is_read) graph_.RemoveNode(end);
    return absl::OkStatus();
  }

 private:
  // True if a value follows from shapes and constants.
  bool IsStatic(const tf::Node& node) {
    const auto [found, is_new] = static_.emplace(&node, false);
    if (!is_new) return found->second;
    bool is_static = node.IsConstant() || TraitsOf(node.type_string()).Has(OpTrait::kGivesShapes);
    if (!is_static && !node.IsControlFlow() && !node.op_def().is_stateful() && node.num_inputs() > 0) {
      const std::vector<const tf::Edge*> inputs = InputsOf(node);
      is_static = std::all_of(inputs.begin(), inputs.end(), [this](const tf::Edge* e) { return IsStatic(*e->src()); });
    }
    return static_[&node] = is_static;
  }

  tf::Graph& graph_;
  const std::string& device_type_;
  std::map<const tf::Node*, bool> static_;
};

}  // namespace

absl::Status ReadBeginsOnDevice(tf::Graph* graph, const std::string& device_type, const std::set<std::string>& loops) {
  if (loops.empty()) return absl::OkStatus();
  std::vector<tf::ControlFlowInfo> frames;
  TF_RETURN_IF_ERROR(tf::BuildControlFlowInfo(graph, &frames));
  Slices slices(graph, device_type);
  for (tf::Node* node : TopologicalOrder(*graph)) {
    if (loops.count(frames[node->id()].frame_name) != 0) TF_RETURN_IF_ERROR(slices.Visit(node));
  }
  return absl::OkStatus();
}

}  // namespace xpu::graph

#include "tensorflow_plugin/graph/integer_placement.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/memory_types.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow_plugin/framework/kernel_labels.h"
#include "tensorflow_plugin/framework/op_traits.h"
#include "tensorflow_plugin/graph/node_traits.h"
#include "tensorflow_plugin/graph/nodes.h"

namespace xpu::graph {
namespace {

namespace tf = tensorflow;

// The ops of one graph that are to move.
class Moves {
 public:
  Moves(tf::Graph* graph, const std::string& device_type)
      : device_type_(device_type), order_(TopologicalOrder(*graph)) {
    for (tf::Node* node : order_) FindWay(node);
  }

  // All that might move do, but for those that gain nothing, without whom others gain nothing, and so on.
  void Run() {
    for (bool changed = true; changed;) {
      changed = false;
      for (tf::Node* node : order_) {
        if (moved_.count(node) == 0 || Gains(*node)) continue;
        moved_.erase(node);
        changed = true;
      }
    }
    for (tf::Node* node : order_) {
      if (moved_.count(node) != 0) node->AddAttr(labels::kAttribute, labels::kOnDevice);
    }
  }

 private:
  // Where it would have its arguments if it moved.
  void FindWay(tf::Node* node) {
    const auto& types = node->input_types();
    if (DeviceTypeOf(*node) != device_type_ || std::find(types.begin(), types.end(), tf::DT_INT32) == types.end() ||
        node->attrs().Find(labels::kAttribute) != nullptr || !IsWithin(*node) ||
        TraitsOf(node->type_string()).Has(OpTrait::kWritesInput)) {
      return;
    }
    MemoryNow(*node);  // without the label
    node->AddAttr(labels::kAttribute, labels::kOnDevice);
    NodeTraits then = NodeTraitsOf(*node, device_type_);
    if (then.role != Role::kOutside) moved_[node] = {std::move(then.inputs), std::move(then.outputs)};
    node->ClearAttr(labels::kAttribute);
  }

  // True if its commands might be a cluster's.
  bool IsWithin(const tf::Node& node) const {
    const Role role = NodeTraitsOf(node, device_type_).role;
    return role == Role::kHost || (role == Role::kCompute && node.type_string() == "Cast");
  }

  // It read something in host memory that is in device memory. An argument of the function may as well be there: that
  // is one copy, however many results follow from it. All else that it will read there may come from the host at any
  // time. The readers of its results will read them in device memory.
  bool Gains(const tf::Node& node) {
    const MemoryTypes &was = MemoryNow(node), &is = moved_.at(&node);
    bool gains = false;
    for (const tf::Edge* e : InputsOf(node)) {
      if (was.inputs[e->dst_input()] == is.inputs[e->dst_input()]) continue;
      if (e->src()->IsArg() || IsOnDevice(*e, node)) {
        gains = true;
      } else if (IsOfShapes(*e->src())) {
        return false;
      }
    }
    for (const tf::Edge* e : node.out_edges()) {
      if (e->IsControlEdge() || was.outputs[e->src_output()] == is.outputs[e->src_output()]) continue;
      if (!IsReadOnDevice(*e, node)) return false;
    }
    return gains;
  }

  bool IsOnDevice(const tf::Edge& e, const tf::Node& reader) {
    return e.src()->assigned_device_name() == reader.assigned_device_name() &&
           IsDevice(MemoryOfMoved(*e.src()).outputs, e.src_output());
  }
  bool IsReadOnDevice(const tf::Edge& e, const tf::Node& writer) {
    return e.dst()->assigned_device_name() == writer.assigned_device_name() &&
           IsDevice(MemoryOfMoved(*e.dst()).inputs, e.dst_input());
  }
  static bool IsDevice(const tf::MemoryTypeVector& types, size_t i) {
    return i < types.size() && types[i] == tf::DEVICE_MEMORY;
  }
  // For a node on the device; nothing if there is no kernel for it.
  const MemoryTypes& MemoryNow(const tf::Node& node) {
    const auto [found, is_new] = now_.emplace(&node, MemoryTypes());
    MemoryTypes& memory = found->second;
    if (is_new && !MemoryOf(node, device_type_, &memory.inputs, &memory.outputs)) memory = MemoryTypes();
    return memory;
  }
  const MemoryTypes& MemoryOfMoved(const tf::Node& node) {
    const auto found = moved_.find(&node);
    return found != moved_.end() ? found->second : MemoryNow(node);
  }

  // The host's arithmetic of a cluster's members, which would have to be another one's.
  bool IsOfShapes(const tf::Node& node) const {
    if (DeviceTypeOf(node) != device_type_) return false;
    const Role role = NodeTraitsOf(node, device_type_).role;
    return role == Role::kHost || role == Role::kFree;
  }

  const std::string& device_type_;
  const std::vector<tf::Node*> order_;
  std::map<const tf::Node*, MemoryTypes> now_;
  std::map<const tf::Node*, MemoryTypes> moved_;  // where those that move will have them
};

}  // namespace

void KeepIntegersOnDevice(tf::Graph* graph, const std::string& device_type) { Moves(graph, device_type).Run(); }

}  // namespace xpu::graph

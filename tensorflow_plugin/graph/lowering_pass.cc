#include "tensorflow_plugin/graph/lowering_pass.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/common_runtime/device_set.h"
#include "tensorflow/core/common_runtime/optimization_registry.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/util/device_name_utils.h"
#include "tensorflow_plugin/framework/op_traits.h"
#include "tensorflow_plugin/graph/can_be_lowered.h"

namespace xpu::graph {
namespace {

namespace tf = tensorflow;

constexpr char kMark[] = "_lower_using_switch_merge";
// TensorFlow's own pass, which looks for the mark, is in phase 10.
constexpr int kBeforeLowering = 9;

// The functions whose nodes may end up in this graph: those of loops, branches and calls, and the op itself if it names
// a function. Other ops, such as data sets, run functions in executors of their own, which may know no loops of nodes.
// So may a call that names an executor. Functions for XLA come to the pass separately.
std::vector<std::string> FunctionsWithin(const tf::NodeDef& node, const JitPredicates& jit) {
  if (jit.must_compile(node)) return {};
  const bool is_control_flow = TraitsOf(node.op()).Has(OpTrait::kLowered);
  const auto executor = node.attr().find("executor_type");
  const bool has_own = executor != node.attr().end() && !executor->second.s().empty();
  if (is_control_flow || (CanBeLowered::IsCall(node) && !has_own)) return CanBeLowered::FunctionsOf(node);
  return {node.op()};
}

class LoweringPass : public tf::GraphOptimizationPass {
 public:
  LoweringPass(std::string device_type, bool all_loops, JitPredicates jit)
      : device_type_(std::move(device_type)), all_loops_(all_loops), jit_(jit) {}

  absl::Status Run(const tf::GraphOptimizationPassOptions& options) override {
    if (options.graph == nullptr || *options.graph == nullptr || options.flib_def == nullptr) return absl::OkStatus();
    const bool all = options.function_def != nullptr && jit_.may_lack_marks(*options.function_def);
    if (!(all || all_loops_) || !RunsHere(options)) return absl::OkStatus();
    CanBeLowered can_be_lowered(*options.flib_def);
    const auto is_to_mark = [&](const tf::NodeDef& node) {
      return (all || CanBeLowered::IsLoop(node)) && node.attr().find(kMark) == node.attr().end() &&
             can_be_lowered(node);
    };
    std::vector<std::string> within;
    const auto add_within = [&](const tf::NodeDef& node) {
      for (std::string& function : FunctionsWithin(node, jit_)) within.push_back(std::move(function));
    };
    for (tf::Node* node : (*options.graph)->op_nodes()) {
      if (options.function_def == nullptr && !MayBePlacedHere(*node)) continue;
      if (is_to_mark(node->def())) node->AddAttr(kMark, true);
      add_within(node->def());
    }
    // The library is this graph's own copy.
    std::set<std::string> seen;
    while (!within.empty()) {
      const std::string name = std::move(within.back());
      within.pop_back();
      const tf::FunctionDef* found = seen.insert(name).second ? options.flib_def->Find(name) : nullptr;
      if (found == nullptr) continue;
      std::vector<int> to_mark;
      for (int i = 0; i < found->node_def_size(); ++i) {
        add_within(found->node_def(i));
        if (is_to_mark(found->node_def(i))) to_mark.push_back(i);
      }
      if (to_mark.empty()) continue;
      tf::FunctionDef function = *found;
      for (int i : to_mark) (*function.mutable_node_def(i)->mutable_attr())[kMark].set_b(true);
      TF_RETURN_IF_ERROR(options.flib_def->ReplaceFunction(name, function));
    }
    return absl::OkStatus();
  }

 private:
  bool RunsHere(const tf::GraphOptimizationPassOptions& options) const {
    const auto is_ours = [this](const tf::Device* device) { return device->device_type() == device_type_; };
    if (options.function_def != nullptr || options.is_function_graph) {
      return options.default_function_device != nullptr && is_ours(options.default_function_device);
    }
    if (options.device_set == nullptr) return false;
    const std::vector<tf::Device*>& devices = options.device_set->devices();
    return std::any_of(devices.begin(), devices.end(), is_ours);
  }

  // For a node of a session's graph.
  bool MayBePlacedHere(const tf::Node& node) const {
    tf::DeviceNameUtils::ParsedName wish;
    return !tf::DeviceNameUtils::ParseFullName(node.requested_device(), &wish) || !wish.has_type ||
           wish.type == device_type_;
  }

  const std::string device_type_;
  const bool all_loops_;
  const JitPredicates jit_;
};

}  // namespace

void RegisterLoweringPass(const std::string& device_type, bool all_loops, JitPredicates jit) {
  tf::OptimizationPassRegistry::Global()->Register(tf::OptimizationPassRegistry::PRE_PLACEMENT, kBeforeLowering,
                                                   std::make_unique<LoweringPass>(device_type, all_loops, jit));
}

}  // namespace xpu::graph

#include "tensorflow_plugin/graph/node_traits.h"

#include <vector>

#include "tensorflow/core/framework/kernel_def.pb.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow_plugin/cluster/assert_op.h"
#include "tensorflow_plugin/cluster/cluster_op.h"
#include "tensorflow_plugin/cluster/loop_op.h"
#include "tensorflow_plugin/cluster/transfer_op.h"
#include "tensorflow_plugin/framework/kernel_labels.h"
#include "tensorflow_plugin/graph/nodes.h"

namespace xpu::graph {
namespace {

namespace tf = tensorflow;

// Bytes up to which each cluster gets its own copy of a constant.
constexpr int64_t kSmall = 1024;

// True if no capture could have it: its commands depend on values of the device, or on values that differ with every
// step. Where random numbers start, the device may know (labels::kOnDevice).
bool IsUncapturable(const tf::Node& node, OpTraits op) {
  if (op.HasAnyOf(OpTrait::kWaitsForDevice | OpTrait::kReadsNewNumbers | OpTrait::kUsesTensorArray)) return true;
  std::string label;
  return op.Has(OpTrait::kDrawsFromStart) &&
         !(tf::GetNodeAttr(node.attrs(), labels::kAttribute, &label).ok() && label == labels::kOnDevice);
}

// True if the variants that an op reads or gives may be TensorLists.
bool MayHoldLists(const tf::Node& node, OpTraits op) {
  return node.type_string() == cluster::kLoopOp ||
         op.HasAnyOf(OpTrait::kAddsTensorLists | OpTrait::kPassesOn | OpTrait::kOfTensorLists);
}

bool IsWanted(tf::DataType dtype) { return tf::DataTypeCanUseMemcpy(dtype) && !tf::IsRefType(dtype); }

bool All(const tf::MemoryTypeVector& types, tf::MemoryType wanted) {
  for (tf::MemoryType type : types) {
    if (type != wanted) return false;
  }
  return true;
}

bool IsSmallConstant(const tf::Node& node) {
  const tf::TensorProto* value = nullptr;
  return node.IsConstant() && tf::GetNodeAttr(node.def(), "value", &value).ok() &&
         static_cast<int64_t>(value->ByteSizeLong()) <= kSmall &&
         tf::TensorShape(value->tensor_shape()).num_elements() * 16 <= kSmall;
}

Role RoleOf(const tf::Node& node, const NodeTraits& traits, bool ours) {
  const std::string& op = node.type_string();
  if (op == cluster::kLoopOp) return CannotBeMember(node) ? Role::kOutside : Role::kCompute;
  // Where it is about shapes, as in a cluster, it holds whenever there is a capture.
  if (op == cluster::kAssertOp) return Role::kHost;
  if (traits.op.Has(OpTrait::kOfTensorLists)) {
    return traits.op.Has(OpTrait::kCopiesElements) ? Role::kCompute : Role::kFree;
  }
  if (node.IsConstant()) return IsSmallConstant(node) ? Role::kConstant : Role::kOutside;
  bool has_resource = false;
  for (tf::DataType dtype : node.input_types()) has_resource |= dtype == tf::DT_RESOURCE;
  const bool on_host = !has_resource && All(traits.inputs, tf::HOST_MEMORY) && All(traits.outputs, tf::HOST_MEMORY);
  const bool computes_on_host = on_host && node.num_inputs() > 0 && node.num_outputs() > 0;
  if (traits.op.Has(OpTrait::kPassesOn) && !computes_on_host) {
    return has_resource && !traits.op.Has(OpTrait::kOnlyReads) ? Role::kCompute : Role::kFree;
  }
  if (traits.shape_only) return Role::kFree;
  const bool changes_nothing = traits.op.Has(OpTrait::kOnlyReads) && traits.op.Has(OpTrait::kKeepsNothing);
  if (node.op_def().is_stateful() && !has_resource && !changes_nothing) return Role::kOutside;
  if (on_host) return computes_on_host ? Role::kHost : Role::kOutside;
  return ours ? Role::kCompute : Role::kOutside;
}

// True if an op that depends on numbers has all of them in host memory, so that it has nothing to wait for.
bool KnowsAllOnHost(const tf::Node& node, const NodeTraits& traits) {
  return traits.op.HasAnyOf(OpTrait::kWaitsForDevice | OpTrait::kReadsNewNumbers) && !node.op_def().is_stateful() &&
         All(traits.inputs, tf::HOST_MEMORY) && All(traits.outputs, tf::HOST_MEMORY);
}

}  // namespace

NodeTraits NodeTraitsOf(const tf::Node& node, const std::string& device_type) {
  NodeTraits traits;
  if (!node.IsOp() || node.IsControlFlow() || node.IsArg() || node.IsRetval() || node.IsSend() || node.IsRecv()) {
    return traits;
  }
  traits.op = TraitsOf(node.type_string());
  const bool lists = MayHoldLists(node, traits.op);
  const auto is_wanted = [&](tf::DataType dtype) { return IsWanted(dtype) || (lists && dtype == tf::DT_VARIANT); };
  for (tf::DataType dtype : node.input_types()) {
    if (!is_wanted(dtype) && dtype != tf::DT_RESOURCE) return traits;
  }
  for (tf::DataType dtype : node.output_types()) {
    if (!is_wanted(dtype)) return traits;
  }
  if (node.type_string() == cluster::kOp || node.attrs().Find(kCountedOnHost) != nullptr) return traits;
  const tf::KernelDef* kernel = nullptr;
  std::string class_name;
  if (!tf::FindKernelDef(tf::DeviceType(device_type), node.def(), &kernel, &class_name).ok()) return traits;
  if (!MemoryOf(node, device_type, &traits.inputs, &traits.outputs)) return traits;
  if (IsUncapturable(node, traits.op) && !KnowsAllOnHost(node, traits)) return traits;
  const bool ours = class_name == labels::kKernelClass;
  traits.shape_only = traits.op.Has(OpTrait::kGivesShapes);
  traits.role = RoleOf(node, traits, ours);
  return traits;
}

bool IsTransfer(const tf::Node& node) {
  if (node.type_string() != cluster::kOp) {
    return node.type_string() == cluster::kToHostOp || node.type_string() == cluster::kToDeviceOp;
  }
  for (const char* copied : {cluster::attr::kUploaded, cluster::attr::kFetched}) {
    std::vector<tf::DataType> types;
    if (tf::GetNodeAttr(node.attrs(), copied, &types).ok() && !types.empty()) return true;
  }
  return false;
}

bool CannotBeMember(const tf::Node& node) {
  if (IsTransfer(node)) return node.attrs().Find(kCopiesCount) == nullptr;
  bool no_member = false;
  return node.type_string() == cluster::kLoopOp &&
         tf::GetNodeAttr(node.attrs(), cluster::attr::kNoMember, &no_member).ok() && no_member;
}

std::string WhyNotInLoop(const tf::Node& node, const std::string& device_type) {
  if (node.type_string() == cluster::kAssertOp) return "may be about any iteration";
  // Clusters are of what can be in a loop; constants need not be small there.
  if (node.type_string() == cluster::kOp || node.type_string() == cluster::kLoopOp || IsTransfer(node) ||
      node.attrs().Find(kCountedOnHost) != nullptr || (node.IsConstant() && IsWanted(node.output_type(0)))) {
    return "";
  }
  const NodeTraits traits = NodeTraitsOf(node, device_type);
  if (traits.role != Role::kOutside) return "";
  if (traits.op.Has(OpTrait::kWaitsForDevice)) return "waits for values that the device computes";
  if (traits.op.HasAnyOf(OpTrait::kReadsNewNumbers | OpTrait::kDrawsFromStart)) {
    return "reads numbers on the host that differ from iteration to iteration";
  }
  if (traits.op.Has(OpTrait::kUsesTensorArray)) return "works on a TensorArray of TensorFlow 1";
  return node.op_def().is_stateful() ? "keeps a state of its own" : "can be no member of a cluster";
}

bool CanBeInLoop(tf::DataType dtype) { return IsWanted(dtype) || dtype == tf::DT_VARIANT || dtype == tf::DT_RESOURCE; }

}  // namespace xpu::graph

#include "tensorflow_plugin/graph/candidates.h"

#include <set>

#include "tensorflow/core/framework/kernel_def.pb.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.pb.h"

namespace xpu::graph {
namespace {

namespace tf = tensorflow;
using Set = std::set<std::string>;

// Bytes up to which each cluster gets its own copy of a constant.
constexpr int64_t kSmall = 1024;

// Ops whose kernels wait for what commands compute, or whose commands fail on data and must be told by the op: the
// shape of what they give, their error, or their very command depends on it.
const Set& Waiting() {
  static const Set* ops = new Set{"BooleanMask",
                                  "CheckNumerics",
                                  "CheckNumericsV2",
                                  "CountUpTo",
                                  "DebugNumericSummary",
                                  "DebugNumericSummaryV2",
                                  "DynamicPartition",
                                  "DynamicStitch",
                                  "ParallelDynamicStitch",
                                  "Gather",
                                  "GatherNd",
                                  "GatherV2",
                                  "InTopK",
                                  "InTopKV2",
                                  "ResourceCountUpTo",
                                  "ResourceGather",
                                  "ResourceGatherNd",
                                  "RngReadAndSkip",
                                  "RngSkip",
                                  "SegmentMax",
                                  "SegmentMean",
                                  "SegmentMin",
                                  "SegmentProd",
                                  "SegmentSum",
                                  "SparseSegmentMean",
                                  "SparseSegmentSum",
                                  "SparseSegmentSqrtN",
                                  "Unique",
                                  "UniqueV2",
                                  "UniqueWithCounts",
                                  "UnsortedSegmentMax",
                                  "UnsortedSegmentMin",
                                  "UnsortedSegmentProd",
                                  "UnsortedSegmentSum",
                                  "Where"};
  return *ops;
}

// The same by the beginnings of their names; the numbers of random ops change with every step. Ops that write into an
// input's buffer, whoever holds it, break what a capture relies on.
bool IsWaiting(const std::string& op) {
  static const char* const kBeginnings[] = {"Scatter",
                                            "ResourceScatter",
                                            "TensorScatter",
                                            "ResourceSparseApply",
                                            "SparseApply",
                                            "Random",
                                            "Stateless",
                                            "Stateful",
                                            "Multinomial",
                                            "TruncatedNormal",
                                            "ParameterizedTruncatedNormal"};
  for (const char* beginning : kBeginnings) {
    if (op.rfind(beginning, 0) == 0) return true;
  }
  return Waiting().count(op) != 0;
}

// TensorFlow's own kernels, the same on every device, that pass device memory on without looking into it.
const Set& Passing() {
  static const Set* ops = new Set{"EnsureShape", "ExpandDims",      "Identity",         "IdentityN",
                                  "NoOp",        "PreventGradient", "ReadVariableOp",   "Reshape",
                                  "Squeeze",     "StopGradient",    "AssignVariableOp", "Snapshot"};
  return *ops;
}

const Set& ShapeOnly() {
  static const Set* ops = new Set{"Rank", "Shape", "ShapeN", "Size", "VariableShape"};
  return *ops;
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

Role RoleOf(const tf::Node& node, const Traits& traits, bool ours) {
  const std::string& op = node.type_string();
  if (node.IsConstant()) return IsSmallConstant(node) ? Role::kConstant : Role::kOutside;
  if (Passing().count(op) != 0) return op == "AssignVariableOp" ? Role::kCompute : Role::kFree;
  if (traits.shape_only) return Role::kFree;
  bool has_resource = false;
  for (tf::DataType dtype : node.input_types()) has_resource |= dtype == tf::DT_RESOURCE;
  if (node.op_def().is_stateful() && !has_resource) return Role::kOutside;
  if (!has_resource && All(traits.inputs, tf::HOST_MEMORY) && All(traits.outputs, tf::HOST_MEMORY)) {
    return node.num_inputs() > 0 && node.num_outputs() > 0 ? Role::kHost : Role::kOutside;
  }
  return ours ? Role::kCompute : Role::kOutside;
}

}  // namespace

Traits TraitsOf(const tf::Node& node, const std::string& device_type) {
  Traits traits;
  if (!node.IsOp() || node.IsControlFlow() || node.IsArg() || node.IsRetval() || node.IsSend() || node.IsRecv()) {
    return traits;
  }
  for (tf::DataType dtype : node.input_types()) {
    if (!IsWanted(dtype) && dtype != tf::DT_RESOURCE) return traits;
  }
  for (tf::DataType dtype : node.output_types()) {
    if (!IsWanted(dtype)) return traits;
  }
  if (IsWaiting(node.type_string())) return traits;
  const tf::KernelDef* kernel = nullptr;
  std::string class_name;
  if (!tf::FindKernelDef(tf::DeviceType(device_type), node.def(), &kernel, &class_name).ok()) return traits;
  if (!tf::MemoryTypesForNode(tf::OpRegistry::Global(), tf::DeviceType(device_type), node.def(), &traits.inputs,
                              &traits.outputs)
           .ok()) {
    return traits;
  }
  const bool ours = kernel->device_type() == device_type && class_name != "XpuAdoptedKernel";
  traits.shape_only = ShapeOnly().count(node.type_string()) != 0;
  traits.role = RoleOf(node, traits, ours);
  return traits;
}

}  // namespace xpu::graph

#include "tensorflow_plugin/graph/op_traits.h"

#include <map>
#include <set>

#include "tensorflow/core/framework/kernel_def.pb.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow_plugin/cluster/assert_op.h"
#include "tensorflow_plugin/cluster/cluster_op.h"
#include "tensorflow_plugin/cluster/loop_op.h"
#include "tensorflow_plugin/framework/kernel_labels.h"
#include "tensorflow_plugin/graph/nodes.h"

namespace xpu::graph {
namespace {

namespace tf = tensorflow;
using Set = std::set<std::string>;

// Bytes up to which each cluster gets its own copy of a constant.
constexpr int64_t kSmall = 1024;

// Ops whose kernels wait for what commands compute: the shape of what they give, or their very commands depend on it.
// Or on numbers in host memory that are others with every step: labels of CTC.
const Set& Waiting() {
  static const Set* ops = new Set{"BooleanMask",
                                  "CheckNumerics",
                                  "CheckNumericsV2",
                                  "CTCLoss",
                                  "CTCLossV2",
                                  "CountUpTo",
                                  "DebugNumericSummary",
                                  "DynamicPartition",
                                  "DynamicStitch",
                                  "ParallelDynamicStitch",
                                  "RaggedFillEmptyRows",
                                  "NonMaxSuppressionV2",
                                  "NonMaxSuppressionV3",
                                  "NonMaxSuppressionV4",
                                  "NonMaxSuppressionWithOverlaps",
                                  "ResourceCountUpTo",
                                  "RngReadAndSkip",
                                  "RngSkip",
                                  "SegmentMax",
                                  "SegmentMean",
                                  "SegmentMin",
                                  "SegmentProd",
                                  "SegmentSum",
                                  "SparseFillEmptyRows",
                                  "SparseSegmentMean",
                                  "SparseSegmentMeanGradV2",
                                  "SparseSegmentSum",
                                  "SparseSegmentSumGradV2",
                                  "SparseSegmentSqrtN",
                                  "SparseSegmentSqrtNGradV2",
                                  "SparseSlice",
                                  "SparseSplit",
                                  "Unique",
                                  "UniqueV2",
                                  "UniqueWithCounts",
                                  "UniqueWithCountsV2",
                                  "Where"};
  return *ops;
}

// The same by the beginnings of their names; the numbers of random ops change with every step. Ops that write into an
// input's buffer, whoever holds it, break what a capture relies on. So do TensorArrays, which are written under way.
bool IsWaiting(const tf::Node& node) {
  const std::string& op = node.type_string();
  if (Waiting().count(op) != 0) return true;
  std::string label;
  // Random numbers start where the device knows.
  if (tf::GetNodeAttr(node.attrs(), labels::kAttribute, &label).ok() && label == labels::kOnDevice) return false;
  static const char* const kBeginnings[] = {"ResourceSparseApply",
                                            "SparseApply",
                                            "Random",
                                            "Stateless",
                                            "Stateful",
                                            "Multinomial",
                                            "TruncatedNormal",
                                            "ParameterizedTruncatedNormal",
                                            "TensorArray"};
  for (const char* beginning : kBeginnings) {
    if (op.rfind(beginning, 0) == 0) return true;
  }
  return false;
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

// TensorLists: TensorFlow's own kernels, the same on every device, which pass elements on, or copy and fill them on the
// device's stream (see RedirectedStream). True: they copy.
const std::map<std::string, bool>& OfLists() {
  static const auto* ops =
      new std::map<std::string, bool>{{"EmptyTensorList", false},        {"TensorListConcat", true},
                                      {"TensorListConcatLists", false},  {"TensorListConcatV2", true},
                                      {"TensorListElementShape", false}, {"TensorListFromTensor", true},
                                      {"TensorListGather", true},        {"TensorListGetItem", false},
                                      {"TensorListLength", false},       {"TensorListPopBack", false},
                                      {"TensorListPushBack", false},     {"TensorListPushBackBatch", true},
                                      {"TensorListReserve", false},      {"TensorListResize", false},
                                      {"TensorListScatter", true},       {"TensorListScatterIntoExistingList", true},
                                      {"TensorListScatterV2", true},     {"TensorListSetItem", false},
                                      {"TensorListSplit", true},         {"TensorListStack", true}};
  return *ops;
}

// Whether the variants that an op reads or gives are TensorLists, as far as one can tell.
bool MayHoldLists(const tf::Node& node) {
  const std::string& op = node.type_string();
  return op == cluster::kLoopOp || op == "AddN" || op == "ZerosLike" || Passing().count(op) != 0 ||
         OfLists().count(op) != 0;
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

Role RoleOf(const tf::Node& node, const OpTraits& traits, bool ours) {
  const std::string& op = node.type_string();
  if (op == cluster::kLoopOp) return RunsAlone(node) ? Role::kOutside : Role::kCompute;
  // Where it is about shapes, as in a cluster, it holds whenever there is a capture.
  if (op == cluster::kAssertOp) return Role::kHost;
  const auto of_lists = OfLists().find(op);
  if (of_lists != OfLists().end()) return of_lists->second ? Role::kCompute : Role::kFree;
  if (node.IsConstant()) return IsSmallConstant(node) ? Role::kConstant : Role::kOutside;
  bool has_resource = false;
  for (tf::DataType dtype : node.input_types()) has_resource |= dtype == tf::DT_RESOURCE;
  const bool on_host = !has_resource && All(traits.inputs, tf::HOST_MEMORY) && All(traits.outputs, tf::HOST_MEMORY);
  const bool computes_on_host = on_host && node.num_inputs() > 0 && node.num_outputs() > 0;
  if (Passing().count(op) != 0 && !computes_on_host) {
    return op == "AssignVariableOp" ? Role::kCompute : Role::kFree;
  }
  if (traits.shape_only) return Role::kFree;
  if (node.op_def().is_stateful() && !has_resource) return Role::kOutside;
  if (on_host) return computes_on_host ? Role::kHost : Role::kOutside;
  return ours ? Role::kCompute : Role::kOutside;
}

// Whether an op of those that wait, for numbers in host memory alone, has nothing to wait for.
bool KnowsAllOnHost(const tf::Node& node, const OpTraits& traits) {
  return Waiting().count(node.type_string()) != 0 && !node.op_def().is_stateful() &&
         All(traits.inputs, tf::HOST_MEMORY) && All(traits.outputs, tf::HOST_MEMORY);
}

}  // namespace

OpTraits OpTraitsOf(const tf::Node& node, const std::string& device_type) {
  OpTraits traits;
  if (!node.IsOp() || node.IsControlFlow() || node.IsArg() || node.IsRetval() || node.IsSend() || node.IsRecv()) {
    return traits;
  }
  const bool lists = MayHoldLists(node);
  const auto is_wanted = [&](tf::DataType dtype) { return IsWanted(dtype) || (lists && dtype == tf::DT_VARIANT); };
  for (tf::DataType dtype : node.input_types()) {
    if (!is_wanted(dtype) && dtype != tf::DT_RESOURCE) return traits;
  }
  for (tf::DataType dtype : node.output_types()) {
    if (!is_wanted(dtype)) return traits;
  }
  if (node.type_string() == cluster::kOp || node.attrs().Find(kApart) != nullptr) return traits;
  const tf::KernelDef* kernel = nullptr;
  std::string class_name;
  if (!tf::FindKernelDef(tf::DeviceType(device_type), node.def(), &kernel, &class_name).ok()) return traits;
  if (!MemoryOf(node, device_type, &traits.inputs, &traits.outputs)) return traits;
  if (IsWaiting(node) && !KnowsAllOnHost(node, traits)) return traits;
  const bool ours = class_name == labels::kKernelClass;
  traits.shape_only = ShapeOnly().count(node.type_string()) != 0;
  traits.role = RoleOf(node, traits, ours);
  return traits;
}

bool RunsAlone(const tf::Node& node) {
  bool alone = false;
  return node.type_string() == cluster::kLoopOp && tf::GetNodeAttr(node.attrs(), cluster::attr::kAlone, &alone).ok() &&
         alone;
}

bool CanBeInLoop(const tf::Node& node, const std::string& device_type) {
  // Clusters are of what can be in a loop; constants need not be small there. An assertion may be about any iteration.
  if (node.type_string() == cluster::kAssertOp) return false;
  return node.type_string() == cluster::kOp || node.type_string() == cluster::kLoopOp ||
         node.attrs().Find(kApart) != nullptr || (node.IsConstant() && IsWanted(node.output_type(0))) ||
         OpTraitsOf(node, device_type).role != Role::kOutside;
}

bool CanBeInLoop(tf::DataType dtype) { return IsWanted(dtype) || dtype == tf::DT_VARIANT || dtype == tf::DT_RESOURCE; }

}  // namespace xpu::graph

// Traits of ops: where they are said, and those that no run of an op shows (tests/sweep/traits.py sees the
// others).
#include "tensorflow_plugin/framework/op_traits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "tensorflow/core/framework/kernel_def.pb.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow_plugin/framework/any_backend.h"
#include "tensorflow_plugin/framework/bookkeeping.h"
#include "tensorflow_plugin/framework/registry.h"
#include "tensorflow_plugin/ops/ops.h"

namespace xpu {
namespace {

namespace tf = tensorflow;
using Names = std::set<std::string>;

constexpr char kDevice[] = "XPU";

// All ops of TensorFlow, once ours are registered.
const Names& Ops() {
  static const auto* const names = [] {
    const AnyBackend backend;
    Registry registry(backend, kDevice);
    RegisterAllOps(registry);
    std::vector<tf::OpDef> ops;
    tf::OpRegistry::Global()->GetRegisteredOps(&ops);
    auto* found = new Names;
    for (const tf::OpDef& op : ops) found->insert(op.name());
    return found;
  }();
  return *names;
}

bool HasKernelOfOurs(const std::string& op) {
  const tf::KernelList kernels = tf::GetRegisteredKernelsForOp(op);
  return std::any_of(kernels.kernel().begin(), kernels.kernel().end(),
                     [](const tf::KernelDef& kernel) { return kernel.device_type() == kDevice; });
}

Names With(OpTrait trait) {
  Names found;
  for (const std::string& op : Ops()) {
    if (TraitsOf(op).Has(trait)) found.insert(op);
  }
  return found;
}

TEST(OpTraits, AreNamed) {
  const OpTraits traits = OpTrait::kCannotWait | OpTrait::kAccumulates;
  ASSERT_EQ(traits.Names().size(), 2u);
  EXPECT_STREQ(traits.Names()[0], "CannotWait");
  EXPECT_STREQ(traits.Names()[1], "Accumulates");
  EXPECT_TRUE(traits.Has(OpTrait::kAccumulates));
  EXPECT_FALSE(traits.Has(OpTrait::kMayWait));
  EXPECT_FALSE(OpTraits().HasAnyOf(traits));
  EXPECT_EQ(TraitsOf("NobodyHasHeardOfIt"), OpTraits());
}

TEST(OpTraits, TheTableHasOpsOfTensorflow) {
  for (const TensorflowOps& row : TableOfTensorflowOps()) {
    for (const char* op : row.names) EXPECT_EQ(Ops().count(op), 1u) << op;
  }
}

TEST(OpTraits, AreSaidInOnePlace) {
  Names met;
  for (const TensorflowOps& row : TableOfTensorflowOps()) {
    for (const char* op : row.names) {
      EXPECT_TRUE(met.insert(op).second) << op << " is in two rows";
      // Kernels that are adopted, or the CPU's own, are TensorFlow's.
      const bool is_tensorflows = row.traits.HasAnyOf(OpTrait::kOfTensorLists | OpTrait::kServesDirectCalls);
      EXPECT_TRUE(is_tensorflows || (Ops(), !HasKernelOfOurs(op))) << op << " has a kernel here, which says its traits";
    }
  }
}

// The lists below are complete: who adds an op adds its name, and thinks about the reason.

TEST(OpTraits, NumbersThatDifferFromStepToStep) {
  // Labels of a batch and their lengths; the rows of which a batch is stitched together; how many numbers were drawn.
  EXPECT_EQ(With(OpTrait::kReadsNewNumbers),
            (Names{"CTCLoss", "CTCLossV2", "DynamicStitch", "RngReadAndSkip", "RngSkip"}));
}

TEST(OpTraits, InPlaceOps) {
  EXPECT_EQ(With(OpTrait::kWritesInput), (Names{"InplaceAdd", "InplaceSub", "InplaceUpdate", "_ParallelConcatUpdate"}));
}

TEST(OpTraits, TensorArrays) {
  Names all;
  for (const std::string& op : Ops()) {
    if (op.rfind("TensorArray", 0) == 0) all.insert(op);
  }
  EXPECT_EQ(With(OpTrait::kUsesTensorArray), all);
  EXPECT_GT(all.size(), 30u);
}

TEST(OpTraits, TensorLists) {
  Names all;
  for (const std::string& op : Ops()) {
    if (op.find("TensorList") != std::string::npos && op[0] != '_') all.insert(op);
  }
  EXPECT_EQ(With(OpTrait::kOfTensorLists), all);
  EXPECT_EQ(With(OpTrait::kAddsTensorLists), (Names{"AddN", "ZerosLike"}));
  EXPECT_EQ(With(OpTrait::kAccumulates), (Names{"EmptyTensorList", "TensorListPopBack", "TensorListPushBack"}));
  // By the op's definition: a variant comes out, and an attribute says of which elements. One gives several lists.
  for (const std::string& op : all) {
    if (op == "TensorListPushBackBatch") continue;
    const tf::OpDef* def = nullptr;
    ASSERT_TRUE(tf::OpRegistry::Global()->LookUpOpDef(op, &def).ok());
    const bool gives_list = def->output_arg_size() > 0 && def->output_arg(0).type() == tf::DT_VARIANT;
    const bool says_elements = std::any_of(def->attr().begin(), def->attr().end(),
                                           [](const auto& attr) { return attr.name() == "element_dtype"; });
    EXPECT_EQ(TraitsOf(op).Has(OpTrait::kMakesTensorList), gives_list && says_elements) << op;
  }
}

TEST(OpTraits, KernelsThatPassDeviceMemoryOn) {
  EXPECT_EQ(With(OpTrait::kPassesOn),
            (Names{"AssignVariableOp", "EnsureShape", "ExpandDims", "Identity", "IdentityN", "NoOp", "PreventGradient",
                   "ReadVariableOp", "Reshape", "Snapshot", "Squeeze", "StopGradient"}));
  EXPECT_EQ(With(OpTrait::kGivesShapes), (Names{"Rank", "Shape", "ShapeN", "Size", "VariableShape"}));
}

// Reports of where ops ran leave them out: none that computes may be among them.
TEST(OpTraits, Bookkeeping) {
  const Names found = BookkeepingOps();
  for (const std::string& op : found) EXPECT_EQ(Ops().count(op), 1u) << op;
  EXPECT_EQ(found, (Names{"Assert",
                          "AssignVariableOp",
                          "BroadcastGradientArgs",
                          "Case",
                          "Const",
                          "DestroyResourceOp",
                          "EnsureShape",
                          "Enter",
                          "Exit",
                          "ExpandDims",
                          "For",
                          "Identity",
                          "IdentityN",
                          "If",
                          "LoopCond",
                          "MapDefun",
                          "Merge",
                          "NextIteration",
                          "NoOp",
                          "PartitionedCall",
                          "Placeholder",
                          "PreventGradient",
                          "PrintV2",
                          "Rank",
                          "ReadVariableOp",
                          "Reshape",
                          "Shape",
                          "ShapeN",
                          "Size",
                          "Snapshot",
                          "Squeeze",
                          "StatefulPartitionedCall",
                          "StatelessCase",
                          "StatelessIf",
                          "StatelessWhile",
                          "StopGradient",
                          "StringFormat",
                          "Switch",
                          "VarHandleOp",
                          "VarIsInitializedOp",
                          "VariableShape",
                          "While",
                          "_Arg",
                          "_DeviceArg",
                          "_DeviceRetval",
                          "_HostRecv",
                          "_HostSend",
                          "_If",
                          "_Recv",
                          "_Retval",
                          "_Send",
                          "_While"}));
}

TEST(OpTraits, KernelsThatKeepNothing) {
  EXPECT_EQ(
      With(OpTrait::kKeepsNothing),
      (Names{"AssignAddVariableOp", "AssignSubVariableOp", "AssignVariableOp", "Empty", "IteratorGetNext",
             "IteratorGetNextAsOptional", "ReadVariableOp", "ResourceGather", "VarHandleOp", "VarIsInitializedOp"}));
}

TEST(OpTraits, ServeDirectCallsOnTheCpu) {
  EXPECT_EQ(With(OpTrait::kServesDirectCalls),
            (Names{"Const", "Identity", "IteratorGetNext", "IteratorGetNextAsOptional", "NoOp", "OptionalFromValue",
                   "OptionalGetValue", "OptionalHasValue", "OptionalNone", "Rank", "Shape", "ShapeN", "Size"}));
}

TEST(OpTraits, ArithmeticThatCannotFail) {
  EXPECT_EQ(
      With(OpTrait::kCounts),
      (Names{"Abs",          "Add",      "AddV2", "Cast",      "Const",      "Equal",      "ExpandDims", "Greater",
             "GreaterEqual", "Identity", "Less",  "LessEqual", "LogicalAnd", "LogicalNot", "LogicalOr",  "Maximum",
             "Minimum",      "Mul",      "Neg",   "NotEqual",  "Pack",       "Sub"}));
}

TEST(OpTraits, ControlFlow) {
  EXPECT_EQ(With(OpTrait::kLowered), (Names{"Case", "If", "StatelessCase", "StatelessIf", "StatelessWhile", "While"}));
  for (const std::string& op : With(OpTrait::kOnlyCalls)) {
    const tf::OpDef* def = nullptr;
    ASSERT_TRUE(tf::OpRegistry::Global()->LookUpOpDef(op, &def).ok());
    EXPECT_TRUE(std::any_of(def->attr().begin(), def->attr().end(), [](const auto& attr) {
      return attr.type() == "func" || attr.type() == "list(func)";
    })) << op;
  }
}

}  // namespace
}  // namespace xpu

// Which of TensorFlow's ops may wait. may_wait.txt lists them: `may_wait_test may_wait.txt --write` makes it anew.
#include "tensorflow_plugin/graph/may_wait.h"

#include <algorithm>
#include <fstream>
#include <iostream>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow_plugin/framework/any_backend.h"
#include "tensorflow_plugin/framework/registry.h"
#include "tensorflow_plugin/ops/ops.h"

namespace xpu::graph {
namespace {

namespace tf = tensorflow;

std::vector<tf::OpDef> Ops() {
  std::vector<tf::OpDef> ops;
  tf::OpRegistry::Global()->GetRegisteredOps(&ops);
  // The plugin's own are registered by the plugin.
  ops.erase(std::remove_if(ops.begin(), ops.end(), [](const auto& op) { return absl::StartsWith(op.name(), "_Xpu"); }),
            ops.end());
  return ops;
}

tf::FunctionLibraryDefinition NoFunctions() {
  return tf::FunctionLibraryDefinition(tf::OpRegistry::Global(), tf::FunctionDefLibrary());
}

bool Waits(const std::string& op, const tf::FunctionLibraryDefinition& library, const std::string& function = "") {
  tf::NodeDef node;
  node.set_op(op);
  if (!function.empty()) (*node.mutable_attr())["f"].mutable_func()->set_name(function);
  return MayWait(library)(node);
}

void RegisterOnce() {
  static const bool registered = [] {
    const AnyBackend backend;
    Registry registry(backend, "XPU");
    RegisterAllOps(registry);
    RememberKnownOps();
    return true;
  }();
  (void)registered;
}

std::set<std::string> OpsThatMayWait() {
  RegisterOnce();
  const tf::FunctionLibraryDefinition library = NoFunctions();
  std::set<std::string> names;
  for (const tf::OpDef& op : Ops()) {
    if (Waits(op.name(), library)) names.insert(op.name());
  }
  return names;
}

std::string file;

TEST(MayWait, OpsAreThoseOfTheList) {
  std::ifstream in(file);
  const std::set<std::string> listed{std::istream_iterator<std::string>(in), std::istream_iterator<std::string>()};
  const std::set<std::string> found = OpsThatMayWait();
  for (const std::string& op : found) EXPECT_EQ(listed.count(op), 1u) << op << " may wait and is not in " << file;
  for (const std::string& op : listed) EXPECT_EQ(found.count(op), 1u) << op << " is in " << file;
}

TEST(MayWait, AnUnknownOpMay) { EXPECT_TRUE(Waits("NobodyHasHeardOfIt", NoFunctions())); }

TEST(MayWait, ACallMayIfItsFunctionMay) {
  RegisterOnce();
  tf::FunctionDefLibrary functions;
  const auto add = [&](const std::string& name, const std::string& op, const std::string& callee) {
    tf::FunctionDef* function = functions.add_function();
    function->mutable_signature()->set_name(name);
    tf::NodeDef* node = function->add_node_def();
    node->set_op(op);
    if (!callee.empty()) (*node->mutable_attr())["f"].mutable_func()->set_name(callee);
  };
  add("computes", "Tanh", "");
  add("dequeues", "QueueDequeueV2", "");
  add("calls_computes", "StatefulPartitionedCall", "computes");
  add("calls_dequeues", "PartitionedCall", "dequeues");
  add("runs_python", "dequeues", "");
  const tf::FunctionLibraryDefinition library(tf::OpRegistry::Global(), functions);
  for (const char* op : {"StatefulPartitionedCall", "PartitionedCall", "While", "If", "StatelessCase", "MapDefun"}) {
    EXPECT_FALSE(Waits(op, library, "computes")) << op;
    EXPECT_FALSE(Waits(op, library, "calls_computes")) << op;
    EXPECT_TRUE(Waits(op, library, "dequeues")) << op;
    EXPECT_TRUE(Waits(op, library, "calls_dequeues")) << op;
    EXPECT_TRUE(Waits(op, library, "runs_python")) << op;
    EXPECT_TRUE(Waits(op, library, "is_missing")) << op;
  }
  EXPECT_TRUE(Waits("calls_dequeues", library));
  EXPECT_FALSE(Waits("calls_computes", library));
}

}  // namespace
}  // namespace xpu::graph

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (argc > 1) xpu::graph::file = argv[1];
  if (argc > 2 && std::string(argv[2]) == "--write") {
    std::ofstream out(xpu::graph::file);
    for (const std::string& op : xpu::graph::OpsThatMayWait()) out << op << "\n";
    return 0;
  }
  return RUN_ALL_TESTS();
}

// Which groups of ops make an op wait for what it did not wait for.
#include "tensorflow_plugin/graph/wait_order.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/graph/algorithm.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow_plugin/graph/may_wait.h"
#include "tensorflow_plugin/graph/nodes.h"

namespace xpu::graph {
namespace {

namespace tf = tensorflow;

class WaitOrderTest : public ::testing::Test {
 protected:
  WaitOrderTest() { RememberKnownOps(); }

  // An op with the values of others as its inputs, none of which means a placeholder.
  tf::Node* Op(const std::string& name, const std::string& op, const std::vector<std::string>& inputs,
               const std::string& frame = "") {
    tf::NodeBuilder builder(name, inputs.empty() ? "Placeholder" : op);
    if (inputs.empty()) builder.Attr("dtype", tf::DT_FLOAT);
    if (op == "Merge" || op == "AddN") {
      std::vector<tf::NodeBuilder::NodeOut> values;
      for (const std::string& input : inputs) values.emplace_back(nodes_.at(input), 0);
      if (op == "Merge") values.emplace_back(values[0]);  // until the end of the iteration is there
      builder.Input(values);
    } else if (op == "PyFunc") {
      std::vector<tf::NodeBuilder::NodeOut> values;
      for (const std::string& input : inputs) values.emplace_back(nodes_.at(input), 0);
      builder.Input(values).Attr("token", name).Attr("Tout", tf::DataTypeVector{tf::DT_FLOAT});
    } else {
      for (const std::string& input : inputs) builder.Input(nodes_.at(input), op == "Exit" ? 0 : Output(input));
    }
    if (!frame.empty()) builder.Attr("frame_name", frame);
    tf::Node* node = nullptr;
    const absl::Status status = builder.Finalize(&graph_, &node);
    EXPECT_TRUE(status.ok()) << name << ": " << status;
    nodes_[name] = node;
    return node;
  }

  // The body of a loop reads the second output of a switch.
  int Output(const std::string& name) const { return nodes_.at(name)->IsSwitch() ? 1 : 0; }

  // A loop of variables that start as `starts` say; Next closes it. Its values are begin_N, in the body body_N.
  void Loop(const std::vector<std::string>& starts) {
    tf::Node* go = nullptr;
    ASSERT_TRUE(tf::NodeBuilder("go", "Placeholder").Attr("dtype", tf::DT_BOOL).Finalize(&graph_, &go).ok());
    nodes_["go"] = go;
    Op("go_in", "Enter", {"go"}, "loop");
    Op("condition", "LoopCond", {"go_in"});
    for (size_t i = 0; i < starts.size(); ++i) {
      const std::string n = std::to_string(i);
      Op("in_" + n, "Enter", {starts[i]}, "loop");
      Op("begin_" + n, "Merge", {"in_" + n});
      Op("body_" + n, "Switch", {"begin_" + n, "condition"});
      Op("out_" + n, "Exit", {"body_" + n});
    }
  }
  void Next(int variable, const std::string& value) {
    const std::string n = std::to_string(variable);
    Op("end_" + n, "NextIteration", {value});
    tf::Node* begin = nodes_.at("begin_" + n);
    const tf::Edge* e = nullptr;
    ASSERT_TRUE(begin->input_edge(1, &e).ok());
    graph_.RemoveEdge(e);
    graph_.AddEdge(nodes_.at("end_" + n), 0, begin, 1);
  }

  // The names of the points that delay others if each of these groups is one op.
  std::vector<std::string> Delaying(const std::vector<std::vector<std::string>>& groups) {
    std::vector<int> group_of(graph_.num_node_ids(), -1);
    for (size_t i = 0; i < groups.size(); ++i) {
      for (const std::string& name : groups[i]) group_of[nodes_.at(name)->id()] = static_cast<int>(i);
    }
    Read();
    std::vector<std::string> names;
    for (int point : order_->PointsThatDelayOthers(group_of)) names.push_back(std::to_string(point));
    return names;
  }

  void Read() {
    tf::FixupSourceAndSinkEdges(&graph_);
    in_order_ = TopologicalOrder(graph_);
    ASSERT_TRUE(tf::BuildControlFlowInfo(&graph_, &frames_).ok());
    order_ = std::make_unique<WaitOrder>(graph_, in_order_, frames_);
  }

  tf::Graph graph_{tf::OpRegistry::Global()};
  std::map<std::string, tf::Node*> nodes_;
  std::vector<tf::Node*> in_order_;
  std::vector<tf::ControlFlowInfo> frames_;
  std::unique_ptr<WaitOrder> order_;
};

TEST_F(WaitOrderTest, OneOpWaitsForNobody) {
  Op("x", "Placeholder", {});
  Op("wait", "PyFunc", {"x"});
  Op("late", "Tanh", {"wait"});
  Op("free", "Tanh", {"x"});
  EXPECT_TRUE(Delaying({{"late", "free"}}).empty());
}

TEST_F(WaitOrderTest, WhatAnotherNeedsIsApartFromWhatComesLater) {
  Op("x", "Placeholder", {});
  Op("wait", "PyFunc", {"x"});
  Op("late", "Tanh", {"wait"});
  Op("free", "Tanh", {"x"});
  Op("early", "Tanh", {"x"});
  Op("signal", "PyFunc", {"early"});
  EXPECT_EQ(Delaying({{"late", "early"}}).size(), 1u);
  EXPECT_EQ(Delaying({{"late", "early", "free"}}).size(), 1u);
  EXPECT_TRUE(Delaying({{"late", "free"}}).empty());
  EXPECT_TRUE(Delaying({{"early", "free"}}).empty());
  EXPECT_TRUE(Delaying({{"late"}, {"early"}}).empty());
  int needed = 0;
  for (int point : {0, 1}) needed += order_->IsNeededBefore(*nodes_.at("early"), point);
  EXPECT_EQ(needed, 1);
  for (int point : {0, 1}) {
    EXPECT_FALSE(order_->IsNeededBefore(*nodes_.at("late"), point));
    EXPECT_FALSE(order_->IsNeededBefore(*nodes_.at("free"), point));
  }
  EXPECT_FALSE(order_->IsTotal());
}

TEST_F(WaitOrderTest, TwoGroupsMakeAWay) {
  Op("x", "Placeholder", {});
  Op("wait", "PyFunc", {"x"});
  Op("late", "Tanh", {"wait"});
  Op("free", "Tanh", {"x"});
  Op("follows", "Tanh", {"free"});
  Op("early", "Tanh", {"x"});
  Op("signal", "PyFunc", {"early"});
  EXPECT_TRUE(Delaying({{"late", "free"}}).empty());
  EXPECT_TRUE(Delaying({{"follows", "early"}}).empty());
  EXPECT_EQ(Delaying({{"late", "free"}, {"follows", "early"}}).size(), 1u);
}

TEST_F(WaitOrderTest, WhatTwoNeedMayBeTogether) {
  Op("x", "Placeholder", {});
  Op("a", "Tanh", {"x"});
  Op("b", "Tanh", {"x"});
  Op("sum_a", "PyFunc", {"a"});
  Op("sum_b", "PyFunc", {"b"});
  Op("update_a", "Tanh", {"sum_a"});
  Op("update_b", "Tanh", {"sum_b"});
  EXPECT_TRUE(Delaying({{"a", "b"}, {"update_a", "update_b"}}).empty());
  EXPECT_EQ(Delaying({{"a", "update_b"}}).size(), 1u);
}

TEST_F(WaitOrderTest, OpsThatFollowEachOtherAreInOneOrder) {
  Op("x", "Placeholder", {});
  Op("first", "PyFunc", {"x"});
  Op("between", "Tanh", {"first"});
  Op("second", "PyFunc", {"between"});
  Op("late", "Tanh", {"second"});
  Op("free", "Tanh", {"x"});
  EXPECT_TRUE(Delaying({{"between"}, {"late", "free"}}).empty());
  EXPECT_TRUE(order_->IsTotal());
}

TEST_F(WaitOrderTest, ALoopThatIsOneOpWaitsForAllItsArguments) {
  Op("x", "Placeholder", {});
  Op("wait", "PyFunc", {"x"});
  Loop({"wait", "x"});
  Op("u", "Tanh", {"body_0"});
  Op("v", "Tanh", {"body_1"});
  Next(0, "u");
  Next(1, "v");
  Op("signal", "PyFunc", {"out_1"});
  const std::vector<std::string> loop = {"go_in",  "condition", "in_0", "in_1",  "begin_0", "begin_1", "body_0",
                                         "body_1", "u",         "v",    "end_0", "end_1",   "out_0",   "out_1"};
  EXPECT_EQ(Delaying({loop}).size(), 1u);
  EXPECT_EQ(Delaying({{"u", "v"}}).size(), 1u);
  EXPECT_TRUE(Delaying({}).empty());
}

TEST_F(WaitOrderTest, IterationsOfALoopWithoutSuchOpsAreNoPoints) {
  Op("x", "Placeholder", {});
  Op("wait", "PyFunc", {"x"});
  Op("y", "PyFunc", {"wait"});
  Loop({"y", "y"});
  Op("u", "Tanh", {"body_0"});
  Op("v", "Tanh", {"body_1"});
  Next(0, "u");
  Next(1, "v");
  EXPECT_TRUE(Delaying({{"u", "v"}}).empty());
}

// In each iteration the op waits for the next one's signal, which needs nothing of this iteration but `step`.
TEST_F(WaitOrderTest, AnIterationMayWaitForTheNextOne) {
  Op("x", "Placeholder", {});
  Loop({"x", "x"});
  Op("step", "Tanh", {"body_0"});
  Next(0, "step");
  Op("signal", "PyFunc", {"body_0"});
  Op("wait", "PyFunc", {"body_1"});
  Op("late", "Tanh", {"wait"});
  Next(1, "late");
  EXPECT_GE(Delaying({{"step", "late"}}).size(), 1u);
  EXPECT_TRUE(Delaying({{"step"}, {"late"}}).empty());
}

TEST_F(WaitOrderTest, WhatAnOpInALoopDelaysIsDelayedBehindTheLoop) {
  Op("x", "Placeholder", {});
  Loop({"x"});
  Op("wait", "PyFunc", {"body_0"});
  Next(0, "wait");
  Op("late", "Tanh", {"out_0"});
  Op("early", "Tanh", {"x"});
  Op("signal", "PyFunc", {"early"});
  EXPECT_GE(Delaying({{"late", "early"}}).size(), 1u);
}

}  // namespace
}  // namespace xpu::graph

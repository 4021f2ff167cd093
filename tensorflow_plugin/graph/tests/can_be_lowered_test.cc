// Loops and branches whose functions may become nodes of the graph around them.
#include "tensorflow_plugin/graph/can_be_lowered.h"

#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"

namespace xpu::graph {
namespace {

namespace tf = tensorflow;

class CanBeLoweredTest : public ::testing::Test {
 protected:
  // A function of one float, whose result has this type.
  tf::FunctionDef* Function(const std::string& name, tf::DataType result = tf::DT_FLOAT) {
    tf::FunctionDef* function = functions_.add_function();
    function->mutable_signature()->set_name(name);
    Argument("x", tf::DT_FLOAT, function->mutable_signature()->add_input_arg());
    Argument("y", result, function->mutable_signature()->add_output_arg());
    return function;
  }
  static void Argument(const std::string& name, tf::DataType type, tf::OpDef::ArgDef* argument) {
    argument->set_name(name);
    argument->set_type(type);
  }
  static tf::NodeDef* Add(tf::FunctionDef* function, const std::string& op, const std::string& name) {
    tf::NodeDef* node = function->add_node_def();
    node->set_op(op);
    node->set_name(name);
    return node;
  }
  static void Name(const char* attribute, const std::string& function, tf::NodeDef* node) {
    (*node->mutable_attr())[attribute].mutable_func()->set_name(function);
  }
  static tf::NodeDef Loop(const std::string& body, const std::string& condition = "condition", int variables = 1) {
    tf::NodeDef loop;
    loop.set_op("While");
    tf::AddNodeAttr("T", std::vector<tf::DataType>(variables, tf::DT_FLOAT), &loop);
    Name("cond", condition, &loop);
    Name("body", body, &loop);
    return loop;
  }
  bool May(const tf::NodeDef& loop) const {
    const tf::FunctionLibraryDefinition library(tf::OpRegistry::Global(), functions_);
    return CanBeLowered(library)(loop);
  }
  // The answer for a loop whose body has this op, as a control output or not.
  bool MayWith(const std::string& op, bool is_control_output) {
    functions_.Clear();
    Function("condition", tf::DT_BOOL);
    tf::FunctionDef* body = Function("body");
    Add(body, op, "the_op");
    if (is_control_output) (*body->mutable_control_ret())["done"] = "the_op";
    return May(Loop("body"));
  }

  tf::FunctionDefLibrary functions_;
};

TEST_F(CanBeLoweredTest, EffectsMustBeControlOutputs) {
  EXPECT_TRUE(MayWith("Tanh", false));
  EXPECT_TRUE(MayWith("ReadVariableOp", false));
  EXPECT_FALSE(MayWith("AssignVariableOp", false));
  EXPECT_TRUE(MayWith("AssignVariableOp", true));
  EXPECT_TRUE(MayWith("RandomUniform", false));
  EXPECT_TRUE(MayWith("RandomUniform", true));
}

TEST_F(CanBeLoweredTest, AnOpThatNobodyKnowsMayHaveEffects) { EXPECT_FALSE(MayWith("NoSuchOp", true)); }

TEST_F(CanBeLoweredTest, TheConditionIsABool) {
  Function("condition", tf::DT_BOOL);
  Function("number", tf::DT_INT32);
  Function("body");
  EXPECT_TRUE(May(Loop("body")));
  EXPECT_FALSE(May(Loop("body", "number")));
  EXPECT_FALSE(May(Loop("body", "nowhere")));
}

TEST_F(CanBeLoweredTest, TheBodyGivesTheVariables) {
  Function("condition", tf::DT_BOOL);
  Function("body");
  Function("of other type", tf::DT_INT32);
  EXPECT_FALSE(May(Loop("of other type")));
  EXPECT_FALSE(May(Loop("nowhere")));
  EXPECT_FALSE(May(Loop("body", "condition", 2)));
  Argument("z", tf::DT_FLOAT, functions_.mutable_function(1)->mutable_signature()->add_output_arg());
  EXPECT_FALSE(May(Loop("body")));
  EXPECT_TRUE(May(Loop("body", "condition", 2)));
}

TEST_F(CanBeLoweredTest, BranchesHaveAnyCondition) {
  Add(Function("writes"), "AssignVariableOp", "assign");
  Function("computes");
  for (const char* function : {"writes", "computes"}) {
    tf::NodeDef branch;
    branch.set_op("If");
    tf::AddNodeAttr("Tcond", tf::DT_INT32, &branch);
    Name("then_branch", function, &branch);
    Name("else_branch", "computes", &branch);
    EXPECT_EQ(May(branch), std::string(function) == "computes");
  }
}

TEST_F(CanBeLoweredTest, OtherOpsStay) {
  Function("computes");
  tf::NodeDef call;
  call.set_op("MapDataset");
  Name("f", "computes", &call);
  EXPECT_FALSE(May(call));
}

TEST_F(CanBeLoweredTest, ALoopWithoutVariablesHasNoNodes) {
  Function("condition", tf::DT_BOOL);
  Function("body");
  EXPECT_FALSE(May(Loop("body", "condition", 0)));
}

// Effects in a function that the body calls are the call's, and a loop within is such a call.
TEST_F(CanBeLoweredTest, CallsHaveTheEffectsOfTheirFunctions) {
  for (const char* op : {"StatefulPartitionedCall", "While", "called"}) {
    for (const bool inner : {false, true}) {
      for (const bool outer : {false, true}) {
        functions_.Clear();
        Function("condition", tf::DT_BOOL);
        tf::FunctionDef* called = Function("called");
        Add(called, "AssignVariableOp", "assign");
        if (inner) (*called->mutable_control_ret())["done"] = "assign";
        tf::FunctionDef* body = Function("body");
        Name("f", "called", Add(body, op, "call"));
        if (outer) (*body->mutable_control_ret())["done"] = "call";
        EXPECT_EQ(May(Loop("body")), inner && outer) << op << " " << inner << " " << outer;
      }
    }
  }
}

TEST_F(CanBeLoweredTest, AFunctionThatCallsItself) {
  Function("condition", tf::DT_BOOL);
  Add(Function("body"), "body", "again");
  EXPECT_FALSE(May(Loop("body")));
}

}  // namespace
}  // namespace xpu::graph

// Passes over small graphs: what becomes of their nodes. The kernels for devices of the type XPU are this test's.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/graph/algorithm.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow_plugin/cluster/assert_op.h"
#include "tensorflow_plugin/direct_call/call_plan.h"
#include "tensorflow_plugin/graph/direct_call_plan.h"
#include "tensorflow_plugin/graph/may_wait.h"
#include "tensorflow_plugin/graph/nodes.h"
#include "tensorflow_plugin/graph/restore_sums.h"
#include "tensorflow_plugin/graph/shape_placement.h"
#include "tensorflow_plugin/graph/update_order.h"

namespace xpu::graph {
namespace {

namespace tf = tensorflow;

using tf::DT_BOOL;
using tf::DT_FLOAT;
using tf::DT_INT32;
using tf::DT_STRING;

constexpr char kXpu[] = "/job:localhost/replica:0/task:0/device:XPU:0",
               kCpu[] = "/job:localhost/replica:0/task:0/device:CPU:0";

struct Nothing final : tf::OpKernel {
  using OpKernel::OpKernel;
  void Compute(tf::OpKernelContext*) override {}
};
REGISTER_KERNEL_BUILDER(Name("Tanh").Device("XPU"), Nothing);
REGISTER_KERNEL_BUILDER(Name("AddV2").Device("XPU"), Nothing);
REGISTER_KERNEL_BUILDER(Name("RandomUniform").Device("XPU").HostMemory("shape"), Nothing);
REGISTER_KERNEL_BUILDER(Name("Shape").Device("XPU").HostMemory("output"), Nothing);

class Passes : public ::testing::Test {
 protected:
  Passes() {
    static const std::string problem = cluster::RegisterAssertOp("XPU");
    EXPECT_EQ(problem, "");
    RememberKnownOps();
  }

  using Out = tf::NodeBuilder::NodeOut;
  using Attributes = std::vector<std::pair<std::string, tf::AttrValue>>;
  tf::Node* Add(const std::string& op, const std::string& name, const std::vector<Out>& inputs,
                const Attributes& attributes = {}, const char* device = kXpu) {
    tf::NodeBuilder builder(name, op);
    for (const Out& input : inputs) builder.Input(input);
    for (const auto& [key, value] : attributes) builder.Attr(key, value);
    return Finish(&builder, name, device);
  }
  tf::Node* Finish(tf::NodeBuilder* builder, const std::string& name, const char* device) {
    tf::Node* node = nullptr;
    const absl::Status status = builder->Finalize(&graph_, &node);
    EXPECT_TRUE(status.ok()) << name << ": " << status;
    node->set_assigned_device_name(device);
    return node;
  }
  static tf::AttrValue Type(tf::DataType type) {
    tf::AttrValue value;
    value.set_type(type);
    return value;
  }
  static tf::AttrValue Text(const std::string& text) {
    tf::AttrValue value;
    value.set_s(text);
    return value;
  }
  static tf::AttrValue Number(int64_t number) {
    tf::AttrValue value;
    value.set_i(number);
    return value;
  }
  tf::Node* Argument(int index, tf::DataType type = DT_FLOAT, const char* device = kXpu) {
    return Add("_Arg", "argument" + std::to_string(index), {}, {{"T", Type(type)}, {"index", Number(index)}}, device);
  }
  tf::Node* Result(int index, tf::Node* value, const char* device = kXpu) {
    return Add("_Retval", "result" + std::to_string(index), {value}, {{"index", Number(index)}}, device);
  }
  tf::Node* Constant(const std::string& name, const tf::Tensor& value, const char* device = kXpu) {
    tf::AttrValue attribute;
    value.AsProtoField(attribute.mutable_tensor());
    return Add("Const", name, {}, {{"dtype", Type(value.dtype())}, {"value", attribute}}, device);
  }

  tf::Node* Find(const std::string& name) const {
    for (tf::Node* node : graph_.op_nodes()) {
      if (node->name() == name) return node;
    }
    return nullptr;
  }
  // "AddN(a, b)" of each op and its inputs, by name.
  std::vector<std::string> Text() const {
    std::vector<std::string> lines;
    for (const tf::Node* node : graph_.op_nodes()) {
      std::string line;
      for (const tf::Edge* e : InputsOf(*node)) {
        line += (line.empty() ? "" : ", ") + e->src()->name();
        if (e->src_output() > 0) line += ":" + std::to_string(e->src_output());
      }
      std::vector<std::string> before;
      for (const tf::Edge* e : node->in_edges()) {
        if (e->IsControlEdge() && e->src()->IsOp()) before.push_back(" after " + e->src()->name());
      }
      std::sort(before.begin(), before.end());
      line = node->name() + " = " + node->type_string() + "(" + line + ")";
      for (const std::string& other : before) line += other;
      lines.push_back(line);
    }
    std::sort(lines.begin(), lines.end());
    return lines;
  }

  tf::Graph graph_{tf::OpRegistry::Global()};
};

using Lines = std::vector<std::string>;

// A sum of three terms as TensorFlow's memory optimizer writes it.
class Sums : public Passes {
 protected:
  void TakeApart(const char* device = kXpu) {
    tf::Node* zeros = Constant("zeros", tf::Tensor(0.0f), device);
    tf::AttrValue shape;
    shape.mutable_shape();
    tf::Node* variable = Add("TemporaryVariable", "sum/tmp_var", {},
                             {{"shape", shape}, {"dtype", Type(DT_FLOAT)}, {"var_name", Text("sum")}}, device);
    assign_ = Add("Assign", "sum/tmp_var_initializer", {variable, zeros}, {}, device);
    for (int i = 0; i < 3; ++i) {
      terms_.push_back(Argument(i, DT_FLOAT, device));
      additions_.push_back(
          Add("AssignAdd", "sum/tmp_var_assignadd_" + std::to_string(i), {assign_, terms_[i]}, {}, device));
    }
    end_ = Add("DestroyTemporaryVariable", "sum", {assign_}, {{"var_name", Text("sum")}}, device);
    for (tf::Node* addition : additions_) graph_.AddControlEdge(addition, end_);
    Add("Tanh", "reader", {end_}, {}, device);
  }

  tf::Node *assign_ = nullptr, *end_ = nullptr;
  std::vector<tf::Node*> terms_, additions_;
};

TEST_F(Sums, AreRestored) {
  TakeApart();
  tf::Node* first = Add("NoOp", "first", {});
  graph_.AddControlEdge(first, assign_);
  tf::Node* last = Add("NoOp", "last", {});
  graph_.AddControlEdge(end_, last);
  ASSERT_TRUE(RestoreSums(&graph_, "XPU").ok());
  EXPECT_EQ(Text(), (Lines{"argument0 = _Arg()", "argument1 = _Arg()", "argument2 = _Arg()", "first = NoOp()",
                           "last = NoOp() after sum", "reader = Tanh(sum)",
                           "sum = AddN(argument0, argument1, argument2) after first"}));
  EXPECT_EQ(Find("sum")->assigned_device_name(), kXpu);
}

// Zeros that another sum reads stay.
TEST_F(Sums, LeaveAConstantToOthers) {
  TakeApart();
  Add("Tanh", "other", {Find("zeros")});
  ASSERT_TRUE(RestoreSums(&graph_, "XPU").ok());
  EXPECT_NE(Find("zeros"), nullptr);
  EXPECT_EQ(Find("sum")->type_string(), "AddN");
}

TEST_F(Sums, StayWhereSomethingElseIsMeant) {
  TakeApart();
  const Lines before = Text();
  ASSERT_TRUE(RestoreSums(&graph_, "GPU").ok());
  EXPECT_EQ(Text(), before) << "it is on a device of another type";
  for (const tf::Edge* e : end_->in_edges()) {
    if (e->src() != additions_[1]) continue;
    graph_.RemoveControlEdge(e);
    break;
  }
  const Lines early = Text();
  ASSERT_TRUE(RestoreSums(&graph_, "XPU").ok());
  EXPECT_EQ(Text(), early) << "the variable may be read before a term is added";
  graph_.AddControlEdge(additions_[1], end_);
  Add("Identity", "seen", {additions_[0]});
  const Lines seen = Text();
  ASSERT_TRUE(RestoreSums(&graph_, "XPU").ok());
  EXPECT_EQ(Text(), seen) << "somebody sees the sum of some terms";
}

TEST_F(Sums, BeginWithZeros) {
  TakeApart();
  const tf::Edge* e = nullptr;
  ASSERT_TRUE(assign_->input_edge(1, &e).ok());
  graph_.RemoveEdge(e);
  graph_.AddEdge(Constant("one", tf::Tensor(1.0f)), 0, assign_, 1);
  const Lines before = Text();
  ASSERT_TRUE(RestoreSums(&graph_, "XPU").ok());
  EXPECT_EQ(Text(), before);
}

using Shapes = Passes;

TEST_F(Shapes, GoToTheOtherReaderOfTheValue) {
  tf::Node* value = Argument(0, DT_FLOAT, kCpu);
  tf::Node* shape = Add("Shape", "shape", {value}, {}, kCpu);
  PlaceShapesWithReaders(&graph_, "XPU");
  EXPECT_EQ(shape->assigned_device_name(), kCpu) << "the device does not have the value";
  Add("Tanh", "reader", {value});
  PlaceShapesWithReaders(&graph_, "XPU");
  EXPECT_EQ(shape->assigned_device_name(), kXpu);
}

// 32-bit integers are in host memory on any device.
TEST_F(Shapes, OfIntegersStay) {
  tf::Node* value = Argument(0, DT_INT32, kCpu);
  tf::Node* shape = Add("Shape", "shape", {value}, {}, kCpu);
  Add("AddV2", "reader", {value, value});
  PlaceShapesWithReaders(&graph_, "XPU");
  EXPECT_EQ(shape->assigned_device_name(), kCpu);
}

using Assertions = Passes;

TEST_F(Assertions, HaveTheirTextsAsAttributes) {
  tf::Node* condition = Argument(0, DT_BOOL);
  tf::Node* value = Argument(1, DT_INT32);
  const auto text = [&](const char* name, const char* words) {
    return Out(Constant(name, tf::Tensor(tf::tstring(words)), kCpu));
  };
  tf::NodeBuilder builder("check", "Assert");
  builder.Input(condition).Input(std::vector<Out>{text("t0", "x is"), value, text("t1", "not"), text("t2", "so")});
  tf::Node* check = Finish(&builder, "check", kXpu);
  tf::Node* first = Add("NoOp", "first", {});
  graph_.AddControlEdge(first, check);
  tf::Node* then = Add("NoOp", "then", {});
  graph_.AddControlEdge(check, then);
  ASSERT_TRUE(EmbedAssertionTexts(&graph_, "XPU").ok());
  check = Find("check");
  ASSERT_NE(check, nullptr);
  EXPECT_EQ(check->type_string(), cluster::kAssertOp);
  EXPECT_EQ(check->assigned_device_name(), kXpu);
  std::vector<std::string> texts;
  ASSERT_TRUE(tf::GetNodeAttr(check->attrs(), cluster::attr::kTexts, &texts).ok());
  EXPECT_EQ(texts, (Lines{"[x is] ", " [not] [so]"}));
  const Lines lines = Text();
  EXPECT_EQ(std::count(lines.begin(), lines.end(),
                       "check = " + std::string(cluster::kAssertOp) + "(argument0, argument1) after first"),
            1);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), "then = NoOp() after check"), 1);
}

TEST_F(Assertions, ThatSayComputedTextStay) {
  tf::NodeBuilder builder("check", "Assert");
  builder.Input(Argument(0, DT_BOOL)).Input(std::vector<Out>{Argument(1, DT_STRING)});
  Finish(&builder, "check", kXpu);
  ASSERT_TRUE(EmbedAssertionTexts(&graph_, "XPU").ok());
  EXPECT_EQ(Find("check")->type_string(), "Assert");
}

class Calls : public Passes {
 protected:
  std::unique_ptr<direct_call::CallPlan> Plan() {
    tf::FixupSourceAndSinkEdges(&graph_);
    return PlanCall(graph_);
  }
};

TEST_F(Calls, AreStepsInOrder) {
  tf::Node *x = Argument(0), *y = Argument(1);
  tf::Node* sum = Add("AddV2", "sum", {x, y});
  tf::Node* tanh = Add("Tanh", "tanh", {sum});
  Result(0, Add("AddV2", "again", {tanh, sum}));
  Result(1, x);
  const std::unique_ptr<direct_call::CallPlan> plan = Plan();
  ASSERT_NE(plan, nullptr);
  ASSERT_EQ(plan->steps.size(), 3u);
  EXPECT_EQ(plan->steps[0].def.name(), "sum");
  EXPECT_EQ(plan->steps[0].inputs, (std::vector<int>{0, 1}));
  EXPECT_EQ(plan->steps[0].device, kXpu);
  EXPECT_EQ(plan->steps[1].inputs, (std::vector<int>{2}));
  EXPECT_EQ(plan->steps[2].inputs, (std::vector<int>{3, 2}));
  EXPECT_EQ(plan->num_values, 5);
  EXPECT_EQ(plan->result_values, (std::vector<int>{4, 0}));
  ASSERT_EQ(plan->arguments.size(), 2u);
  EXPECT_FALSE(plan->arguments[0].in_host_memory);
  EXPECT_EQ(plan->results[0].device, kXpu);
}

TEST_F(Calls, NeedAStep) {
  Result(0, Argument(0));
  EXPECT_EQ(Plan(), nullptr);
}

TEST_F(Calls, HaveFewSteps) {
  tf::Node* value = Argument(0);
  for (int i = 0; i < 24; ++i) value = Add("Tanh", "tanh" + std::to_string(i), {value});
  tf::Node* result = Result(0, value);
  EXPECT_NE(Plan(), nullptr);
  graph_.RemoveNode(result);
  Result(0, Add("Tanh", "one_more", {value}));
  EXPECT_EQ(Plan(), nullptr);
}

TEST_F(Calls, CopyNothingBetweenDevices) {
  Result(0, Add("Tanh", "tanh", {Argument(0, DT_FLOAT, kCpu)}));
  EXPECT_EQ(Plan(), nullptr);
}

// Random numbers depend on how often the kernel was called before, and it is TensorFlow's executor's.
TEST_F(Calls, HaveNoOpWithAStateOfItsOwn) {
  Result(0, Add("RandomUniform", "random", {Argument(0, DT_INT32, kCpu)}, {{"dtype", Type(DT_FLOAT)}}));
  EXPECT_EQ(Plan(), nullptr);
}

class UpdateOrder : public Passes {
 protected:
  tf::Node* Read(const std::string& name, tf::Node* handle) {
    return Add("ReadVariableOp", name, {handle}, {{"dtype", Type(DT_FLOAT)}});
  }
  tf::Node* Assign(const std::string& name, tf::Node* handle, tf::Node* value) {
    return Add("AssignVariableOp", name, {handle, value}, {{"dtype", Type(DT_FLOAT)}});
  }
  tf::Node* Tanh(const std::string& name, tf::Node* value) { return Add("Tanh", name, {value}); }
  static std::vector<std::string> Names(const std::vector<tf::Node*>& members) {
    std::vector<std::string> names;
    for (const tf::Node* node : WithUpdatesLate(members)) names.push_back(node->name());
    return names;
  }
  using Strings = std::vector<std::string>;
  tf::Node *const v_ = Argument(0, tf::DT_RESOURCE), *const w_ = Argument(1, tf::DT_RESOURCE), *const x_ = Argument(2);
};

TEST_F(UpdateOrder, AnUpdateComesBehindThoseThatUseTheValue) {
  tf::Node *read = Read("read", v_), *step = Tanh("step", x_), *update = Assign("update", v_, step);
  tf::Node *use = Tanh("use", read), *more = Tanh("more", use);
  EXPECT_EQ(Names({read, step, update, use, more}), (Strings{"read", "step", "use", "update", "more"}));
}

TEST_F(UpdateOrder, UpdatesOfOthersStay) {
  tf::Node *read = Read("read", v_), *update = Assign("update", w_, x_), *use = Tanh("use", read);
  EXPECT_EQ(Names({read, update, use}), (Strings{"read", "update", "use"}));
}

// The value behind the update is another one, and its readers come behind the update.
TEST_F(UpdateOrder, MembersOfOneVariableKeepTheirOrder) {
  tf::Node *read = Read("read", v_), *update = Assign("update", v_, x_), *again = Read("again", v_);
  tf::Node *new_use = Tanh("new_use", again), *use = Tanh("use", read), *last = Assign("last", v_, use);
  EXPECT_EQ(Names({read, update, again, new_use, use, last}),
            (Strings{"read", "use", "update", "again", "new_use", "last"}));
}

TEST_F(UpdateOrder, AUserThatDependsOnTheUpdateComesBehindIt) {
  tf::Node *read = Read("read", v_), *update = Assign("update", v_, x_), *use = Tanh("use", read);
  graph_.AddControlEdge(update, use);
  EXPECT_EQ(Names({read, update, use}), (Strings{"read", "update", "use"}));
}

// Constants are members of no cluster, and may hold one member behind another.
TEST_F(UpdateOrder, AConstantHoldsAMemberBehindAnUpdate) {
  tf::Node *read = Read("read", v_), *update = Assign("update", v_, x_);
  tf::Node* constant = Constant("constant", tf::Tensor(1.0f));
  graph_.AddControlEdge(update, constant);
  tf::Node *other = Add("AddV2", "other", {constant, constant}), *use = Tanh("use", read);
  EXPECT_EQ(Names({read, update, other, use}), (Strings{"read", "use", "update", "other"}));
}

}  // namespace
}  // namespace xpu::graph

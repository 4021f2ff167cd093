// Direct calls of a few steps, on TensorFlow's CPU device, and how a thread learns the graph of a function.
#include "tensorflow_plugin/direct_call/call_plan.h"

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tensorflow/core/common_runtime/device_mgr.h"
#include "tensorflow/core/framework/device_factory.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/public/session_options.h"
#include "tensorflow/core/public/version.h"
#include "tensorflow_plugin/direct_call/function_graph.h"

namespace xpu::direct_call {
namespace {

namespace tf = tensorflow;

using tf::DT_FLOAT;
using tf::Tensor;

class CallTest : public ::testing::Test {
 protected:
  CallTest()
      : functions_(tf::OpRegistry::Global(), tf::FunctionDefLibrary()),
        devices_(tf::DeviceFactory::NewDevice("CPU", tf::SessionOptions(), "/job:localhost/replica:0/task:0")),
        library_(&devices_, tf::Env::Default(), &config_, TF_GRAPH_DEF_VERSION, &functions_, tf::OptimizerOptions()) {}

  std::string Cpu() const { return devices_.ListDevices()[0]->name(); }
  CallPlan::ValuePlacement Place(tf::DataType type = DT_FLOAT) const { return {type, Cpu(), true}; }

  // A step of floats whose results come next.
  CallPlan::PlannedOp& Add(const std::string& op, const std::vector<int>& inputs, CallPlan* plan) const {
    CallPlan::PlannedOp& step = plan->steps.emplace_back();
    step.def.set_name("step" + std::to_string(plan->steps.size() - 1));
    step.def.set_op(op);
    for (int input : inputs) step.def.add_input("value" + std::to_string(input));
    (*step.def.mutable_attr())["T"].set_type(DT_FLOAT);
    const tf::OpDef* definition = nullptr;
    EXPECT_TRUE(tf::OpRegistry::Global()->LookUpOpDef(op, &definition).ok());
    tf::AddDefaultsToNodeDef(*definition, &step.def);
    step.device = Cpu();
    step.inputs = inputs;
    step.first_output = plan->num_values++;
    return step;
  }
  // Two steps on x and y: x + y, then (x + y) * y.
  CallPlan SumAndProduct() const {
    CallPlan plan;
    plan.arguments = {Place(), Place()};
    plan.num_values = 2;
    Add("AddV2", {0, 1}, &plan);
    Add("Mul", {2, 1}, &plan);
    plan.results = {Place(), Place(), Place()};
    plan.result_values = {3, 0, 2};
    return plan;
  }

  tf::ConfigProto config_;
  tf::FunctionLibraryDefinition functions_;
  tf::StaticDeviceMgr devices_;
  tf::ProcessFunctionLibraryRuntime library_;
  DirectCall::Runner runner_ = [](std::function<void()> work) { work(); };
};

Tensor Numbers(std::vector<float> values) {
  Tensor tensor(DT_FLOAT, {static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), tensor.flat<float>().data());
  return tensor;
}
std::vector<float> ValuesOf(const Tensor& tensor) {
  const auto values = tensor.flat<float>();
  return {values.data(), values.data() + values.size()};
}

TEST_F(CallTest, RunsTheStepsInOrder) {
  const std::unique_ptr<DirectCall> call = MakeCall(SumAndProduct(), library_);
  ASSERT_NE(call, nullptr);
  ASSERT_EQ(call->arguments().size(), 2u);
  EXPECT_EQ(call->arguments()[0].type, DT_FLOAT);
  EXPECT_EQ(call->arguments()[0].device, devices_.ListDevices()[0]);
  EXPECT_EQ(call->results().size(), 3u);
  for (int times = 0; times < 2; ++times) {
    std::vector<Tensor> results;
    // Nobody reads the third.
    const absl::Status status = call->Run({Numbers({1, 2}), Numbers({10, 20}), Numbers({0})}, &runner_, &results);
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_EQ(results.size(), 3u);
    EXPECT_EQ(ValuesOf(results[0]), (std::vector<float>{110, 440}));
    EXPECT_EQ(ValuesOf(results[1]), (std::vector<float>{1, 2}));
    EXPECT_EQ(ValuesOf(results[2]), (std::vector<float>{11, 22}));
  }
}

// A kernel takes the memory of an argument that nobody else holds for its result. Later steps may read that argument.
TEST_F(CallTest, NoStepWritesIntoAValueThatOthersRead) {
  const std::unique_ptr<DirectCall> call = MakeCall(SumAndProduct(), library_);
  ASSERT_NE(call, nullptr);
  std::vector<Tensor> arguments;
  for (const std::vector<float>& values : {std::vector<float>{1, 2}, std::vector<float>{10, 20}}) {
    arguments.push_back(Numbers(values));
    ASSERT_TRUE(arguments.back().RefCountIsOne());
  }
  std::vector<Tensor> results;
  ASSERT_TRUE(call->Run(arguments, &runner_, &results).ok());
  EXPECT_EQ(ValuesOf(arguments[0]), (std::vector<float>{1, 2}));
  EXPECT_EQ(ValuesOf(arguments[1]), (std::vector<float>{10, 20}));
  EXPECT_NE(results[0].data(), results[2].data());
}

TEST_F(CallTest, AnErrorNamesTheOp) {
  const std::unique_ptr<DirectCall> call = MakeCall(SumAndProduct(), library_);
  ASSERT_NE(call, nullptr);
  std::vector<Tensor> results;
  const absl::Status status = call->Run({Numbers({1, 2}), Numbers({1, 2, 3})}, &runner_, &results);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("{{node step0}}"), std::string::npos) << status;
  EXPECT_TRUE(results.empty());
}

TEST_F(CallTest, IsNoneWhereAStepCannotRunSo) {
  CallPlan plan = SumAndProduct();
  plan.steps[1].device = "/job:localhost/replica:0/task:0/device:XPU:0";
  EXPECT_EQ(MakeCall(plan, library_), nullptr) << "there is no such device";
  plan = SumAndProduct();
  plan.steps[1].inputs.pop_back();
  EXPECT_EQ(MakeCall(plan, library_), nullptr) << "an input is missing";
  plan = SumAndProduct();
  plan.results[0].device = "/job:localhost/replica:0/task:0/device:XPU:0";
  EXPECT_EQ(MakeCall(plan, library_), nullptr) << "a result lies nowhere";
  plan = SumAndProduct();
  plan.steps[1].def.set_op("NoSuchOp");
  EXPECT_EQ(MakeCall(plan, library_), nullptr);
  plan = SumAndProduct();
  CallPlan::PlannedOp& call = Add("StatefulPartitionedCall", {}, &plan);
  (*call.def.mutable_attr())["f"].mutable_func()->set_name("some");
  (*call.def.mutable_attr())["Tin"].mutable_list();
  (*call.def.mutable_attr())["Tout"].mutable_list()->add_type(DT_FLOAT);
  EXPECT_EQ(MakeCall(plan, library_), nullptr) << "its kernel ends on another thread";
}

using FunctionGraph = CallTest;

TEST_F(FunctionGraph, IsWhatTheThreadHasSeen) {
  EXPECT_FALSE(IsExpected("f"));
  ExpectGraph("f");
  EXPECT_TRUE(IsExpected("f"));
  EXPECT_FALSE(IsExpected("g"));
  std::thread([] { EXPECT_FALSE(IsExpected("f")) << "another thread"; }).join();
  OfferGraph(std::make_unique<CallPlan>(SumAndProduct()));
  const std::unique_ptr<DirectCall> call(TakeCall(library_));
  ASSERT_NE(call, nullptr);
  EXPECT_EQ(call->results().size(), 3u);
  EXPECT_FALSE(IsExpected("f")) << "it was taken";
  EXPECT_EQ(TakeCall(library_), nullptr);
  // One that was offered for an earlier function is forgotten, and a graph may be fit for no call.
  ExpectGraph("f");
  OfferGraph(std::make_unique<CallPlan>(SumAndProduct()));
  ExpectGraph("g");
  EXPECT_EQ(TakeCall(library_), nullptr);
  ExpectGraph("f");
  OfferGraph(nullptr);
  EXPECT_EQ(TakeCall(library_), nullptr);
}

// The last test: there is no way back.
TEST_F(FunctionGraph, IsNotExpectedOnceSwitchedOff) {
  SwitchOff();
  ExpectGraph("f");
  EXPECT_FALSE(IsExpected("f"));
}

}  // namespace
}  // namespace xpu::direct_call

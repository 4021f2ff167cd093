// Which members of a loop are counted on the host, which run before the body, and which are the body. The members are
// of a device of the type XPU, which is this test's: nothing runs.
#include "tensorflow_plugin/cluster/loop_parts.h"

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tensorflow_plugin/cluster/tests/members_testing.h"

namespace xpu::cluster {
namespace {

namespace tf = tensorflow;

using tf::DT_FLOAT;
using tf::DT_INT32;

struct Nothing final : tf::OpKernel {
  using OpKernel::OpKernel;
  void Compute(tf::OpKernelContext*) override {}
};
REGISTER_KERNEL_BUILDER(Name("AddV2").Device("XPU").TypeConstraint<float>("T"), Nothing);
REGISTER_KERNEL_BUILDER(Name("Tanh").Device("XPU"), Nothing);
REGISTER_KERNEL_BUILDER(Name("Less").Device("XPU").TypeConstraint<float>("T"), Nothing);
REGISTER_KERNEL_BUILDER(Name("Cast").Device("XPU").HostMemory("x"), Nothing);
REGISTER_KERNEL_BUILDER(Name("GatherV2").Device("XPU").HostMemory("axis").HostMemory("indices"), Nothing);
REGISTER_KERNEL_BUILDER(Name("AssignAddVariableOp").Device("XPU").HostMemory("resource"), Nothing);

class TestDevice final : public tf::Device {
 public:
  TestDevice()
      : Device(tf::Env::Default(), BuildDeviceAttributes("/job:localhost/replica:0/task:0/device:XPU:0", "XPU",
                                                         tf::Bytes(1 << 20), tf::DeviceLocality())) {}
  absl::Status Sync() override { return absl::OkStatus(); }
  tf::Allocator* GetAllocator(tf::AllocatorAttributes) override { return tf::cpu_allocator(); }
  // Constants want it.
  absl::Status MakeTensorFromProto(const tf::TensorProto& proto, const tf::AllocatorAttributes,
                                   tf::Tensor* tensor) override {
    return tensor->FromProto(proto) ? absl::OkStatus() : absl::InvalidArgumentError("no tensor");
  }
};

class LoopPartsTest : public OnCpu {
 protected:
  LoopPartsTest() : OnCpu(std::make_unique<TestDevice>()) {}

  // A member on the device; those of OnCpu are on the host.
  static Node OnDevice(const std::string& op, std::vector<std::string> inputs) {
    Node node = Op(op, std::move(inputs), DT_FLOAT);
    node.on_device = true;
    return node;
  }
  static Node CastToDevice(const std::string& input) {
    return {"Cast", {input}, {{"SrcT", Attribute(DT_INT32)}, {"DstT", Attribute(DT_FLOAT)}}, /*on_device=*/true};
  }
  // while (i < n) { x = ...; i = i + 1; } The arguments are i and n in host memory, x and y on the device. Members 0 to
  // 2 are the step, the condition and the next i.
  std::vector<Node> Counting() {
    return {Constant(int32_t{1}), Op("Less", {":0", ":1"}, DT_INT32), Op("AddV2", {":0", "0:0"}, DT_INT32)};
  }
  bool Read(const std::vector<Node>& body, const std::string& next, LoopParts* parts) {
    std::vector<Node> nodes = Counting();
    nodes.insert(nodes.end(), body.begin(), body.end());
    members_ = MembersOf(nodes, {"1:0", "2:0", next});
    return parts->Read(members_, /*loop_variables=*/{0, 2}, /*condition_members=*/2,
                       {DT_INT32, DT_INT32, DT_FLOAT, DT_FLOAT}, /*num_host=*/2, /*num_resources=*/0);
  }
  static std::vector<std::string> NamesOf(const Members& members) {
    std::vector<std::string> names;
    for (const Members::Member& member : members.members()) names.push_back(member.kernel->type_string());
    return names;
  }

  Members members_;
};

using Names = std::vector<std::string>;

TEST_F(LoopPartsTest, TheBodyIsWhatTheDeviceComputes) {
  LoopParts parts;
  ASSERT_TRUE(Read({OnDevice("Tanh", {":2"}), OnDevice("AddV2", {"3:0", ":3"})}, "4:0", &parts));
  EXPECT_EQ(parts.host_variables, (std::vector<int>{0}));
  EXPECT_EQ(parts.device_variables, (std::vector<int>{2}));
  EXPECT_TRUE(parts.lists.empty());
  EXPECT_EQ(NamesOf(parts.body), (Names{"Tanh", "AddV2"}));
  EXPECT_TRUE(parts.before.members().empty());
  EXPECT_TRUE(parts.after.members().empty());
  EXPECT_TRUE(parts.numbers.empty());
}

// The count becomes an argument of the body, behind the loop's four.
TEST_F(LoopPartsTest, ANumberThatIsCopiedToTheDeviceIsAnArgument) {
  LoopParts parts;
  ASSERT_TRUE(Read({CastToDevice(":0"), OnDevice("AddV2", {":2", "3:0"})}, "4:0", &parts));
  EXPECT_EQ(NamesOf(parts.body), (Names{"Cast", "AddV2"}));
  EXPECT_EQ(parts.numbers, (std::vector<tf::DataType>{DT_INT32}));
  EXPECT_EQ(ToString(parts.body.members()[0].inputs[0]), ":4");
}

// It needs the count in host memory, and nothing that the body computes.
TEST_F(LoopPartsTest, AMemberThatReadsTheCountRunsBefore) {
  Node gather = {"GatherV2",
                 {":3", ":0", "0:0"},
                 {{"Tparams", Attribute(DT_FLOAT)}, {"Tindices", Attribute(DT_INT32)}, {"Taxis", Attribute(DT_INT32)}},
                 /*on_device=*/true};
  LoopParts parts;
  ASSERT_TRUE(Read({gather, OnDevice("AddV2", {":2", "3:0"})}, "4:0", &parts));
  EXPECT_EQ(NamesOf(parts.body), (Names{"AddV2"}));
  EXPECT_EQ(NamesOf(parts.before), (Names{"Const", "GatherV2"}));
  ASSERT_EQ(parts.elements.size(), 1u);
  EXPECT_EQ(parts.elements[0].row_of, -1);
  EXPECT_EQ(parts.read_before, (std::vector<int>{0}));
  // A row of a value that the body computes would be another one in each iteration.
  gather.inputs[0] = ":2";
  LoopParts none;
  EXPECT_FALSE(Read({gather, OnDevice("AddV2", {":2", "3:0"})}, "4:0", &none));
}

TEST_F(LoopPartsTest, AVariableThatStaysIsNone) {
  LoopParts parts;
  EXPECT_FALSE(Read({OnDevice("Tanh", {":3"})}, ":2", &parts)) << "there is nothing to compute";
  EXPECT_TRUE(parts.device_variables.empty());
}

TEST_F(LoopPartsTest, ACountThatTheDeviceDecidesIsNone) {
  // The next i depends on x.
  Members members = MembersOf({OnDevice("Less", {":2", ":3"}), OnDevice("Tanh", {":2"})}, {"0:0", "1:0"});
  LoopParts parts;
  EXPECT_FALSE(parts.Read(members, {2}, 1, {DT_INT32, DT_INT32, DT_FLOAT, DT_FLOAT}, 2, 0));
}

TEST_F(LoopPartsTest, AnUpdateOfAVariableIsInTheBody) {
  const std::vector<Node> update = {{"AssignAddVariableOp", {":3", ":2"}, {{"dtype", Attribute(DT_FLOAT)}}, true},
                                    OnDevice("Tanh", {":2"})};
  const auto read = [&](int condition_members, LoopParts* parts) {
    std::vector<Node> nodes = Counting();
    nodes.insert(nodes.end(), update.begin(), update.end());
    members_ = MembersOf(nodes, {"1:0", "2:0", "4:0"});
    return parts->Read(members_, {0, 2}, condition_members, {DT_INT32, DT_INT32, DT_FLOAT, tf::DT_RESOURCE}, 2, 1);
  };
  LoopParts parts;
  ASSERT_TRUE(read(2, &parts));
  EXPECT_EQ(NamesOf(parts.body), (Names{"AssignAddVariableOp", "Tanh"}));
  ASSERT_EQ(parts.uses.size(), 1u);
  EXPECT_TRUE(parts.uses[0].is_written);
  EXPECT_TRUE(parts.is_resource_used[0]);
  LoopParts early;
  EXPECT_FALSE(read(4, &early)) << "what comes before the condition runs once more than the body";
}

}  // namespace
}  // namespace xpu::cluster

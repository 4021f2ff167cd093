// The uses of variables by members, also by those of clusters and loops within.
#include "tensorflow_plugin/cluster/variable_uses.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tensorflow_plugin/cluster/host_variable_op.h"
#include "tensorflow_plugin/cluster/loop_op.h"
#include "tensorflow_plugin/cluster/tests/members_testing.h"
#include "tensorflow_plugin/framework/op_traits.h"

namespace xpu::cluster {
namespace {

namespace tf = tensorflow;

class VariableUsesTest : public OnCpu {
 protected:
  VariableUsesTest() {
    AddTraits("XpuTestReads", OpTrait::kOnlyReads);
    AddTraits(kHostVariableOp, OpTrait::kOnlyReads);
  }
  // "w" written, "h" read on the host.
  static std::string TextOf(const std::vector<VariableUses>& uses) {
    std::string text;
    for (const VariableUses& use : uses) {
      text += std::string(use.is_written ? "w" : "") + (use.is_read_on_host ? "h" : "") + ";";
    }
    return text;
  }
  static tf::NodeDef Named(const std::string& op) {
    tf::NodeDef node;
    node.set_op(op);
    return node;
  }
};

TEST_F(VariableUsesTest, AnOpWritesUnlessItOnlyReads) {
  std::vector<VariableUses> uses(3);
  AddUses(Named("XpuTestReads"), {0, -1}, &uses);
  EXPECT_EQ(TextOf(uses), ";;;");
  AddUses(Named("XpuTestWrites"), {-1, 1}, &uses);
  EXPECT_EQ(TextOf(uses), ";w;;");
  AddUses(Named(kHostVariableOp), {2}, &uses);
  EXPECT_EQ(TextOf(uses), ";w;h;");
  AddUses(Named("XpuTestReads"), {1}, &uses);
  EXPECT_EQ(TextOf(uses), ";w;h;") << "it is written all the same";
  AddUses(Named("XpuTestWrites"), {-1, -1}, &uses);
  EXPECT_EQ(TextOf(uses), ";w;h;");
}

TEST_F(VariableUsesTest, MembersOfALoopUseTheVariablesOfItsArguments) {
  // Its arguments: one number in host memory, one on the device, two variables.
  tf::NodeDef loop = Named(kLoopOp);
  auto& attributes = *loop.mutable_attr();
  attributes[attr::kHost].mutable_list()->add_type(tf::DT_INT32);
  attributes[attr::kDevice].mutable_list()->add_type(tf::DT_FLOAT);
  attributes[attr::kResources].set_i(2);
  attributes[attr::kMembers].set_s(
      GraphOf({{"XpuTestReads", {":2"}, {}}, {"XpuTestWrites", {":1", ":3"}, {}}, {kHostVariableOp, {":2"}, {}}})
          .SerializeAsString());
  std::vector<VariableUses> uses(4);
  AddUses(loop, {-1, -1, 3, 0}, &uses);
  EXPECT_EQ(TextOf(uses), "w;;;h;");
}

}  // namespace
}  // namespace xpu::cluster

// Beside the TensorFlow that this is compiled for all checks pass, and each notices whatever it is lied to about.
#include "tensorflow_plugin/tf_internals/checks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/common_runtime/function.h"
#include "tensorflow_plugin/tf_internals/jit.h"
#include "tensorflow_plugin/tf_internals/shape_layout.h"
#include "tensorflow_plugin/tf_internals/table.h"

namespace xpu::tf_internals {
namespace {

std::vector<std::pair<const char*, void (*)(Check&)>> All() {
  auto all = AllChecks();
  all.emplace_back("jit", CheckJit);
  all.emplace_back("shapes", CheckShapes);
  return all;
}

TEST(Checks, PassBesideTheTensorFlowThatTheyAreCompiledFor) {
  for (const auto& [name, function] : All()) {
    Check check;
    function(check);
    EXPECT_EQ(check.why(), "") << name;
    EXPECT_GT(check.observations(), 0) << name;
  }
}

TEST(Checks, NoticeEachLie) {
  int noticed = 0;
  for (const auto& [name, function] : All()) {
    Check truthful;
    function(truthful);
    for (int lie = 1; lie <= truthful.observations(); ++lie) {
      Check check(lie);
      function(check);
      EXPECT_NE(check.why(), "") << name << " " << lie;
      EXPECT_EQ(check.why(), truthful.lies()[lie - 1]) << name << " " << lie;
      EXPECT_EQ(check.observations(), lie) << name << " goes on after what is not as expected";
      ++noticed;
    }
  }
  EXPECT_GT(noticed, 80);
}

TEST(Checks, EachHasARow) {
  std::vector<std::string> checked = {"eager_tensors", "holders", "thread_state"};  // they need Python: tests/hooks
  for (const auto& [name, function] : All()) checked.push_back(name);
  std::vector<std::string> rows;
  for (const Internal& row : Internals()) {
    rows.push_back(row.name);
    EXPECT_NE(std::string(row.without).back(), ',') << row.name;
    EXPECT_FALSE(row.parts.empty()) << row.name;
  }
  std::sort(checked.begin(), checked.end());
  std::sort(rows.begin(), rows.end());
  EXPECT_EQ(checked, rows);
}

TEST(Table, AHookWhoseCheckFailsIsOffAndSaysSoOnce) {
  testing::internal::CaptureStderr();
  EXPECT_FALSE(TurnOn("jit", [](Check& check) { check.Is("the answer", 41, 42); }));
  TurnOff("jit", "something else");
  EXPECT_EQ(
      testing::internal::GetCapturedStderr(),
      "tensorflow_xpu: the hook jit is off: the answer is 41, not 42. Functions with jit_compile=True run without "
      "XLA on all devices.\n");
  EXPECT_FALSE(IsOn("jit"));
  EXPECT_EQ(StateOf("jit"), "off: something else");
}

TEST(Table, OptionsLeaveHooksOutInSilence) {
  testing::internal::CaptureStderr();
  const auto never = [](Check& check) { check.Works("it was asked"); };
  const auto good = [](Check& check) { check.Is("the answer", 42, 42); };
  setenv("TF_XPU_HOOKS_WITHOUT", "batches,tensor_lists", 1);
  EXPECT_FALSE(TurnOn("tensor_lists", never));
  EXPECT_EQ(StateOf("tensor_lists"), "off by option (TF_XPU_HOOKS_WITHOUT)");
  setenv("TF_XPU_HOOKS_WITHOUT", "tensor_arrays,nothing", 1);  // Python says that it is ignored
  EXPECT_TRUE(TurnOn("tensor_arrays", good));
  setenv("TF_XPU_HOOKS_WITHOUT", "kernels", 1);  // nobody can do without
  EXPECT_TRUE(TurnOn("kernels", good));
  unsetenv("TF_XPU_HOOKS_WITHOUT");
  setenv("TF_XPU_HOOKS", "0", 1);
  EXPECT_FALSE(TurnOn("shapes", never));
  EXPECT_EQ(StateOf("shapes"), "off by option (TF_XPU_HOOKS=0)");
  EXPECT_TRUE(TurnOn("graphs", good));
  unsetenv("TF_XPU_HOOKS");
  LeaveOut("clusters", "TF_XPU_FUSION=0");
  EXPECT_FALSE(TurnOn("clusters", never));
  EXPECT_EQ(StateOf("clusters"), "off by option (TF_XPU_FUSION=0)");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Table, LiesComeFromFaults) {
  setenv("TF_XPU_FAULT", "alloc:fail@3,internal=graphs:lie,internal=clusters:lie@2", 1);
  EXPECT_EQ(LieAbout("graphs"), Check::kAllLies);
  EXPECT_EQ(LieAbout("clusters"), 2);
  EXPECT_EQ(LieAbout("jit"), Check::kNoLie);
  unsetenv("TF_XPU_FAULT");
  EXPECT_EQ(LieAbout("graphs"), Check::kNoLie);
}

// Last: XLA's creator is gone then.
TEST(Jit, StandsBeforeXla) {
  const auto* const xla = tensorflow::GetDefaultCustomKernelCreator();
  ASSERT_NE(xla, nullptr);
  RunJitFunctionsWithoutXla("XPU", KnowsNodes());
  EXPECT_NE(tensorflow::GetDefaultCustomKernelCreator(), xla);
}

}  // namespace
}  // namespace xpu::tf_internals

// Tests the state of TensorFlow's creator of custom kernels. How functions run: tests/graphs/test_jit.py.
#include "tensorflow_plugin/tf_internals/jit.h"

#include <gtest/gtest.h>

#include "tensorflow/core/common_runtime/function.h"
#include "tensorflow_plugin/tf_internals/table.h"

namespace xpu {
namespace {

namespace tf = tensorflow;

class UnknownCreator : public tf::CustomKernelCreator {
 public:
  using Properties = std::shared_ptr<const tf::NodeProperties>;
  bool CanCreateKernel(const tf::FunctionLibraryRuntime&, const Properties&) const override { return false; }
  absl::Status CreateKernel(tf::FunctionLibraryRuntime*, const Properties&,
                            std::unique_ptr<tf::OpKernel>*) const override {
    return absl::OkStatus();
  }
};

// This program has no XLA.
TEST(JitFunctions, NeedNoXla) {
  ASSERT_EQ(tf::GetDefaultCustomKernelCreator(), nullptr);
  RunJitFunctionsWithoutXla("XPU", /*knows_nodes=*/false);
  EXPECT_TRUE(tf_internals::IsOn("jit"));
  EXPECT_NE(tf::GetDefaultCustomKernelCreator(), nullptr);
}

TEST(JitFunctions, ACompilerThatNobodyKnowsIsNotAsked) {
  auto* unknown = new UnknownCreator;
  tf::RegisterDefaultCustomKernelCreator(unknown);
  testing::internal::CaptureStderr();
  RunJitFunctionsWithoutXla("XPU", /*knows_nodes=*/false);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("the hook jit is off: the class that compiles"), std::string::npos) << said;
  EXPECT_NE(said.find("UnknownCreator"), std::string::npos) << said;
  EXPECT_FALSE(tf_internals::IsOn("jit"));
  EXPECT_NE(tf::GetDefaultCustomKernelCreator(), unknown);
}

}  // namespace
}  // namespace xpu

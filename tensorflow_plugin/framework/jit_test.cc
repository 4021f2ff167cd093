// Tests the state of TensorFlow's creator of custom kernels. How functions run: tests/graphs/test_jit.py.
#include "tensorflow_plugin/framework/jit.h"

#include <gtest/gtest.h>

#include "tensorflow/core/common_runtime/function.h"

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
  EXPECT_EQ(RunJitFunctionsWithoutXla("XPU"), "");
  EXPECT_NE(tf::GetDefaultCustomKernelCreator(), nullptr);
}

TEST(JitFunctions, ACompilerThatNobodyKnowsIsLeftAlone) {
  auto* unknown = new UnknownCreator;
  tf::RegisterDefaultCustomKernelCreator(unknown);
  EXPECT_NE(RunJitFunctionsWithoutXla("XPU").find("UnknownCreator"), std::string::npos);
  EXPECT_EQ(tf::GetDefaultCustomKernelCreator(), unknown);
}

}  // namespace
}  // namespace xpu

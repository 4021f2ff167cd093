#include "tensorflow_plugin/cluster/assert_op.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow_plugin/cluster/register_op.h"

namespace xpu::cluster {
namespace {

namespace tf = tensorflow;

class AssertKernel final : public tf::OpKernel {
 public:
  explicit AssertKernel(tf::OpKernelConstruction* c) : OpKernel(c) {
    OP_REQUIRES_OK(c, c->GetAttr(attr::kTexts, &texts_));
    OP_REQUIRES_OK(c, c->GetAttr(attr::kSummarize, &summarize_));
    OP_REQUIRES(c, static_cast<int>(texts_.size()) == num_inputs(), absl::InternalError("a text is missing"));
  }

  void Compute(tf::OpKernelContext* ctx) override {
    const tf::Tensor& condition = ctx->input(0);
    OP_REQUIRES(
        ctx, condition.dims() == 0,
        absl::InvalidArgumentError(absl::StrCat("In[0] should be a scalar: ", condition.shape().DebugString())));
    if (condition.scalar<bool>()()) return;
    std::string message = absl::StrCat("assertion failed: ", texts_[0]);
    for (int i = 1; i < ctx->num_inputs(); ++i) {
      absl::StrAppend(&message, "[", ctx->input(i).SummarizeValue(summarize_), "]", texts_[i]);
    }
    ctx->SetStatus(absl::InvalidArgumentError(message));
  }

 private:
  std::vector<std::string> texts_;
  int64_t summarize_ = 0;
};

}  // namespace

std::string RegisterAssertOp(const std::string& device_type) {
  OpDefinition op{kAssertOp, OpTrait::kCannotWait};
  op.attributes = {absl::StrCat(attr::kValueTypes, ": list(type) >= 0"), absl::StrCat(attr::kTexts, ": list(string)"),
                   absl::StrCat(attr::kSummarize, ": int")};
  op.inputs = {"condition: bool", absl::StrCat("values: ", attr::kValueTypes)};
  op.on_host = {"condition", "values"};
  op.is_stateful = true;
  return RegisterOp<AssertKernel>(op, device_type);
}

}  // namespace xpu::cluster

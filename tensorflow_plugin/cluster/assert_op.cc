#include "tensorflow_plugin/cluster/assert_op.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tensorflow/c/ops.h"
#include "tensorflow/c/tf_status.h"
#include "tensorflow/core/framework/kernel_def_builder.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow_plugin/cluster/register_op.h"
#include "tensorflow_plugin/framework/op_traits.h"

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
  AddTraits(kAssertOp, OpTrait::kCannotWait);
  TF_OpDefinitionBuilder* op = TF_NewOpDefinitionBuilder(kAssertOp);
  TF_OpDefinitionBuilderAddAttr(op, absl::StrCat(attr::kValueTypes, ": list(type) >= 0").c_str());
  TF_OpDefinitionBuilderAddAttr(op, absl::StrCat(attr::kTexts, ": list(string)").c_str());
  TF_OpDefinitionBuilderAddAttr(op, absl::StrCat(attr::kSummarize, ": int").c_str());
  TF_OpDefinitionBuilderAddInput(op, "condition: bool");
  TF_OpDefinitionBuilderAddInput(op, absl::StrCat("values: ", attr::kValueTypes).c_str());
  TF_OpDefinitionBuilderSetIsStateful(op, true);  // nobody may drop it
  std::unique_ptr<TF_Status, decltype(&TF_DeleteStatus)> status(TF_NewStatus(), &TF_DeleteStatus);
  TF_OpDefinitionBuilderSetShapeInferenceFunction(op, [](TF_ShapeInferenceContext*, TF_Status*) {});
  TF_RegisterOpDefinition(op, status.get());
  if (TF_GetCode(status.get()) != TF_OK) return TF_Message(status.get());
  const tf::KernelDef* kernel =
      tf::KernelDefBuilder(kAssertOp).Device(device_type.c_str()).HostMemory("condition").HostMemory("values").Build();
  tf::kernel_factory::OpKernelRegistrar(kernel, kAssertOp, std::make_unique<KernelFactory<AssertKernel>>());
  return "";
}

}  // namespace xpu::cluster

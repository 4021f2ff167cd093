#include "tensorflow_plugin/cluster/host_variable_op.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "tensorflow/c/ops.h"
#include "tensorflow/c/tf_status.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/common_runtime/device_mgr.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/kernel_def_builder.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/framework/tensor_util.h"
#include "tensorflow_plugin/cluster/register_op.h"
#include "tensorflow_plugin/framework/op_traits.h"

namespace xpu::cluster {
namespace {

namespace tf = tensorflow;

// The variable of a handle, on whatever device of this process.
absl::Status Find(tf::OpKernelContext* ctx, const tf::ResourceHandle& handle,
                  tf::core::RefCountPtr<tf::Var>* variable) {
  tf::Var* found = nullptr;
  if (handle.IsRefCounting()) {
    const auto held = handle.GetResource<tf::Var>();
    if (!held.ok()) return held.status();
    found = held.value();
    found->Ref();
  } else {
    tf::Device* device = nullptr;
    TF_RETURN_IF_ERROR(ctx->function_library()->device_mgr()->LookupDevice(handle.device(), &device));
    TF_RETURN_IF_ERROR(device->resource_manager()->Lookup(handle.container(), handle.name(), &found));
  }
  variable->reset(found);
  return absl::OkStatus();
}

class HostVariableKernel final : public tf::OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(tf::OpKernelContext* ctx) override {
    const tf::ResourceHandle& handle = tf::HandleFromInput(ctx, 0);
    tf::core::RefCountPtr<tf::Var> variable;
    const absl::Status status = Find(ctx, handle, &variable);
    OP_REQUIRES(ctx, status.ok(),
                absl::FailedPreconditionError(absl::StrCat(
                    "Could not find variable ", handle.name(), ". This could mean that the variable has been deleted. ",
                    "In TF1, it can also mean the variable is uninitialized. Debug info: container=",
                    handle.container(), ", status error message=", status.message())));
    tf::tf_shared_lock lock(*variable->mu());
    const tf::Tensor& value = *variable->tensor();
    OP_REQUIRES(ctx, variable->is_initialized && value.dtype() == output_type(0),
                absl::FailedPreconditionError(absl::StrCat("the variable ", handle.name(), " is uninitialized, or of ",
                                                           tf::DataTypeString(value.dtype()))));
    ctx->set_output(0, variable->copy_on_read_mode.load() ? tf::tensor::DeepCopy(value) : value);
  }
};

}  // namespace

std::string RegisterHostVariableOp(const std::string& device_type) {
  AddTraits(kHostVariableOp, OpTrait::kCannotWait);
  TF_OpDefinitionBuilder* op = TF_NewOpDefinitionBuilder(kHostVariableOp);
  TF_OpDefinitionBuilderAddAttr(op, "dtype: type");
  TF_OpDefinitionBuilderAddInput(op, "resource: resource");
  TF_OpDefinitionBuilderAddOutput(op, "value: dtype");
  TF_OpDefinitionBuilderSetIsStateful(op, true);
  std::unique_ptr<TF_Status, decltype(&TF_DeleteStatus)> status(TF_NewStatus(), &TF_DeleteStatus);
  TF_OpDefinitionBuilderSetShapeInferenceFunction(op, [](TF_ShapeInferenceContext*, TF_Status*) {});
  TF_RegisterOpDefinition(op, status.get());
  if (TF_GetCode(status.get()) != TF_OK) return TF_Message(status.get());
  const tf::KernelDef* kernel = tf::KernelDefBuilder(kHostVariableOp)
                                    .Device(device_type.c_str())
                                    .HostMemory("resource")
                                    .HostMemory("value")
                                    .Build();
  tf::kernel_factory::OpKernelRegistrar(kernel, kHostVariableOp, std::make_unique<KernelFactory<HostVariableKernel>>());
  return "";
}

}  // namespace xpu::cluster

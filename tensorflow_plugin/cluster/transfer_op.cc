#include "tensorflow_plugin/cluster/transfer_op.h"

#include <memory>

#include "tensorflow/c/kernels.h"
#include "tensorflow/c/ops.h"
#include "tensorflow/c/tf_status.h"
#include "tensorflow/core/framework/kernel_def_builder.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow_plugin/cluster/capture.h"
#include "tensorflow_plugin/cluster/register_op.h"
#include "tensorflow_plugin/device/stream_handle.h"
#include "tensorflow_plugin/framework/op_traits.h"

namespace xpu::cluster {

namespace tf = tensorflow;

namespace {

enum class To : uint8_t { kHost, kDevice };

template <To to>
class TransferKernel final : public tf::OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(tf::OpKernelContext* ctx) override {
    const tf::Tensor& from = ctx->input(0);
    tf::Tensor* copy = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, from.shape(), &copy));
    if (from.TotalBytes() == 0) return;
    OP_REQUIRES_OK(ctx, ToAbsl(Copy(ctx, from, copy)));
  }

 private:
  static Status Copy(tf::OpKernelContext* ctx, const tf::Tensor& from, tf::Tensor* copy) {
    XPU_RETURN_IF_ERROR(RequireNotForked());
    std::unique_ptr<TF_Status, decltype(&TF_DeleteStatus)> status(TF_NewStatus(), &TF_DeleteStatus);
    const SP_Stream handle = TF_GetStream(reinterpret_cast<TF_OpKernelContext*>(ctx), status.get());
    if (handle == nullptr) return errors::Internal(TF_Message(status.get()));
    Stream& stream = *handle->stream;
    if (to == To::kDevice) {
      XPU_RETURN_IF_ERROR(stream.Write(copy->data(), from.data(), from.TotalBytes()));
    } else {
      XPU_RETURN_IF_ERROR(stream.Read(copy->data(), from.data(), from.TotalBytes()));
    }
    return TakeEarlierFailure(stream);
  }
};

template <To to>
std::string Register(const char* name, const std::string& device_type) {
  AddTraits(name, OpTrait::kCannotWait);
  TF_OpDefinitionBuilder* op = TF_NewOpDefinitionBuilder(name);
  TF_OpDefinitionBuilderAddAttr(op, "dtype: type");
  TF_OpDefinitionBuilderAddInput(op, "value: dtype");
  TF_OpDefinitionBuilderAddOutput(op, "copy: dtype");
  std::unique_ptr<TF_Status, decltype(&TF_DeleteStatus)> status(TF_NewStatus(), &TF_DeleteStatus);
  TF_OpDefinitionBuilderSetShapeInferenceFunction(op, [](TF_ShapeInferenceContext*, TF_Status*) {});
  TF_RegisterOpDefinition(op, status.get());
  if (TF_GetCode(status.get()) != TF_OK) return TF_Message(status.get());
  const tf::KernelDef* kernel =
      tf::KernelDefBuilder(name).Device(device_type.c_str()).HostMemory(to == To::kHost ? "copy" : "value").Build();
  tf::kernel_factory::OpKernelRegistrar(kernel, name, std::make_unique<KernelFactory<TransferKernel<to>>>());
  return "";
}

}  // namespace

std::string RegisterTransferOps(const std::string& device_type) {
  const std::string trouble = Register<To::kHost>(kToHostOp, device_type);
  return trouble.empty() ? Register<To::kDevice>(kToDeviceOp, device_type) : trouble;
}

}  // namespace xpu::cluster

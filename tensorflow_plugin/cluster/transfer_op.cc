#include "tensorflow_plugin/cluster/transfer_op.h"

#include <string>

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow_plugin/cluster/capture.h"
#include "tensorflow_plugin/cluster/register_op.h"
#include "tensorflow_plugin/device/stream_handle.h"

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
    OP_REQUIRES_OK(ctx, ToAbsl(RequireNotForked()));
    SP_Stream_st* stream = nullptr;
    OP_REQUIRES_OK(ctx, StreamOf(ctx, &stream));
    OP_REQUIRES_OK(ctx, ToAbsl(Copy(RedirectedStream::InsteadOf(stream), from, copy)));
  }

 private:
  static Status Copy(Stream& stream, const tf::Tensor& from, tf::Tensor* copy) {
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
  OpDefinition op{name, OpTrait::kCannotWait};
  op.attributes = {"dtype: type"};
  op.inputs = {"value: dtype"};
  op.outputs = {"copy: dtype"};
  op.on_host = {to == To::kHost ? "copy" : "value"};
  return RegisterOp<TransferKernel<to>>(op, device_type);
}

}  // namespace

std::string RegisterTransferOps(const std::string& device_type) {
  const std::string trouble = Register<To::kHost>(kToHostOp, device_type);
  return trouble.empty() ? Register<To::kDevice>(kToDeviceOp, device_type) : trouble;
}

}  // namespace xpu::cluster

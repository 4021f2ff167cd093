#include "tensorflow_plugin/cluster/integers_on_device.h"

#include <memory>
#include <type_traits>

#include "tensorflow/core/framework/kernel_def_builder.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/kernels/reshape_op.h"
#include "tensorflow/core/kernels/shape_ops.h"
#include "tensorflow_plugin/cluster/capture.h"
#include "tensorflow_plugin/cluster/register_op.h"
#include "tensorflow_plugin/device/stream_handle.h"
#include "tensorflow_plugin/framework/kernel_labels.h"

namespace xpu::cluster {
namespace {

namespace tf = tensorflow;

class ConstantKernel final : public tf::OpKernel {
 public:
  explicit ConstantKernel(tf::OpKernelConstruction* c) : OpKernel(c) {
    OP_REQUIRES_OK(c, c->GetAttr("value", &value_));
  }

  void Compute(tf::OpKernelContext* ctx) override {
    tf::Tensor* out = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, value_.shape(), &out));
    if (value_.TotalBytes() == 0) return;
    SP_Stream_st* stream = nullptr;
    OP_REQUIRES_OK(ctx, StreamOf(ctx, &stream));
    Stream& queue = RedirectedStream::InsteadOf(stream);
    OP_REQUIRES_OK(ctx, ToAbsl(queue.Write(out->data(), value_.data(), value_.TotalBytes())));
  }

 private:
  tf::Tensor value_;
};

// `on_host`: an argument in host memory.
template <typename Kernel>
void Register(const std::string& device_type, const char* op, const char* attribute, const char* label,
              const char* on_host = nullptr) {
  tf::KernelDefBuilder definition(op);
  definition.Device(device_type.c_str()).TypeConstraint<int32_t>(attribute).Label(label);
  if (on_host != nullptr) definition.HostMemory(on_host);
  if (std::is_same_v<Kernel, tf::ExpandDimsOp<int32_t>>) definition.TypeConstraint<int32_t>("Tdim");
  tf::kernel_factory::OpKernelRegistrar(definition.Build(), "XpuIntegersOnDevice",
                                        std::make_unique<KernelFactory<Kernel>>());
}

}  // namespace

void RegisterIntegersOnDevice(const std::string& device_type) {
  Register<ConstantKernel>(device_type, "Const", "dtype", kConstantOnDevice);
  Register<tf::ReshapeOp>(device_type, "Reshape", "T", labels::kOnDevice, "shape");
  Register<tf::ExpandDimsOp<int32_t>>(device_type, "ExpandDims", "T", labels::kOnDevice, "dim");
  Register<tf::SqueezeOp>(device_type, "Squeeze", "T", labels::kOnDevice);
}

}  // namespace xpu::cluster

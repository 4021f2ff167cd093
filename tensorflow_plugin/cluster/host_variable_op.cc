#include "tensorflow_plugin/cluster/host_variable_op.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/common_runtime/device_mgr.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/framework/tensor_util.h"
#include "tensorflow_plugin/cluster/capture.h"
#include "tensorflow_plugin/cluster/cluster_op.h"
#include "tensorflow_plugin/cluster/known_values.h"
#include "tensorflow_plugin/cluster/members.h"
#include "tensorflow_plugin/cluster/register_op.h"
#include "tensorflow_plugin/device/stream_handle.h"

namespace xpu::cluster {

namespace tf = tensorflow;

bool IsOfCpu(const tf::ResourceHandle& handle) {
  tf::DeviceNameUtils::ParsedName device;
  return tf::DeviceNameUtils::ParseFullName(handle.device(), &device) && device.type == tf::DEVICE_CPU;
}

absl::Status FindVariableAnywhere(tf::OpKernelContext* ctx, const tf::ResourceHandle& handle,
                                  tf::core::RefCountPtr<tf::Var>* variable) {
  tf::Var* found = nullptr;
  if (CaptureObserver::Current() != nullptr) {
    TF_RETURN_IF_ERROR(ctx->resource_manager()->Lookup(kKnownValuesContainer, handle.name(), &found));
  } else if (handle.IsRefCounting()) {
    const auto held = handle.GetResource<tf::Var>();
    if (!held.ok()) return held.status();
    found = held.value();
    found->Ref();
  } else {
    if (ctx->function_library() == nullptr) return absl::NotFoundError("the devices are not known here");
    tf::Device* device = nullptr;
    TF_RETURN_IF_ERROR(ctx->function_library()->device_mgr()->LookupDevice(handle.device(), &device));
    TF_RETURN_IF_ERROR(device->resource_manager()->Lookup(handle.container(), handle.name(), &found));
  }
  variable->reset(found);
  return absl::OkStatus();
}

absl::Status ReadToHost(tf::OpKernelContext* ctx, Stream& stream, const tf::Tensor& value, tf::Tensor* on_host) {
  tf::AllocatorAttributes attributes;
  attributes.set_on_host(true);
  TF_RETURN_IF_ERROR(ctx->allocate_temp(value.dtype(), value.shape(), on_host, attributes));
  if (value.TotalBytes() == 0) return absl::OkStatus();
  TF_RETURN_IF_ERROR(ToAbsl(stream.Read(on_host->data(), value.data(), value.TotalBytes())));
  return ToAbsl(stream.PeekStatus());
}

namespace {

class HostVariableKernel final : public tf::OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(tf::OpKernelContext* ctx) override {
    const tf::ResourceHandle& handle = tf::HandleFromInput(ctx, 0);
    tf::core::RefCountPtr<tf::Var> variable;
    const absl::Status found = FindVariableAnywhere(ctx, handle, &variable);
    OP_REQUIRES(ctx, found.ok(),
                absl::FailedPreconditionError(absl::StrCat(
                    "Could not find variable ", handle.name(), ". This could mean that the variable has been deleted. ",
                    "In TF1, it can also mean the variable is uninitialized. Debug info: container=",
                    handle.container(), ", status error message=", found.message())));
    tf::tf_shared_lock lock(*variable->mu());
    tf::Tensor value = *variable->tensor();
    OP_REQUIRES(ctx, variable->is_initialized && value.dtype() == output_type(0),
                absl::FailedPreconditionError(absl::StrCat("the variable ", handle.name(), " is uninitialized, or of ",
                                                           tf::DataTypeString(value.dtype()))));
    if (CaptureObserver::Current() == nullptr && !IsOfCpu(handle)) {
      SP_Stream_st* stream = nullptr;
      OP_REQUIRES_OK(ctx, StreamOf(ctx, &stream));
      const tf::Tensor on_device = value;
      OP_REQUIRES_OK(ctx, ReadToHost(ctx, *stream->stream, on_device, &value));
    } else if (variable->copy_on_read_mode.load()) {
      value = tf::tensor::DeepCopy(value);
    }
    ctx->set_output(0, value);
  }
};

}  // namespace

std::string RegisterHostVariableOp(const std::string& device_type) {
  OpDefinition op{kHostVariableOp, OpTrait::kCannotWait | OpTrait::kOnlyReads};
  op.attributes = {"dtype: type"};
  op.inputs = {"resource: resource"};
  op.outputs = {"value: dtype"};
  op.on_host = {"resource", "value"};
  op.is_stateful = true;
  return RegisterOp<HostVariableKernel>(op, device_type);
}

}  // namespace xpu::cluster

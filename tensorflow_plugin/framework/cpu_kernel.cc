#include "tensorflow_plugin/framework/cpu_kernel.h"

#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/node_properties.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow_plugin/framework/native.h"
#include "tensorflow_plugin/framework/variables.h"

namespace xpu {

struct CpuKernel::Native {
  std::unique_ptr<tensorflow::OpKernel> kernel;
};

CpuKernel::CpuKernel(Construction& c) : native_(std::make_unique<Native>()) {
  auto* construction = reinterpret_cast<tensorflow::OpKernelConstruction*>(c.native());
  std::shared_ptr<const tensorflow::NodeProperties> properties;
  tensorflow::NodeDef node = construction->def();
  node.mutable_attr()->erase("_kernel");  // a label of this device's kernels says nothing of the CPU's
  c.Fail(FromNative(
      tensorflow::NodeProperties::CreateFromNodeDef(std::move(node), tensorflow::OpRegistry::Global(), &properties)));
  if (!c.status().ok()) return;
  // The device stays this one, so that what the kernel allocates or keeps in a container is this device's.
  tensorflow::DeviceBase* device = construction->device();
  tensorflow::OpKernel* kernel = nullptr;
  c.Fail(FromNative(tensorflow::CreateOpKernel(tensorflow::DeviceType(tensorflow::DEVICE_CPU), device,
                                               device->GetAllocator(tensorflow::AllocatorAttributes()),
                                               construction->function_library(), construction->resource_manager(),
                                               properties, construction->graph_def_version(), &kernel)));
  native_->kernel.reset(kernel);
}

CpuKernel::~CpuKernel() = default;

Status CpuKernel::Compute(Context& ctx) {
  native_->kernel->Compute(xpu::Native(ctx));
  return OkStatus();  // a failure is in the context already
}

namespace {

tensorflow::AllocatorAttributes HostMemory() {
  tensorflow::AllocatorAttributes attributes;
  attributes.set_on_host(true);
  return attributes;
}

// Output `i`, which is `value` in host memory.
Status SetOutput(Context& ctx, int i, const tensorflow::Tensor& value) {
  tensorflow::OpKernelContext* native = Native(ctx);
  if (native->output_alloc_attr(i).on_host()) {
    native->set_output(i, value);
    return OkStatus();
  }
  Tensor out;
  XPU_RETURN_IF_ERROR(ctx.AllocateOutputLike(i, Tensor(&value), &out));
  return ctx.CopyFromHost(out.mutable_data(), value.data(), out.bytes());
}

}  // namespace

Status CpuKernelOnCopy::Compute(Context& ctx) {
  tensorflow::OpKernelContext* outer = xpu::Native(ctx);
  LockedVariable variable;
  XPU_RETURN_IF_ERROR(LockedVariable::Lock(ctx, 0, LockMode::kExclusive, &variable));
  const Tensor original = variable.value();
  const tensorflow::Tensor& native_original = xpu::Native(original);
  tensorflow::core::RefCountPtr<tensorflow::Var> copy(new tensorflow::Var(native_original.dtype()));
  XPU_RETURN_IF_ERROR(
      FromNative(outer->allocate_temp(native_original.dtype(), native_original.shape(), copy->tensor(), HostMemory())));
  copy->is_initialized = true;
  XPU_RETURN_IF_ERROR(ctx.CopyToHost(copy->tensor()->data(), original.data(), original.bytes()));

  tensorflow::Tensor handle(tensorflow::DT_RESOURCE, {});
  copy->Ref();  // of the handle
  handle.scalar<tensorflow::ResourceHandle>()() =
      tensorflow::ResourceHandle::MakeRefCountingHandle(copy.get(), outer->device()->attributes().name());
  std::vector<tensorflow::Tensor> tensors = {std::move(handle)};
  for (int i = 1; i < outer->num_inputs(); ++i) tensors.push_back(outer->input(i));
  std::vector<tensorflow::TensorValue> inputs;
  for (tensorflow::Tensor& tensor : tensors) inputs.emplace_back(&tensor);
  const std::vector<tensorflow::AllocatorAttributes> of_inputs(inputs.size(), HostMemory());
  const std::vector<tensorflow::AllocatorAttributes> of_outputs(outer->num_outputs(), HostMemory());

  tensorflow::OpKernelContext::Params params;
  params.step_id = outer->step_id();
  params.op_kernel = native_->kernel.get();
  params.device = outer->device();
  params.resource_manager = outer->resource_manager();
  params.cancellation_manager = outer->cancellation_manager();
  params.function_library = outer->function_library();
  params.inputs = inputs;
  params.input_alloc_attrs = of_inputs;
  params.output_attr_array = of_outputs.data();
  tensorflow::OpKernelContext inner(&params, outer->num_outputs());
  native_->kernel->Compute(&inner);
  XPU_RETURN_IF_ERROR(FromNative(inner.status()));

  for (int i = 0; i < outer->num_outputs(); ++i) {
    const std::unique_ptr<tensorflow::Tensor> result(inner.release_output(i).tensor);
    XPU_RETURN_IF_ERROR(SetOutput(ctx, i, *result));
  }
  Tensor buffer;
  XPU_RETURN_IF_ERROR(variable.BeginOverwrite(ctx, &buffer));
  XPU_RETURN_IF_ERROR(ctx.CopyFromHost(buffer.mutable_data(), copy->tensor()->data(), buffer.bytes()));
  variable.Commit();
  return OkStatus();
}

}  // namespace xpu

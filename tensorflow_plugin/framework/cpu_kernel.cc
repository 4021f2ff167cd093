#include "tensorflow_plugin/framework/cpu_kernel.h"

#include <utility>

#include "tensorflow/core/framework/node_properties.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow_plugin/framework/native.h"

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

}  // namespace xpu

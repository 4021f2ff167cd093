// Registry::Adopt: kernels that TensorFlow has, for devices of this plugin.
#include <memory>
#include <utility>

#include "tensorflow/core/framework/kernel_def.pb.h"
#include "tensorflow/core/framework/node_properties.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow_plugin/framework/left_out.h"
#include "tensorflow_plugin/framework/registry.h"

namespace xpu {
namespace {

namespace tf = tensorflow;

// Makes the kernel that TensorFlow would make for a GPU, on the device at hand.
class GpuKernelFactory : public tf::kernel_factory::OpKernelFactory {
 public:
  tf::OpKernel* Create(tf::OpKernelConstruction* construction) override {
    tf::OpKernel* kernel = nullptr;
    std::shared_ptr<const tf::NodeProperties> props;
    absl::Status status = tf::NodeProperties::CreateFromNodeDef(construction->def(), tf::OpRegistry::Global(), &props);
    if (status.ok()) {
      tf::DeviceBase* device = construction->device();
      status = tf::CreateOpKernel(tf::DeviceType(kGpu), device, device->GetAllocator(tf::AllocatorAttributes()),
                                  construction->function_library(), construction->resource_manager(), props,
                                  construction->graph_def_version(), &kernel);
    }
    if (!status.ok()) construction->SetStatus(status);
    return kernel;
  }
};

}  // namespace

void Registry::Adopt(const std::vector<const char*>& ops, OpTraits traits) {
  if (IsLeftOut(traits)) return;
  for (const char* op : ops) AddTraits(op, traits);
  if (device_type_ == kGpu) return;  // it has them
  for (const char* op : ops) {
    bool found = false;
    const tf::KernelList registered = tf::GetRegisteredKernelsForOp(op);
    for (const tf::KernelDef& of_tensorflow : registered.kernel()) {
      if (of_tensorflow.device_type() != kGpu) continue;
      found = true;
      // The registrar takes it over.
      auto* ours = new tf::KernelDef(of_tensorflow);
      ours->set_device_type(device_type_);
      tf::kernel_factory::OpKernelRegistrar(ours, "XpuAdoptedKernel", std::make_unique<GpuKernelFactory>());
      ++num_registered_;
    }
    if (!found) problems_.push_back(std::string(op) + ": TensorFlow has no kernel of it to adopt");
  }
}

}  // namespace xpu

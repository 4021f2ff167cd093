#include "tensorflow_plugin/tf_internals/probe.h"

#include <memory>
#include <utility>

#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/node_properties.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/public/version.h"

namespace xpu::tf_internals {

namespace tf = tensorflow;

ProbeDevice::ProbeDevice() : DeviceBase(tf::Env::Default()) {
  attributes_.set_name("/job:localhost/replica:0/task:0/device:XPU_PROBE:0");
  attributes_.set_device_type("XPU_PROBE");
  attributes_.set_incarnation(1);
  tf::DeviceNameUtils::ParseFullName(attributes_.name(), &parsed_name_);
}

tf::Allocator* ProbeDevice::GetAllocator(tf::AllocatorAttributes) {
  ++allocators_asked_for_;
  return tf::cpu_allocator();
}

Probe::Probe()
    : resources_("xpu_probe"),
      of_step_(kStep, [this](const std::string& name) { resources_.Cleanup(name).IgnoreError(); }) {}

Probe::Outputs Probe::Run(const tf::NodeDef& node, const std::vector<tf::Tensor>& inputs, std::string* why,
                          const Look& look) {
  Outputs outputs;
  const absl::Status status = TryRun(node, inputs, &outputs, look);
  if (!status.ok()) *why = "TensorFlow's kernel of " + node.op() + " does not run: " + std::string(status.message());
  return status.ok() ? outputs : Outputs();
}

absl::Status Probe::TryRun(tf::NodeDef node, const std::vector<tf::Tensor>& inputs, Outputs* outputs,
                           const Look& look) {
  for (size_t i = 0; i < inputs.size(); ++i) node.add_input("xpu_probe_input");
  const tf::OpDef* op = nullptr;
  TF_RETURN_IF_ERROR(tf::OpRegistry::Global()->LookUpOpDef(node.op(), &op));
  tf::AddDefaultsToNodeDef(*op, &node);
  std::shared_ptr<const tf::NodeProperties> properties;
  TF_RETURN_IF_ERROR(tf::NodeProperties::CreateFromNodeDef(node, tf::OpRegistry::Global(), &properties));
  tf::OpKernel* made = nullptr;
  TF_RETURN_IF_ERROR(tf::CreateOpKernel(tf::DeviceType(tf::DEVICE_CPU), &device_,
                                        device_.GetAllocator(tf::AllocatorAttributes()), nullptr, &resources_,
                                        properties, TF_GRAPH_DEF_VERSION, &made));
  const std::unique_ptr<tf::OpKernel> kernel(made);
  const std::vector<tf::AllocatorAttributes> of_outputs(kernel->num_outputs()), of_inputs(inputs.size());
  std::vector<tf::Tensor> held = inputs;  // nobody takes an input's memory for a result
  std::vector<tf::TensorValue> values;
  values.reserve(held.size());
  for (tf::Tensor& input : held) values.emplace_back(&input);
  tf::OpKernelContext::Params params;
  params.step_id = kStep;
  params.op_kernel = kernel.get();
  params.device = &device_;
  params.resource_manager = &resources_;
  params.step_container = &of_step_;
  params.cancellation_manager = &cancellation_;
  params.output_attr_array = of_outputs.data();
  params.input_alloc_attrs = of_inputs;
  params.inputs = values;
  tf::OpKernelContext context(&params);
  kernel->Compute(&context);
  TF_RETURN_IF_ERROR(context.status());
  if (look) look(context);
  for (int i = 0; i < context.num_outputs(); ++i) {
    const std::unique_ptr<tf::Tensor> output(context.release_output(i).tensor);
    if (output == nullptr) return absl::InternalError("it gives no output");
    outputs->push_back(*output);
  }
  return absl::OkStatus();
}

tf::NodeDef NodeOf(const std::string& op) {
  tf::NodeDef node;
  node.set_name("xpu_probe");
  node.set_op(op);
  return node;
}

tf::Tensor Scalar(int32_t value) {
  tf::Tensor tensor(tf::DT_INT32, tf::TensorShape({}));
  tensor.scalar<int32_t>()() = value;
  return tensor;
}

}  // namespace xpu::tf_internals

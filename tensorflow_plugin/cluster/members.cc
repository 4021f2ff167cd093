#include "tensorflow_plugin/cluster/members.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/node_properties.h"
#include "tensorflow/core/framework/op.h"

namespace xpu::cluster {

namespace tf = tensorflow;

std::string ToString(const Source& source) {
  return (source.member == Source::kArgument ? "" : std::to_string(source.member)) + ":" + std::to_string(source.index);
}

absl::Status ParseSource(const std::string& text, Source* source) {
  const size_t colon = text.find(':');
  const bool argument = colon == 0;
  source->member = Source::kArgument;
  if (colon == std::string::npos || !absl::SimpleAtoi(text.substr(colon + 1), &source->index) || source->index < 0 ||
      (!argument && (!absl::SimpleAtoi(text.substr(0, colon), &source->member) || source->member < 0))) {
    return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" is no value of a cluster"));
  }
  return absl::OkStatus();
}

namespace {

std::vector<tf::AllocatorAttributes> Attributes(const tf::MemoryTypeVector& types) {
  std::vector<tf::AllocatorAttributes> attributes(types.size());
  for (size_t i = 0; i < types.size(); ++i) attributes[i].set_on_host(types[i] == tf::HOST_MEMORY);
  return attributes;
}

}  // namespace

absl::Status Members::Create(tf::OpKernelConstruction* construction, const tf::GraphDef& graph,
                             std::vector<Source> results) {
  tf::DeviceBase* device = construction->device();
  for (const tf::NodeDef& node : graph.node()) {
    Member member;
    for (const std::string& text : node.input()) {
      Source source;
      TF_RETURN_IF_ERROR(ParseSource(text, &source));
      if (source.member >= static_cast<int>(members_.size()) ||
          (source.member >= 0 && source.index >= members_[source.member].kernel->num_outputs())) {
        return absl::InvalidArgumentError(
            absl::StrCat("node ", node.name(), " reads ", text, ", which is not computed before it"));
      }
      if (source.member >= 0) ++members_[source.member].uses[source.index];
      member.inputs.push_back(source);
    }
    std::shared_ptr<const tf::NodeProperties> props;
    TF_RETURN_IF_ERROR(tf::NodeProperties::CreateFromNodeDef(node, tf::OpRegistry::Global(), &props));
    tf::OpKernel* kernel = nullptr;
    TF_RETURN_IF_ERROR(tf::CreateOpKernel(tf::DeviceType(device->device_type()), device,
                                          device->GetAllocator(tf::AllocatorAttributes()),
                                          construction->function_library(), construction->resource_manager(), props,
                                          construction->graph_def_version(), &kernel));
    member.kernel.reset(kernel);
    if (kernel->AsAsync() != nullptr || kernel->num_inputs() != static_cast<int>(member.inputs.size())) {
      return absl::InvalidArgumentError(absl::StrCat("node ", node.name(), " cannot be part of a cluster"));
    }
    member.input_attrs = Attributes(kernel->input_memory_types());
    member.output_attrs = Attributes(kernel->output_memory_types());
    member.uses.assign(kernel->num_outputs(), 0);
    members_.push_back(std::move(member));
  }
  results_ = std::move(results);
  for (const Source& source : results_) {
    if (source.member < 0 || source.member >= static_cast<int>(members_.size()) ||
        source.index >= members_[source.member].kernel->num_outputs()) {
      return absl::InvalidArgumentError(absl::StrCat("a cluster has no value ", ToString(source)));
    }
    ++members_[source.member].uses[source.index];
  }
  return absl::OkStatus();
}

absl::Status Members::RunOne(const Member& member, tf::OpKernelContext* outer, const Environment& environment,
                             std::vector<tf::Tensor>* inputs, std::vector<tf::Tensor>* outputs) const {
  tf::OpKernelContext::Params params;
  params.step_id = outer->step_id();
  params.op_kernel = member.kernel.get();
  params.device = environment.device;
  params.output_attr_array = member.output_attrs.data();
  params.resource_manager = environment.resources;
  params.step_container = outer->step_container();
  params.rendezvous = outer->rendezvous();
  params.session_state = outer->session_state();
  params.cancellation_manager = outer->cancellation_manager();
  params.frame_iter = outer->frame_iter();
  params.op_device_context = outer->op_device_context();
  params.function_library = outer->function_library();
  params.runner = outer->runner();
  params.run_all_kernels_inline = outer->run_all_kernels_inline();
  absl::InlinedVector<tf::TensorValue, 4> values;
  for (tf::Tensor& input : *inputs) values.emplace_back(&input);
  params.inputs = values;
  params.input_alloc_attrs = member.input_attrs;

  tf::OpKernelContext context(&params);
  member.kernel->Compute(&context);
  if (!context.status().ok()) return tf::AttachDef(context.status(), member.kernel->def());
  for (int i = 0; i < context.num_outputs(); ++i) {
    const std::unique_ptr<tf::Tensor> value(context.release_output(i).tensor);
    if (value == nullptr) {
      return absl::InternalError(absl::StrCat("node ", member.kernel->name(), " has not set its output ", i));
    }
    outputs->push_back(std::move(*value));
  }
  return absl::OkStatus();
}

absl::Status Members::Run(tf::OpKernelContext* outer, Environment& environment,
                          std::vector<tf::Tensor>* results) const {
  std::vector<std::vector<tf::Tensor>> values(members_.size());
  std::vector<std::vector<int>> uses(members_.size());
  for (size_t i = 0; i < members_.size(); ++i) uses[i] = members_[i].uses;
  std::vector<tf::Tensor> inputs;
  for (size_t i = 0; i < members_.size(); ++i) {
    const Member& member = members_[i];
    inputs.clear();
    for (const Source& source : member.inputs) {
      if (source.member == Source::kArgument) {
        inputs.push_back(environment.arguments[source.index]);
      } else if (--uses[source.member][source.index] == 0) {
        inputs.push_back(std::move(values[source.member][source.index]));
      } else {
        inputs.push_back(values[source.member][source.index]);
      }
    }
    if (environment.before) environment.before(static_cast<int>(i));
    TF_RETURN_IF_ERROR(RunOne(member, outer, environment, &inputs, &values[i]));
    for (size_t k = 0; k < values[i].size(); ++k) {
      if (environment.on_value) environment.on_value(values[i][k]);
      if (uses[i][k] == 0) values[i][k] = tf::Tensor();
    }
  }
  for (const Source& source : results_) results->push_back(values[source.member][source.index]);
  return absl::OkStatus();
}

}  // namespace xpu::cluster

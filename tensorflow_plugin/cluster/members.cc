#include "tensorflow_plugin/cluster/members.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/node_properties.h"
#include "tensorflow/core/framework/op.h"

namespace xpu::cluster {

namespace tf = tensorflow;

std::vector<tf::AllocatorAttributes> AttributesOf(const tf::MemoryTypeVector& types) {
  std::vector<tf::AllocatorAttributes> attributes(types.size());
  for (size_t i = 0; i < types.size(); ++i) attributes[i].set_on_host(types[i] == tf::HOST_MEMORY);
  return attributes;
}

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

thread_local const Watch* current_watch = nullptr;

}  // namespace

Watch::Watch(std::function<void(const tf::OpKernel&)> on_member, std::function<void(const tf::Tensor&)> on_value)
    : on_member_(std::move(on_member)), on_value_(std::move(on_value)) {
  current_watch = this;
}
Watch::~Watch() { current_watch = nullptr; }
const Watch* Watch::Current() { return current_watch; }

void Members::CountUse(const Source& source) {
  if (source.member >= 0) {
    ++members_[source.member].uses[source.index];
    return;
  }
  if (argument_uses_.size() <= static_cast<size_t>(source.index)) argument_uses_.resize(source.index + 1);
  ++argument_uses_[source.index];
}

absl::Status Members::Create(tf::OpKernelConstruction* construction, const tf::GraphDef& graph,
                             std::vector<Source> results) {
  tf::DeviceBase* device = construction->device();
  const auto is_known = [this](const Source& source) {
    return source.member < 0 || (source.member < static_cast<int>(members_.size()) &&
                                 source.index < members_[source.member].kernel->num_outputs());
  };
  for (const tf::NodeDef& node : graph.node()) {
    Member member;
    for (const std::string& text : node.input()) {
      Source source;
      TF_RETURN_IF_ERROR(ParseSource(text, &source));
      if (!is_known(source)) {
        return absl::InvalidArgumentError(
            absl::StrCat("node ", node.name(), " reads ", text, ", which is not computed before it"));
      }
      CountUse(source);
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
    member.input_attrs = AttributesOf(kernel->input_memory_types());
    member.output_attrs = AttributesOf(kernel->output_memory_types());
    member.uses.assign(kernel->num_outputs(), 0);
    members_.push_back(std::move(member));
  }
  results_ = std::move(results);
  for (const Source& source : results_) {
    if (!is_known(source)) return absl::InvalidArgumentError(absl::StrCat("there is no value ", ToString(source)));
    CountUse(source);
  }
  return absl::OkStatus();
}

Members::Run::Run(const Members& members, tf::OpKernelContext* outer, Environment& environment)
    : members_(members),
      outer_(outer),
      environment_(environment),
      values_(members.members_.size()),
      uses_(members.members_.size()),
      argument_uses_(members.argument_uses_) {
  for (size_t i = 0; i < uses_.size(); ++i) uses_[i] = members.members_[i].uses;
}

tf::Tensor Members::Run::Take(const Source& source, bool keep) {
  const bool argument = source.member == Source::kArgument;
  tf::Tensor& value = argument ? environment_.arguments[source.index] : values_[source.member][source.index];
  int& uses = argument ? argument_uses_[source.index] : uses_[source.member][source.index];
  if (--uses > 0 || (argument && keep)) return value;
  return std::move(value);
}

absl::Status Members::Run::RunOne(const Member& member, std::vector<tf::Tensor>* outputs) {
  tf::OpKernelContext::Params params;
  params.step_id = outer_->step_id();
  params.op_kernel = member.kernel.get();
  params.device = environment_.device;
  params.output_attr_array = member.output_attrs.data();
  params.resource_manager = environment_.resources;
  params.step_container = outer_->step_container();
  params.rendezvous = outer_->rendezvous();
  params.session_state = outer_->session_state();
  params.cancellation_manager = outer_->cancellation_manager();
  params.frame_iter = outer_->frame_iter();
  params.op_device_context = outer_->op_device_context();
  params.function_library = outer_->function_library();
  params.runner = outer_->runner();
  params.run_all_kernels_inline = outer_->run_all_kernels_inline();
  absl::InlinedVector<tf::TensorValue, 4> values;
  for (tf::Tensor& input : inputs_) values.emplace_back(&input);
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

absl::Status Members::Run::Until(int end, bool keep) {
  for (; next_ < end; ++next_) {
    const Member& member = members_.members_[next_];
    inputs_.clear();
    for (const Source& source : member.inputs) inputs_.push_back(Take(source, keep));
    if (current_watch != nullptr) current_watch->Begin(*member.kernel);
    std::vector<tf::Tensor>& values = values_[next_];
    TF_RETURN_IF_ERROR(RunOne(member, &values));
    for (size_t k = 0; k < values.size(); ++k) {
      if (current_watch != nullptr) current_watch->Show(values[k]);
      if (uses_[next_][k] == 0) values[k] = tf::Tensor();
    }
  }
  return absl::OkStatus();
}

absl::Status Members::RunAll(tf::OpKernelContext* outer, Environment& environment,
                             std::vector<tf::Tensor>* results) const {
  Run run(*this, outer, environment);
  TF_RETURN_IF_ERROR(run.Until(static_cast<int>(members_.size()), false));
  for (const Source& source : results_) results->push_back(run.Take(source));
  return absl::OkStatus();
}

}  // namespace xpu::cluster

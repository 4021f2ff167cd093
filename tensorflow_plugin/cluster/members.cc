#include "tensorflow_plugin/cluster/members.h"

#include <climits>
#include <memory>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/node_properties.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow_plugin/cluster/cluster_op.h"

namespace xpu::cluster {

namespace tf = tensorflow;

std::vector<tf::AllocatorAttributes> AttributesOf(const tf::MemoryTypeVector& types) {
  std::vector<tf::AllocatorAttributes> attributes(types.size());
  for (size_t i = 0; i < types.size(); ++i) attributes[i].set_on_host(types[i] == tf::HOST_MEMORY);
  return attributes;
}

std::string ToString(const ValueRef& source) {
  return (source.member == ValueRef::kArgument ? "" : std::to_string(source.member)) + ":" +
         std::to_string(source.index);
}

absl::Status ParseValueRef(const std::string& text, ValueRef* source) {
  const size_t colon = text.find(':');
  const bool argument = colon == 0;
  source->member = ValueRef::kArgument;
  if (colon == std::string::npos || !absl::SimpleAtoi(text.substr(colon + 1), &source->index) || source->index < 0 ||
      (!argument && (!absl::SimpleAtoi(text.substr(0, colon), &source->member) || source->member < 0))) {
    return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" is no value of a cluster"));
  }
  return absl::OkStatus();
}

namespace {

thread_local const CaptureObserver* current_observer = nullptr;

// The value of a constant of a few bytes, which its kernel's own NodeDef does not have; else a tensor without elements.
tf::Tensor SmallConstant(const tf::NodeDef& node) {
  constexpr size_t kFewBytes = 256;
  const auto* value = node.op() == "Const" ? tf::AttrSlice(node).Find("value") : nullptr;
  tf::Tensor constant;
  if (value == nullptr || value->tensor().ByteSizeLong() > 2 * kFewBytes ||
      !tf::DataTypeCanUseMemcpy(value->tensor().dtype()) || !constant.FromProto(value->tensor()) ||
      constant.TotalBytes() > kFewBytes) {
    return tf::Tensor();
  }
  return constant;
}

}  // namespace

CaptureObserver::CaptureObserver(std::function<void(const tf::OpKernel&)> on_member,
                                 std::function<void(const tf::Tensor&)> on_value,
                                 std::function<bool(CapturedLoop*)> on_iteration, const int64_t* iterations_left)
    : on_member_(std::move(on_member)),
      on_value_(std::move(on_value)),
      on_iteration_(std::move(on_iteration)),
      iterations_left_(iterations_left) {
  current_observer = this;
}
CaptureObserver::~CaptureObserver() { current_observer = nullptr; }
const CaptureObserver* CaptureObserver::Current() { return current_observer; }

void Members::CountUse(const ValueRef& source) {
  if (source.member >= 0) {
    ++uses_[NumberOf(source)];
    return;
  }
  if (argument_uses_.size() <= static_cast<size_t>(source.index)) argument_uses_.resize(source.index + 1);
  ++argument_uses_[source.index];
}

absl::Status Members::Create(tf::OpKernelConstruction* construction, const tf::GraphDef& graph,
                             std::vector<ValueRef> results) {
  tf::DeviceBase* device = construction->device();
  const auto is_known = [this](const ValueRef& source) {
    return source.member < 0 || (source.member < static_cast<int>(members_.size()) &&
                                 source.index < members_[source.member].kernel->num_outputs());
  };
  for (const tf::NodeDef& node : graph.node()) {
    Member member;
    for (const std::string& text : node.input()) {
      ValueRef source;
      TF_RETURN_IF_ERROR(ParseValueRef(text, &source));
      if (!is_known(source)) {
        return absl::InvalidArgumentError(
            absl::StrCat("node ", node.name(), " reads ", text, ", which is not computed before it"));
      }
      CountUse(source);
      member.inputs.push_back(source);
    }
    std::shared_ptr<const tf::NodeProperties> props;
    TF_RETURN_IF_ERROR(tf::NodeProperties::CreateFromNodeDef(node, tf::OpRegistry::Global(), &props));
    const bool on_cpu = node.attr().count(attr::kOnCpu) != 0;
    tf::OpKernel* kernel = nullptr;
    TF_RETURN_IF_ERROR(tf::CreateOpKernel(tf::DeviceType(on_cpu ? tf::DEVICE_CPU : device->device_type()), device,
                                          device->GetAllocator(tf::AllocatorAttributes()),
                                          construction->function_library(), construction->resource_manager(), props,
                                          construction->graph_def_version(), &kernel));
    member.kernel.reset(kernel);
    if (kernel->AsAsync() != nullptr || kernel->num_inputs() != static_cast<int>(member.inputs.size())) {
      return absl::InvalidArgumentError(absl::StrCat("node ", node.name(), " cannot be part of a cluster"));
    }
    member.input_attrs = AttributesOf(kernel->input_memory_types());
    member.output_attrs = AttributesOf(kernel->output_memory_types());
    if (on_cpu) {
      for (auto* attributes : {&member.input_attrs, &member.output_attrs}) {
        for (tf::AllocatorAttributes& of_value : *attributes) of_value.set_on_host(true);
      }
    }
    member.constant = SmallConstant(node);
    member.first_value = static_cast<int>(uses_.size());
    uses_.resize(uses_.size() + kernel->num_outputs(), 0);
    members_.push_back(std::move(member));
  }
  results_ = std::move(results);
  for (const ValueRef& source : results_) {
    if (!is_known(source)) return absl::InvalidArgumentError(absl::StrCat("there is no value ", ToString(source)));
    CountUse(source);
  }
  return absl::OkStatus();
}

Members Members::Part(const std::vector<ValueRef>& results, const std::vector<int>& also,
                      const std::map<std::pair<int, int>, int>& given) const {
  std::vector<std::vector<ValueRef>> inputs(members_.size());
  for (size_t i = 0; i < members_.size(); ++i) inputs[i] = members_[i].inputs;
  for (const auto& [input, argument] : given) inputs[input.first][input.second] = {ValueRef::kArgument, argument};
  std::vector<bool> needed(members_.size(), false);
  for (const ValueRef& source : results) {
    if (source.member >= 0) needed[source.member] = true;
  }
  for (int member : also) needed[member] = true;
  for (size_t i = members_.size(); i-- > 0;) {
    if (!needed[i]) continue;
    for (const ValueRef& source : inputs[i]) {
      if (source.member >= 0) needed[source.member] = true;
    }
  }
  Members part;
  std::vector<int> number(members_.size(), -1);
  const auto add_use = [&](ValueRef source) {
    if (source.member >= 0) source.member = number[source.member];
    part.CountUse(source);
    return source;
  };
  for (size_t i = 0; i < members_.size(); ++i) {
    if (!needed[i]) continue;
    Member member = members_[i];
    for (size_t k = 0; k < inputs[i].size(); ++k) member.inputs[k] = add_use(inputs[i][k]);
    number[i] = static_cast<int>(part.members_.size());
    member.first_value = static_cast<int>(part.uses_.size());
    part.uses_.resize(part.uses_.size() + member.kernel->num_outputs(), 0);
    part.members_.push_back(std::move(member));
  }
  for (const ValueRef& source : results) part.results_.push_back(add_use(source));
  return part;
}

Members::Execution::Execution(const Members& members, tf::OpKernelContext* outer, Environment& environment,
                              const std::vector<int>& invariant_arguments)
    : members_(members),
      environment_(environment),
      values_(members.uses_.size()),
      uses_(members.uses_),
      all_argument_uses_(members.argument_uses_) {
  for (int argument : invariant_arguments) {
    if (argument < static_cast<int>(all_argument_uses_.size())) all_argument_uses_[argument] = INT_MAX;
  }
  argument_uses_ = all_argument_uses_;
  params_.step_id = outer->step_id();
  params_.device = environment_.device;
  params_.resource_manager = environment_.resources;
  params_.step_container = outer->step_container();
  params_.rendezvous = outer->rendezvous();
  params_.session_state = outer->session_state();
  params_.cancellation_manager = outer->cancellation_manager();
  params_.frame_iter = outer->frame_iter();
  params_.op_device_context = outer->op_device_context();
  params_.function_library = outer->function_library();
  params_.runner = outer->runner();
  params_.run_all_kernels_inline = outer->run_all_kernels_inline();
}

void Members::Execution::StartOver() {
  next_ = 0;
  for (tf::Tensor& value : values_) value = tf::Tensor();
  uses_ = members_.uses_;
  argument_uses_ = all_argument_uses_;
}

tf::Tensor Members::Execution::TakeValue(const ValueRef& source, bool keep) {
  const bool argument = source.member == ValueRef::kArgument;
  const int number = argument ? source.index : members_.NumberOf(source);
  tf::Tensor& value = argument ? environment_.arguments[number] : values_[number];
  int& uses = argument ? argument_uses_[number] : uses_[number];
  if (--uses > 0 || (argument && keep)) return value;
  return std::move(value);
}

absl::Status Members::Execution::RunMember(const Member& member, tf::Tensor* outputs) {
  params_.op_kernel = member.kernel.get();
  params_.output_attr_array = member.output_attrs.data();
  input_values_.clear();
  for (tf::Tensor& input : inputs_) input_values_.emplace_back(&input);
  params_.inputs = input_values_;
  params_.input_alloc_attrs = member.input_attrs;

  tf::OpKernelContext context(&params_);
  member.kernel->Compute(&context);
  if (!context.status().ok()) return tf::AttachDef(context.status(), member.kernel->def());
  for (int i = 0; i < context.num_outputs(); ++i) {
    const std::unique_ptr<tf::Tensor> value(context.release_output(i).tensor);
    if (value == nullptr) {
      return absl::InternalError(absl::StrCat("node ", member.kernel->name(), " has not set its output ", i));
    }
    outputs[i] = std::move(*value);
  }
  return absl::OkStatus();
}

absl::Status Members::Execution::RunUntil(int end, bool keep) {
  for (; next_ < end; ++next_) {
    const Member& member = members_.members_[next_];
    inputs_.clear();
    for (const ValueRef& source : member.inputs) inputs_.push_back(TakeValue(source, keep));
    if (current_observer != nullptr) current_observer->BeginMember(*member.kernel);
    tf::Tensor* const values = values_.data() + member.first_value;
    TF_RETURN_IF_ERROR(RunMember(member, values));
    for (int k = 0; k < member.kernel->num_outputs(); ++k) {
      if (current_observer != nullptr) current_observer->ShowValue(values[k]);
      if (uses_[member.first_value + k] == 0) values[k] = tf::Tensor();
    }
  }
  return absl::OkStatus();
}

absl::Status Members::RunAll(tf::OpKernelContext* outer, Environment& environment,
                             std::vector<tf::Tensor>* results) const {
  Execution run(*this, outer, environment);
  TF_RETURN_IF_ERROR(run.RunUntil(static_cast<int>(members_.size()), false));
  for (const ValueRef& source : results_) results->push_back(run.TakeValue(source));
  return absl::OkStatus();
}

}  // namespace xpu::cluster

#include "tensorflow_plugin/direct_call/call_plan.h"

#include <atomic>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/cancellation.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/profiler/lib/annotated_traceme.h"
#include "tensorflow_plugin/cluster/members.h"

namespace xpu::direct_call {
namespace {

namespace tf = tensorflow;

class CallRunner final : public DirectCall {
 public:
  // False if it cannot be.
  bool Make(const CallPlan& plan, const tf::ProcessFunctionLibraryRuntime& library) {
    num_values_ = plan.num_values;
    result_values_ = plan.result_values;
    for (const CallPlan::PlannedOp& planned : plan.steps) {
      BoundOp& step = steps_.emplace_back();
      step.library = library.GetFLR(planned.device);
      if (step.library == nullptr) return false;
      step.device = step.library->device();
      std::shared_ptr<const tf::NodeProperties> properties;
      tf::OpKernel* kernel = nullptr;
      if (!tf::NodeProperties::CreateFromNodeDef(planned.def, step.library->GetFunctionLibraryDefinition(), &properties)
               .ok() ||
          !step.library->CreateKernel(properties, &kernel).ok()) {
        return false;
      }
      step.kernel.reset(kernel);
      // An iterator's can do both, and need not another thread.
      if (kernel->AsAsync() != nullptr && planned.def.op().rfind("IteratorGetNext", 0) != 0) return false;
      if (kernel->num_inputs() != static_cast<int>(planned.inputs.size())) return false;
      const auto* info = step.device->tensorflow_accelerator_device_info();
      if (info != nullptr) step.context = info->default_context;
      step.inputs = planned.inputs;
      step.first_output = planned.first_output;
      step.input_attributes = cluster::AttributesOf(kernel->input_memory_types());
      step.output_attributes = cluster::AttributesOf(kernel->output_memory_types());
    }
    const auto place = [&library](const CallPlan::ValuePlacement& planned) {
      tf::FunctionLibraryRuntime* const there =
          planned.type == tf::DT_INVALID ? nullptr : library.GetFLR(planned.device);
      return Placement{planned.type, there == nullptr ? nullptr : there->device(), planned.in_host_memory};
    };
    for (const CallPlan::ValuePlacement& argument : plan.arguments) arguments_.push_back(place(argument));
    for (const CallPlan::ValuePlacement& result : plan.results) results_.push_back(place(result));
    for (const std::vector<Placement>* places : {&arguments_, &results_}) {
      for (const Placement& p : *places) {
        if (p.type != tf::DT_INVALID && p.device == nullptr) return false;
      }
    }
    return true;
  }

  const std::vector<Placement>& arguments() const override { return arguments_; }
  const std::vector<Placement>& results() const override { return results_; }

  absl::Status Run(const std::vector<tf::Tensor>& arguments, Runner* runner,
                   std::vector<tf::Tensor>* results) const override {
    // TensorFlow's own count from 1, or are random.
    static std::atomic<int64_t> num_calls{int64_t{1} << 62};
    const int64_t id = num_calls++;
    tf::CancellationManager cancellation;
    tf::ScopedStepContainer container(id, [this](const std::string& name) {
      for (const BoundOp& step : steps_) step.device->resource_manager()->Cleanup(name).IgnoreError();
    });
    // Those given may be more than the graph knows: of the last ones nothing may be read.
    const size_t num_arguments = arguments_.size();
    std::vector<tf::Tensor> values(num_values_ - num_arguments);  // of steps
    const auto value = [&](int number) -> const tf::Tensor& {
      const size_t n = number;
      return n < num_arguments ? arguments[n] : values[n - num_arguments];
    };
    for (const BoundOp& step : steps_) {
      tf::OpKernelContext::Params params;
      params.step_id = id;
      params.op_kernel = step.kernel.get();
      params.device = step.device;
      params.resource_manager = step.device->resource_manager();
      params.step_container = &container;
      params.cancellation_manager = &cancellation;
      params.op_device_context = step.context;
      params.function_library = step.library;
      params.runner = runner;
      params.output_attr_array = step.output_attributes.data();
      params.input_alloc_attrs = step.input_attributes;
      // Held once more, so that no kernel takes a value's memory for its result: others may read it after that.
      absl::InlinedVector<tf::Tensor, 8> held;
      absl::InlinedVector<tf::TensorValue, 8> inputs;
      held.reserve(step.inputs.size());
      inputs.reserve(step.inputs.size());
      for (int input : step.inputs) inputs.emplace_back(&held.emplace_back(value(input)));
      params.inputs = inputs;
      tf::OpKernelContext context(&params);
      {
        // As TensorFlow's executor does, for a profile's lines of the host.
        const tf::profiler::AnnotatedTraceMe trace([&] { return step.kernel->TraceString(context, /*verbose=*/false); },
                                                   step.kernel->IsExpensive() ? 1 : 2);
        step.device->Compute(step.kernel.get(), &context);
      }
      if (!context.status().ok()) return tf::AttachDef(context.status(), step.kernel->def());
      for (int i = 0; i < context.num_outputs(); ++i) {
        const std::unique_ptr<tf::Tensor> output(context.release_output(i).tensor);
        if (output == nullptr) {
          return absl::InternalError(absl::StrCat("node ", step.kernel->name(), " has not set its output ", i));
        }
        values[step.first_output - num_arguments + i] = std::move(*output);
      }
    }
    for (int number : result_values_) results->push_back(value(number));
    return absl::OkStatus();
  }

 private:
  struct BoundOp {
    std::unique_ptr<tf::OpKernel> kernel;
    tf::Device* device = nullptr;
    tf::DeviceContext* context = nullptr;  // null: the host's device has none
    tf::FunctionLibraryRuntime* library = nullptr;
    std::vector<int> inputs;
    int first_output = 0;
    std::vector<tf::AllocatorAttributes> input_attributes, output_attributes;
  };
  std::vector<Placement> arguments_, results_;
  std::vector<BoundOp> steps_;
  std::vector<int> result_values_;
  int num_values_ = 0;
};

}  // namespace

std::unique_ptr<DirectCall> MakeCall(const CallPlan& plan, const tf::ProcessFunctionLibraryRuntime& library) {
  auto row = std::make_unique<CallRunner>();
  if (!row->Make(plan, library)) return nullptr;
  return row;
}

}  // namespace xpu::direct_call

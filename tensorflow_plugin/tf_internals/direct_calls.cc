// Kernels are made by a function library, and run with a step of ours.
#include "tensorflow/c/kernels.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow_plugin/tf_internals/checks.h"
#include "tensorflow_plugin/tf_internals/probe.h"
#include "tensorflow_plugin/tf_internals/virtual_tables.h"

namespace xpu::tf_internals {

namespace tf = tensorflow;

void CheckDirectCalls(Check& check) {
  using Library = tf::FunctionLibraryRuntime;
  const VirtualTable table = FindTable("N10tensorflow26FunctionLibraryRuntimeImplE");
  if (!check.Is("whether TensorFlow has a FunctionLibraryRuntimeImpl", table != nullptr, true)) return;
  using Create = absl::Status (Library::*)(const std::shared_ptr<const tf::NodeProperties>&, tf::OpKernel**);
  using DeviceOf = tf::Device* (Library::*)();
  using Definitions = const tf::FunctionLibraryDefinition* (Library::*)() const;
  const auto starts = [&](int place, const std::string& name) { return NameAt(table, place).rfind(name, 0) == 0; };
  const std::string of_class = "N10tensorflow26FunctionLibraryRuntimeImpl";
  if (!check.Is("whether CreateKernel is in its place",
                starts(PlaceOf(static_cast<Create>(&Library::CreateKernel)), "_Z" + of_class + "12CreateKernelE"),
                true) ||
      !check.Is("whether device is in its place",
                starts(PlaceOf(static_cast<DeviceOf>(&Library::device)), "_Z" + of_class + "6deviceE"), true) ||
      !check.Is("whether GetFunctionLibraryDefinition is in its place",
                starts(PlaceOf(static_cast<Definitions>(&Library::GetFunctionLibraryDefinition)),
                       "_ZNK10tensorflow26FunctionLibraryRuntimeImpl28GetFunctionLibraryDefinitionE"),
                true)) {
    return;
  }
  Probe probe;
  std::string why;
  tf::NodeDef node = NodeOf("Shape");
  tf::AddNodeAttr("T", tf::DT_FLOAT, &node);
  tf::AddNodeAttr("out_type", tf::DT_INT32, &node);
  const tf::Tensor given(tf::DT_FLOAT, tf::TensorShape({2, 3}));
  probe.Run(node, {given}, &why, [&](tf::OpKernelContext& context) {
    auto* const c = reinterpret_cast<TF_OpKernelContext*>(&context);
    if (!check.Is("the step that the C API sees", TF_StepId(c), Probe::kStep) ||
        !check.Is("the step of a context", context.step_id(), Probe::kStep) ||
        !check.Is("the resources of a step", context.step_container(), &probe.of_step()) ||
        !check.Is("the resources of a device", context.resource_manager(), &probe.resources())) {
      return;
    }
    check.Is("the cancellation of a step", context.cancellation_manager(), &probe.cancellation());
  });
  check.Works(why);
}

}  // namespace xpu::tf_internals

// Kernels of TensorFlow's run on a device of ours and find variables of ours, as in a capture.
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/resource_handle.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow_plugin/tf_internals/checks.h"
#include "tensorflow_plugin/tf_internals/probe.h"

namespace xpu::tf_internals {

namespace tf = tensorflow;

void CheckClusters(Check& check) {
  Probe probe;
  std::string why;
  auto* const variable = new tf::Var(tf::DT_FLOAT);  // the manager's
  *variable->tensor() = tf::Tensor(tf::DT_FLOAT, tf::TensorShape({2, 3}));
  variable->is_initialized = true;
  const tf::Tensor value = *variable->tensor();
  if (!check.Is("whether resources take a variable", probe.resources().Create("xpu_probe", "0", variable).ok(), true)) {
    return;
  }
  tf::Tensor argument(tf::DT_RESOURCE, tf::TensorShape({}));
  auto& handle = *static_cast<tf::ResourceHandle*>(argument.data());
  const tf::ResourceHandle of_tensorflow =
      tf::MakeResourceHandle("xpu_probe", "0", probe.device(), tf::TypeIndex::Make<tf::Var>());
  handle.set_device(of_tensorflow.device());
  handle.set_container("xpu_probe");
  handle.set_name("0");
  handle.set_hash_code(of_tensorflow.hash_code());
  handle.set_maybe_type_name(of_tensorflow.maybe_type_name());
  tf::NodeDef read = NodeOf("ReadVariableOp");
  tf::AddNodeAttr("dtype", tf::DT_FLOAT, &read);
  const Probe::Outputs outputs = probe.Run(read, {argument}, &why);
  if (!check.Works(why) || !check.Is("the number of values", outputs.size(), 1) ||
      !check.Is("the place of the value", static_cast<const void*>(outputs[0].data()),
                static_cast<const void*>(value.data()))) {
    return;
  }
  const int before = probe.device().allocators_asked_for();
  tf::NodeDef shape = NodeOf("Shape");
  tf::AddNodeAttr("T", tf::DT_FLOAT, &shape);
  tf::AddNodeAttr("out_type", tf::DT_INT32, &shape);
  probe.Run(shape, {value}, &why);
  // Once to make the kernel, by us; then by the kernel.
  if (!check.Works(why)) return;
  check.Is("whether that device is asked for memory", probe.device().allocators_asked_for() > before + 1, true);
}

}  // namespace xpu::tf_internals

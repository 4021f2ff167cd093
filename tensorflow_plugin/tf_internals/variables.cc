// Variables are Vars with a lock and a tensor.
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow_plugin/tf_internals/checks.h"
#include "tensorflow_plugin/tf_internals/probe.h"

namespace xpu::tf_internals {

namespace tf = tensorflow;

void CheckVariables(Check& check) {
  Probe probe;
  std::string why;
  tf::NodeDef make = NodeOf("VarHandleOp");
  tf::AddNodeAttr("dtype", tf::DT_FLOAT, &make);
  tf::AddNodeAttr("shape", tf::TensorShape({2, 3}).AsProto(), &make);
  tf::AddNodeAttr("container", "", &make);
  tf::AddNodeAttr("shared_name", "xpu_probe", &make);
  const Probe::Outputs handle = probe.Run(make, {}, &why);
  if (!check.Works(why) || !check.Is("the number of its handles", handle.size(), 1)) {
    return;
  }
  tf::Tensor value(tf::DT_FLOAT, tf::TensorShape({2, 3}));
  value.flat<float>().setConstant(7);
  if (!check.Is("whether a tensor is shared with nobody", value.RefCountIsOne(), true)) return;
  const tf::Tensor sharing = value;
  if (!check.Is("whether a shared tensor is shared with nobody", value.RefCountIsOne(), false)) return;
  tf::NodeDef assign = NodeOf("AssignVariableOp");
  tf::AddNodeAttr("dtype", tf::DT_FLOAT, &assign);
  tf::AddNodeAttr("validate_shape", false, &assign);
  probe.Run(assign, {handle[0], value}, &why, [&](tf::OpKernelContext& context) {
    tf::core::RefCountPtr<tf::Var> variable;
    const absl::Status found = tf::LookupResource(&context, tf::HandleFromInput(&context, 0), &variable);
    if (!check.Is("whether a variable is found", found.ok(), true)) return;
    const bool locked = variable->mu()->try_lock();
    if (locked) variable->mu()->unlock();
    if (!check.Is("whether a variable that nobody uses can be locked", locked, true) ||
        !check.Is("whether a variable with a value is initialized", bool{variable->is_initialized}, true) ||
        !check.Is("whether it is copied when it is read", variable->copy_on_read_mode.load(), false) ||
        !check.Is("its type", static_cast<int>(variable->tensor()->dtype()), static_cast<int>(tf::DT_FLOAT)) ||
        !check.Is("the number of its elements", variable->tensor()->NumElements(), 6)) {
      return;
    }
    check.Is("its last element", static_cast<const float*>(variable->tensor()->data())[5], 7);
  });
  check.Works(why);
}

}  // namespace xpu::tf_internals

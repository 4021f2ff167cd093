// TensorArray, a resource of a step.
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/kernels/tensor_array.h"
#include "tensorflow_plugin/tf_internals/checks.h"
#include "tensorflow_plugin/tf_internals/probe.h"

namespace xpu::tf_internals {

namespace tf = tensorflow;

void CheckTensorArrays(Check& check) {
  Probe probe;
  std::string why;
  tf::NodeDef node = NodeOf("TensorArrayV3");
  tf::AddNodeAttr("dtype", tf::DT_FLOAT, &node);
  tf::AddNodeAttr("element_shape", tf::PartialTensorShape().AsProto(), &node);
  tf::AddNodeAttr("dynamic_size", true, &node);
  tf::AddNodeAttr("clear_after_read", true, &node);
  tf::AddNodeAttr("identical_element_shapes", false, &node);
  tf::AddNodeAttr("tensor_array_name", "xpu_probe", &node);
  probe.Run(node, {Scalar(4)}, &why, [&](tf::OpKernelContext& context) {
    const tf::Tensor* const handle = context.mutable_output(0);
    if (!check.Is("whether a TensorArray has a handle", handle != nullptr && handle->dtype() == tf::DT_RESOURCE,
                  true)) {
      return;
    }
    tf::core::RefCountPtr<tf::TensorArray> array;
    const absl::Status found =
        tf::LookupResource(&context, *static_cast<const tf::ResourceHandle*>(handle->data()), &array);
    if (!check.Is("whether a TensorArray is found", found.ok(), true)) return;
    int32_t size = 0;
    if (!check.Is("the type of its elements", static_cast<int>(array->ElemType()), static_cast<int>(tf::DT_FLOAT)) ||
        !check.Is("whether it says its size", array->Size(&size).ok(), true) || !check.Is("its size", size, 4)) {
      return;
    }
    check.Is("whether it may grow", array->HasDynamicSize(), true);
  });
  check.Works(why);
}

}  // namespace xpu::tf_internals

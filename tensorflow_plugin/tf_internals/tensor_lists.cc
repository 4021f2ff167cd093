// TensorList, which a Variant holds.
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/variant.h"
#include "tensorflow/core/kernels/tensor_list.h"
#include "tensorflow_plugin/tf_internals/checks.h"
#include "tensorflow_plugin/tf_internals/probe.h"

namespace xpu::tf_internals {

namespace tf = tensorflow;

void CheckTensorLists(Check& check) {
  Probe probe;
  std::string why;
  tf::NodeDef node = NodeOf("TensorListReserve");
  tf::AddNodeAttr("element_dtype", tf::DT_FLOAT, &node);
  tf::AddNodeAttr("shape_type", tf::DT_INT32, &node);
  const Probe::Outputs outputs = probe.Run(node, {Scalar(-1), Scalar(3)}, &why);
  if (!check.Works(why) || !check.Is("the number of results", outputs.size(), 1) ||
      !check.Is("the type of a list", static_cast<int>(outputs[0].dtype()), static_cast<int>(tf::DT_VARIANT))) {
    return;
  }
  const tf::Variant& variant = *static_cast<const tf::Variant*>(outputs[0].data());
  const auto* const list = variant.get<tf::TensorList>();
  if (!check.Is("whether a list is a TensorList", list != nullptr, true)) return;
  if (!check.Is("the type of its elements", static_cast<int>(list->element_dtype), static_cast<int>(tf::DT_FLOAT)) ||
      !check.Is("whether their number of dimensions is unknown", list->element_shape.unknown_rank(), true) ||
      !check.Is("the number of elements", list->tensors().size(), 3)) {
    return;
  }
  check.Is("the type of an element that is not set", static_cast<int>(list->tensors()[2].dtype()),
           static_cast<int>(tf::DT_INVALID));
}

}  // namespace xpu::tf_internals

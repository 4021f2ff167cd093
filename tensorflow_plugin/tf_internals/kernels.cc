// TF_OpKernelContext is TensorFlow's OpKernelContext, a kernel may be made for any device, and types have their
// numbers.
#include "tensorflow/c/kernels.h"

#include <cstdint>
#include <memory>

#include "tensorflow/c/tf_status.h"
#include "tensorflow/c/tf_tensor.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow_plugin/tf_internals/checks.h"
#include "tensorflow_plugin/tf_internals/probe.h"
#include "tensorflow_plugin/tf_internals/tf_types.h"

// A TensorFlow without it computes float32 exactly.
namespace tsl {
bool tensor_float_32_execution_enabled() __attribute__((weak));
}

namespace xpu::tf_internals {
namespace {

namespace tf = tensorflow;

// The C API and the class say the same of a context.
void Compare(tf::OpKernelContext& context, const tf::Tensor& given, Check& check) {
  auto* const c = reinterpret_cast<TF_OpKernelContext*>(&context);
  const std::unique_ptr<TF_Status, decltype(&TF_DeleteStatus)> status(TF_NewStatus(), &TF_DeleteStatus);
  if (!check.Is("the number of a context's arguments", context.num_inputs(), TF_NumInputs(c)) ||
      !check.Is("the number of its results", context.num_outputs(), TF_NumOutputs(c)) ||
      !check.Is("the type of its result", static_cast<int>(context.expected_output_dtype(0)),
                static_cast<int>(TF_ExpectedOutputDataType(c, 0))) ||
      !check.Is("the number of its arguments, of which there is one,", context.num_inputs(), 1)) {
    return;
  }
  TF_Tensor* argument = nullptr;
  TF_GetInput(c, 0, &argument, status.get());
  const std::unique_ptr<TF_Tensor, decltype(&TF_DeleteTensor)> of_c_api(argument, &TF_DeleteTensor);
  if (!check.Is("the C API's answer for an argument", TF_GetCode(status.get()), TF_OK)) return;
  const tf::Tensor& seen = context.input(0);
  if (!check.Is("the type of an argument", static_cast<int>(seen.dtype()), static_cast<int>(TF_TensorType(argument))) ||
      !check.Is("the number of its dimensions", seen.shape().dims(), TF_NumDims(argument)) ||
      !check.Is("its first dimension", seen.shape().dim_size(0), TF_Dim(argument, 0)) ||
      !check.Is("its second dimension", seen.shape().dim_size(1), TF_Dim(argument, 1)) ||
      !check.Is("its number of elements", seen.NumElements(), TF_TensorElementCount(argument)) ||
      !check.Is("the place of its elements", static_cast<const void*>(seen.data()),
                static_cast<const void*>(TF_TensorData(argument))) ||
      !check.Is("the place of the elements that were given", static_cast<const void*>(seen.data()),
                static_cast<const void*>(given.data()))) {
    return;
  }
  const TF_StringView name = TF_GetOpKernelName(c);
  check.Is("the name of its kernel", context.op_kernel().name(), std::string(name.data, name.len));
}

void CheckTypes(Check& check) {
  for (int i = 1; i < kNumDTypes; ++i) {
    const auto type = static_cast<DType>(i);
    const auto number = static_cast<TF_DataType>(ToTf(type));
    if (!check.Is("the size of a type", TF_DataTypeSize(number), SizeOf(type)) ||
        !check.Is("the name of a type", tf::DataTypeString(static_cast<tf::DataType>(number)), Name(type))) {
      return;
    }
  }
}

}  // namespace

void CheckKernels(Check& check) {
  CheckTypes(check);
  if (!check.why().empty()) return;
  Probe probe;
  const tf::Tensor given(tf::DT_FLOAT, tf::TensorShape({2, 3}));
  tf::NodeDef node = NodeOf("Shape");
  tf::AddNodeAttr("T", tf::DT_FLOAT, &node);
  tf::AddNodeAttr("out_type", tf::DT_INT32, &node);
  std::string why;
  const Probe::Outputs outputs =
      probe.Run(node, {given}, &why, [&](tf::OpKernelContext& context) { Compare(context, given, check); });
  if (!check.Works(why)) return;
  if (!check.Is("the number of outputs", outputs.size(), 1) ||
      !check.Is("the number of their elements", outputs[0].NumElements(), 2)) {
    return;
  }
  const auto* const shape = static_cast<const int32_t*>(outputs[0].data());
  if (check.Is("the first element of a result", shape[0], 2)) check.Is("the second element of a result", shape[1], 3);
}

bool (*Tf32Query())() { return tsl::tensor_float_32_execution_enabled; }

void CheckTf32(Check& check) {
  check.Is("whether tsl::tensor_float_32_execution_enabled is there", tsl::tensor_float_32_execution_enabled != nullptr,
           true);
}

}  // namespace xpu::tf_internals

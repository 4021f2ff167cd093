// TensorArrays of TensorFlow 1. TensorFlow has the ops that make them, count their elements or close them for every
// device. Those that move or add elements are in framework/tensor_arrays.cc.
#include "tensorflow_plugin/framework/tensor_arrays.h"

#include <string>

#include "tensorflow_plugin/framework/cpu_kernel.h"
#include "tensorflow_plugin/ops/ops.h"

namespace xpu {

void RegisterTensorArrays(Registry& registry) {
  registry.Adopt(
      {"TensorArrayClose", "TensorArrayCloseV2", "TensorArrayCloseV3", "TensorArrayGrad", "TensorArrayGradV2",
       "TensorArrayGradV3", "TensorArrayGradWithShape", "TensorArraySize", "TensorArraySizeV2", "TensorArraySizeV3"},
      OpTrait::kCannotWait | OpTrait::kUsesTensorArray);

  struct TensorArrayOp {
    const char* name;
    OnTensorArray what;
    const char* type;  // the type attribute
    std::vector<const char*> host;
    std::vector<const char*> versions;
  };
  const std::vector<const char*> three = {"", "V2", "V3"}, one = {""};
  const TensorArrayOp ops[] = {
      {"Write", OnTensorArray::kWrite, "T", {"handle", "index"}, three},
      {"Read", OnTensorArray::kRead, "dtype", {"handle", "index"}, three},
      {"Gather", OnTensorArray::kGather, "dtype", {"handle", "indices"}, three},
      {"Pack", OnTensorArray::kPack, "dtype", {"handle"}, one},
      {"Concat", OnTensorArray::kConcat, "dtype", {"handle", "lengths"}, three},
      {"Scatter", OnTensorArray::kScatter, "T", {"handle", "indices"}, three},
      {"Unpack", OnTensorArray::kUnpack, "T", {"handle"}, one},
      {"Split", OnTensorArray::kSplit, "T", {"handle", "lengths"}, three},
  };
  // Values that are written twice are added up. An array is where its ops can be.
  const auto sums = [](const char* type) {
    return [type](Needs& n) {
      if (IsDefined(Opcode::kAdd, n.type(type))) needs::Op(Opcode::kAdd, type)(n);
    };
  };
  for (const TensorArrayOp& op : ops) {
    const char* type = op.type;
    for (const char* version : op.versions) {
      registry.Op((std::string("TensorArray") + op.name + version).c_str())
          .Types(type, kAllTypes)
          .Host(op.host)
          .Traits(OpTrait::kUsesTensorArray)
          .Requires(sums(type))
          .Kernel<TensorArrayKernel>(op.what);
    }
  }

  // The CPU's kernel writes the flow, which is never read, once for each array.
  for (const char* version : {"", "V2"}) {
    registry.Op((std::string("TensorArray") + version).c_str())
        .Types("dtype", kAllTypes)
        .Host({"size", "handle"})
        .Traits(OpTrait::kUsesTensorArray)
        .Requires(sums("dtype"))
        .Kernel<CpuKernel>();
  }
  registry.Op("TensorArrayV3")
      .Types("dtype", kAllTypes)
      .Host({"size", "handle", "flow"})
      .Traits(OpTrait::kUsesTensorArray)
      .Requires(sums("dtype"))
      .Kernel<CpuKernel>();
}

}  // namespace xpu

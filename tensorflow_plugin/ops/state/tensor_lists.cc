// TensorFlow lacks some ops of TensorLists on devices that loops and their gradients need. Sums and zeros of them, and
// lists of masks, it has for the CPU alone. Lists of counters are in host memory, and it would copy them to the device
// and back.
#include "tensorflow_plugin/framework/tensor_lists.h"

#include "tensorflow_plugin/framework/cpu_kernel.h"
#include "tensorflow_plugin/framework/kernel_labels.h"
#include "tensorflow_plugin/ops/math/elementwise.h"
#include "tensorflow_plugin/ops/ops.h"

namespace xpu {
namespace {

class AddTensorListsKernel : public OpKernel {
 public:
  explicit AddTensorListsKernel(Construction&) {}

  Status Compute(Context& ctx) override {
    return AddTensorLists(ctx, [&](const Tensor& a, const Tensor& b, const Tensor& sum) {
      ElementwiseDesc desc;
      desc.program = SingleOpProgram(Opcode::kAdd, a.dtype());
      SetFlat(a.num_elements(), 2, &desc);
      return ctx.Launch(desc, {a.data(), b.data()}, {sum.mutable_data()});
    });
  }
};

class ZeroTensorListKernel : public OpKernel {
 public:
  explicit ZeroTensorListKernel(Construction&) {}
  Status Compute(Context& ctx) override { return ZeroTensorList(ctx); }
};

}  // namespace

void RegisterTensorLists(Registry& registry) {
  registry.Op("AddN").Traits(OpTrait::kAddsTensorLists).Label(labels::kTensorLists).Kernel<AddTensorListsKernel>();
  registry.Op("ZerosLike").Traits(OpTrait::kAddsTensorLists).Label(labels::kTensorLists).Kernel<ZeroTensorListKernel>();
  // Lists of types for which TensorFlow has no kernels but the CPU's, which are the same: masks, above all. They copy
  // and fill elements on the device's stream.
  const TypeList missing = {DType::kBool,   DType::kInt8,   DType::kInt16,     DType::kUint8,     DType::kUint16,
                            DType::kUint32, DType::kUint64, DType::kComplex64, DType::kComplex128};
  struct TensorListOp {
    const char* name;
    std::vector<const char*> host;
  };
  for (const TensorListOp& op : {TensorListOp{"TensorListConcat", {"lengths"}},
                                 {"TensorListConcatV2", {"element_shape", "leading_dims", "lengths"}},
                                 {"TensorListFromTensor", {"element_shape"}},
                                 {"TensorListGather", {"indices", "element_shape"}},
                                 {"TensorListGetItem", {"index", "element_shape"}},
                                 {"TensorListPopBack", {"element_shape"}},
                                 {"TensorListScatter", {"indices", "element_shape"}},
                                 {"TensorListScatterIntoExistingList", {"indices"}},
                                 {"TensorListScatterV2", {"indices", "element_shape", "num_elements"}},
                                 {"TensorListSetItem", {"index"}},
                                 {"TensorListSplit", {"element_shape", "lengths"}},
                                 {"TensorListStack", {"element_shape"}}}) {
    registry.Op(op.name).Types("element_dtype", missing).Host(op.host).Kernel<CpuKernel>();
  }

  registry.Op("TensorListPushBack").Host({"tensor"}).Label(labels::kOnHost).Kernel<CpuKernel>();
  registry.Op("TensorListPopBack").Host({"element_shape", "tensor"}).Label(labels::kOnHost).Kernel<CpuKernel>();
}

}  // namespace xpu

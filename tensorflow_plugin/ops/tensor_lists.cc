// What TensorFlow lacks of TensorLists on devices, and gradients of loops need: sums and zeros of them, which it has
// for the CPU alone, and lists of counters, which are in host memory and which it would copy to the device and back.
#include "tensorflow_plugin/framework/tensor_lists.h"

#include "tensorflow_plugin/framework/cpu_kernel.h"
#include "tensorflow_plugin/framework/labels.h"
#include "tensorflow_plugin/ops/elementwise.h"
#include "tensorflow_plugin/ops/ops.h"

namespace xpu {
namespace {

class AddTensorListsKernel : public OpKernel {
 public:
  explicit AddTensorListsKernel(Construction&) {}

  Status Compute(Context& ctx) override {
    return AddTensorLists(ctx, [&](const Tensor& a, const Tensor& b, const Tensor& sum) {
      ElementwiseDesc desc;
      desc.program = SingleOpProgram(EOp::kAdd, a.dtype());
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
  registry.Op("AddN").Label(labels::kTensorLists).Kernel<AddTensorListsKernel>();
  registry.Op("ZerosLike").Label(labels::kTensorLists).Kernel<ZeroTensorListKernel>();
  registry.Op("TensorListPushBack").Host({"tensor"}).Label(labels::kOnHost).Kernel<CpuKernel>();
  registry.Op("TensorListPopBack").Host({"element_shape", "tensor"}).Label(labels::kOnHost).Kernel<CpuKernel>();
}

}  // namespace xpu

// Ops that TensorFlow's optimizers put on a device though their work is the host's: the CPU's kernels, with all
// arguments in host memory. And those that only keep tensors in containers: the CPU's kernels as they are.
// And the op that waits for a device.
#include "tensorflow_plugin/framework/cpu_kernel.h"
#include "tensorflow_plugin/ops/ops.h"

namespace xpu {
namespace {

// tf.test.experimental.sync_devices(). TensorFlow's own for devices that it does not know waits for nothing.
class SyncDeviceKernel : public OpKernel {
 public:
  explicit SyncDeviceKernel(Construction&) {}
  Status Compute(Context& ctx) override { return ctx.Finish(); }
};

}  // namespace

void RegisterHostOps(Registry& registry) {
  registry.Op("SyncDevice").Traits(OpTrait::kWaitsForDevice).Kernel<SyncDeviceKernel>();

  // The remapper makes it of AsString and StringToHashBucketFast, on the device of what AsString reads.
  // The CPU's kernel refuses unsigned types, and the remapper leaves those alone.
  registry.Op("_TensorToHashBucketFast")
      .Types("T", {DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64})
      .Host({"input", "output"})
      .OnHost()
      .Kernel<CpuKernel>();

  // TensorFlow has these for every device, but not for these types, of which AddN is here. The memory optimizer makes a
  // temporary variable of an AddN. A temporary variable of int32 is in device memory: nobody but AssignAdd reads it.
  const TypeList missing = {DType::kInt8, DType::kInt16, DType::kUint8, DType::kUint16, DType::kUint64};
  for (const char* op : {"Variable", "VariableV2"}) registry.Op(op).Types("dtype", missing).Kernel<CpuKernel>();
  registry.Op("IsVariableInitialized").Types("dtype", missing).Host({"is_initialized"}).Kernel<CpuKernel>();
  registry.Op("TemporaryVariable").Types("dtype", Union(missing, {DType::kInt32})).Kernel<CpuKernel>();
  registry.Op("DestroyTemporaryVariable").Types("T", Union(missing, {DType::kInt32})).Kernel<CpuKernel>();
}

}  // namespace xpu

// TensorFlow's kernels for the CPU, run with this device's arguments.
#ifndef TENSORFLOW_PLUGIN_FRAMEWORK_CPU_KERNEL_H_
#define TENSORFLOW_PLUGIN_FRAMEWORK_CPU_KERNEL_H_

#include <memory>

#include "tensorflow_plugin/framework/kernel.h"

namespace xpu {

// Serves ops that hand buffers around without looking into them. Registered with all arguments in host memory, it also
// serves ops that no device computes, such as those on strings.
class CpuKernel : public OpKernel {
 public:
  explicit CpuKernel(Construction& c);
  ~CpuKernel() override;
  Status Compute(Context& ctx) override;

 protected:
  struct Native;
  std::unique_ptr<Native> native_;
};

// Serves ops that change the variable of input 0, and that no device computes. TensorFlow cannot place such an op on
// the CPU, because the variable is here. The kernel gets a copy of the variable in host memory; then the copy's value
// and the results are brought to the device. The op is registered with all inputs in host memory and waits for the
// device.
class CpuKernelOnCopy : public CpuKernel {
 public:
  using CpuKernel::CpuKernel;
  Status Compute(Context& ctx) override;
};

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_FRAMEWORK_CPU_KERNEL_H_

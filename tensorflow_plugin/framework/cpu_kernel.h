// CpuKernel: TensorFlow's kernel for the CPU, run with this device's arguments. It serves ops that hand buffers around
// without looking into them. Registered with all arguments in host memory, it also serves ops that no device computes,
// such as those on strings.
#ifndef TENSORFLOW_PLUGIN_FRAMEWORK_CPU_KERNEL_H_
#define TENSORFLOW_PLUGIN_FRAMEWORK_CPU_KERNEL_H_

#include <memory>

#include "tensorflow_plugin/framework/kernel.h"

namespace xpu {

class CpuKernel : public OpKernel {
 public:
  explicit CpuKernel(Construction& c);
  ~CpuKernel() override;
  Status Compute(Context& ctx) override;

 private:
  struct Native;
  std::unique_ptr<Native> native_;
};

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_FRAMEWORK_CPU_KERNEL_H_

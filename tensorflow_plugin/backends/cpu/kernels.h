// The host backend's kernels: each primitive's Run is in the file of its name, what it costs in cost.cc.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_KERNELS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_KERNELS_H_

#include "tensorflow_plugin/backends/host_runtime/kernels.h"

namespace xpu::cpu {

class CpuKernels final : public host_runtime::KernelSet {
 public:
  const char* instruction_set() const override;
  int64_t PackedFilterBytes(const ConvolutionDesc& desc) const override;
  bool BytesPay(const ConvolutionDesc& desc) const override;
  EpilogueWay WayOfEpilogue(const MatMulDesc& desc) const override;
  EpilogueWay WayOfEpilogue(const WeightMatMulDesc& desc) const override;
  EpilogueWay WayOfEpilogue(const ConvolutionDesc& desc) const override;
  int64_t CacheBytes() const override;
#define XPU_KERNEL(name)                                     \
  bool Supports(const name##Desc& desc) const override;      \
  int64_t EstimateNs(const name##Desc& desc) const override; \
  Status Run(const name##Desc& desc, const Args& args, const host_runtime::ThreadTeam& team) const override;
  XPU_PRIMITIVES(XPU_KERNEL)
#undef XPU_KERNEL
};

// The one instance: kernels have no state.
const CpuKernels& Kernels();

}  // namespace xpu::cpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_KERNELS_H_

// The reference backend's kernels: each primitive's Run is in the file of its name, or in plain/.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_REFERENCE_KERNELS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_REFERENCE_KERNELS_H_

#include "tensorflow_plugin/backends/host_runtime/kernels.h"
#include "tensorflow_plugin/backends/plain/loops.h"

namespace xpu::reference {

class ReferenceKernels final : public host_runtime::KernelSet {
 public:
#define XPU_KERNEL(name)                                     \
  bool Supports(const name##Desc& desc) const override;      \
  int64_t EstimateNs(const name##Desc& desc) const override; \
  Status Run(const name##Desc& desc, const Args& args, const host_runtime::ThreadTeam& team) const override;
  XPU_PRIMITIVES(XPU_KERNEL)
#undef XPU_KERNEL

 private:
  Status RunEpilogue(const plain::EpilogueCommand& epilogue, const host_runtime::ThreadTeam& team) const;
};

// The one instance: kernels have no state.
const ReferenceKernels& Kernels();

}  // namespace xpu::reference

#endif  // TENSORFLOW_PLUGIN_BACKENDS_REFERENCE_KERNELS_H_

// The primitives that there are kernels for: two or three functions each, in a file of its own.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_GPU_PRIMITIVES_PRIMITIVES_H_
#define TENSORFLOW_PLUGIN_BACKENDS_GPU_PRIMITIVES_PRIMITIVES_H_

#include <cstdint>

#include "tensorflow_plugin/backends/gpu/call.h"
#include "tensorflow_plugin/backends/gpu/codegen/sources.h"
#include "tensorflow_plugin/primitives/backend.h"

namespace xpu::gpu {

// Scratch memory that a command needs; none unless a primitive's own function says otherwise.
template <typename Desc>
int64_t WorkspaceBytes(const Desc&) {
  return 0;
}

// Supports: whether kernels can be made for the descriptor, whose extents may be open (kAny).
// Enqueue: as Device::Enqueue (primitives/backend.h).
// There are no kernels of a primitive that has no line below.
template <typename Desc>
bool Supports(const Abilities&, const Desc&) {
  return false;
}
template <typename Desc>
Status Enqueue(Machine&, Queue&, const Desc& desc, const Args&, const Footprint&) {
  return errors::Unimplemented(Name(desc), " has no kernel");
}
#define XPU_HAS_KERNELS(name)                                        \
  bool Supports(const Abilities& abilities, const name##Desc& desc); \
  Status Enqueue(Machine& machine, Queue& queue, const name##Desc& desc, const Args& args, const Footprint& footprint);
XPU_HAS_KERNELS(Elementwise)
XPU_HAS_KERNELS(Reduce)
XPU_HAS_KERNELS(MatMul)
XPU_HAS_KERNELS(Convolution)
XPU_HAS_KERNELS(Pool)
XPU_HAS_KERNELS(Normalize)
XPU_HAS_KERNELS(Softmax)
XPU_HAS_KERNELS(CopyStrided)
XPU_HAS_KERNELS(Gather)
XPU_HAS_KERNELS(Scatter)
XPU_HAS_KERNELS(Random)
XPU_HAS_KERNELS(Compact)
XPU_HAS_KERNELS(Scan)
XPU_HAS_KERNELS(Sort)
XPU_HAS_KERNELS(Search)
XPU_HAS_KERNELS(Unique)
XPU_HAS_KERNELS(Sample)
XPU_HAS_KERNELS(Resample)
XPU_HAS_KERNELS(Fft)
XPU_HAS_KERNELS(Factorize)
XPU_HAS_KERNELS(Solve)
XPU_HAS_KERNELS(Suppress)
#undef XPU_HAS_KERNELS

// Each descriptor's WorkspaceBytes that is not 0 is declared here, too.
int64_t WorkspaceBytes(const ConvolutionDesc& desc);
int64_t WorkspaceBytes(const PoolDesc& desc);
int64_t WorkspaceBytes(const NormalizeDesc& desc);
int64_t WorkspaceBytes(const SoftmaxDesc& desc);
int64_t WorkspaceBytes(const ScatterDesc& desc);
int64_t WorkspaceBytes(const CompactDesc& desc);
int64_t WorkspaceBytes(const ScanDesc& desc);
int64_t WorkspaceBytes(const SortDesc& desc);
int64_t WorkspaceBytes(const UniqueDesc& desc);
int64_t WorkspaceBytes(const SampleDesc& desc);
int64_t WorkspaceBytes(const FftDesc& desc);
int64_t WorkspaceBytes(const FactorizeDesc& desc);
int64_t WorkspaceBytes(const SolveDesc& desc);

// Most look at the descriptor alone. Behind their declarations, as templates call what they have seen.
template <typename Desc>
int64_t WorkspaceBytes(const Abilities&, const Desc& desc) {
  return WorkspaceBytes(desc);
}
int64_t WorkspaceBytes(const Abilities& abilities, const ReduceDesc& desc);
int64_t WorkspaceBytes(const Abilities& abilities, const MatMulDesc& desc);

}  // namespace xpu::gpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_GPU_PRIMITIVES_PRIMITIVES_H_

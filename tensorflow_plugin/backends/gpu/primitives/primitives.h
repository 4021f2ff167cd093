// The primitives that there are kernels for: three functions each, in a file of its own.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_GPU_PRIMITIVES_PRIMITIVES_H_
#define TENSORFLOW_PLUGIN_BACKENDS_GPU_PRIMITIVES_PRIMITIVES_H_

#include <cstdint>

#include "tensorflow_plugin/backends/gpu/call.h"
#include "tensorflow_plugin/backends/gpu/codegen/sources.h"
#include "tensorflow_plugin/primitives/backend.h"

namespace xpu::gpu {

// V(name): a new primitive is a name here and a file that defines its functions.
#define XPU_GPU_PRIMITIVES(V) \
  V(Elementwise)              \
  V(Reduce)                   \
  V(MatMul)                   \
  V(Convolution)              \
  V(Pool)                     \
  V(Normalize)                \
  V(Softmax)                  \
  V(CopyStrided)              \
  V(Gather)                   \
  V(Scatter)                  \
  V(Random)                   \
  V(Compact)                  \
  V(Scan)                     \
  V(Sort)                     \
  V(Search)                   \
  V(Unique)                   \
  V(Sample)                   \
  V(Resample)                 \
  V(Fft)                      \
  V(Factorize)                \
  V(Solve)                    \
  V(Suppress)

// Scratch memory that a command needs; none unless a primitive's own function says otherwise.
template <typename Desc>
int64_t WorkspaceBytes(const Desc&) {
  return 0;
}

// Supports: whether kernels can be made for the descriptor, whose extents may be open (kAny).
// Enqueue: as Device::Enqueue (primitives/backend.h).
#define XPU_GPU_PRIMITIVE(name)                                      \
  bool Supports(const Abilities& abilities, const name##Desc& desc); \
  Status Enqueue(Machine& machine, Queue& queue, const name##Desc& desc, const Args& args, const Footprint& footprint);
XPU_GPU_PRIMITIVES(XPU_GPU_PRIMITIVE)
#undef XPU_GPU_PRIMITIVE

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

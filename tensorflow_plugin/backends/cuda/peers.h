// Copies from one GPU's memory to another's. The driver takes them through the host's memory, unless each of the two
// contexts was told that it may access the other's.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CUDA_PEERS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CUDA_PEERS_H_

#include "tensorflow_plugin/backends/cuda/driver.h"

namespace xpu::cuda {

// A device of the process's has this context, which becomes the calling thread's. Several devices may share a GPU and
// its context. Where the GPUs have a way to one another, copies between them take it from now on.
void AddPeer(DeviceId gpu, ContextHandle context);
// One such device goes.
void RemovePeer(DeviceId gpu);

}  // namespace xpu::cuda

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CUDA_PEERS_H_

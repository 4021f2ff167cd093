// Kernels that run before and behind commands of a library.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CUDA_LIBRARY_COMMANDS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CUDA_LIBRARY_COMMANDS_H_

#include "tensorflow_plugin/primitives/descriptors.h"
#include "tensorflow_plugin/primitives/status.h"

namespace xpu::cuda {

class Machine;
class Queue;

// Enqueues a copy on the device, by which an operand gets the order that a library needs.
Status EnqueueCopy(Machine& machine, Queue& queue, const CopyStridedDesc& copy, const void* from, void* to);

}  // namespace xpu::cuda

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CUDA_LIBRARY_COMMANDS_H_

// The ops that copy a value between device memory and host memory in each iteration of a loop.
#ifndef TENSORFLOW_PLUGIN_CLUSTER_TRANSFER_OP_H_
#define TENSORFLOW_PLUGIN_CLUSTER_TRANSFER_OP_H_

#include <string>

namespace xpu::cluster {

// Both have one input and one output, of the type `dtype`. The first waits for the commands that compute its input.
inline constexpr char kToHostOp[] = "_XpuToHost";
inline constexpr char kToDeviceOp[] = "_XpuToDevice";

// Registers the ops, and their kernels for devices of this type. Returns what went wrong, or nothing.
std::string RegisterTransferOps(const std::string& device_type);

}  // namespace xpu::cluster

#endif  // TENSORFLOW_PLUGIN_CLUSTER_TRANSFER_OP_H_

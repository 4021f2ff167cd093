// The op that reads a variable in host memory, for the condition of a loop that is one op.
#ifndef TENSORFLOW_PLUGIN_CLUSTER_HOST_VARIABLE_OP_H_
#define TENSORFLOW_PLUGIN_CLUSTER_HOST_VARIABLE_OP_H_

#include <string>

namespace xpu::cluster {

// Gives the same as ReadVariableOp, of type `dtype`, in host memory. The variable is the CPU's or the device's. A
// cluster knows the values that its members read so: they are part of its signature.
inline constexpr char kHostVariableOp[] = "_XpuReadHostVariable";

// Registers the op, and its kernel for devices of this type. Returns what went wrong, or nothing.
std::string RegisterHostVariableOp(const std::string& device_type);

}  // namespace xpu::cluster

#endif  // TENSORFLOW_PLUGIN_CLUSTER_HOST_VARIABLE_OP_H_

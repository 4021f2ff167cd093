// The op that reads a variable of the CPU in a loop that is one op.
#ifndef TENSORFLOW_PLUGIN_CLUSTER_HOST_VARIABLE_OP_H_
#define TENSORFLOW_PLUGIN_CLUSTER_HOST_VARIABLE_OP_H_

#include <string>

namespace xpu::cluster {

// Gives the same as ReadVariableOp on the CPU. The argument is a variable; the argument and the value, of type `dtype`,
// are in host memory.
inline constexpr char kHostVariableOp[] = "_XpuReadHostVariable";

// Registers the op, and its kernel for devices of this type. Returns what went wrong, or nothing.
std::string RegisterHostVariableOp(const std::string& device_type);

}  // namespace xpu::cluster

#endif  // TENSORFLOW_PLUGIN_CLUSTER_HOST_VARIABLE_OP_H_

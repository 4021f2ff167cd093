// The op that stands for a whole loop in a graph: what TensorFlow's executor would run as Enter, Merge, Switch and
// NextIteration, iteration by iteration.
#ifndef TENSORFLOW_PLUGIN_CLUSTER_LOOP_OP_H_
#define TENSORFLOW_PLUGIN_CLUSTER_LOOP_OP_H_

#include <string>

namespace xpu::cluster {

inline constexpr char kLoopOp[] = "_XpuLoop";

// Its arguments and results are given as a cluster's are (cluster_op.h), and so are its members, but for:
//   results:   values of the members, the condition first, then the next values of the variables
//   variables: which arguments change from iteration to iteration
//   exits:     what it gives: numbers of variables, those in host memory first
//   no_member: it asks, while it runs, what a capture would have to know, or copies values between host and device. It
//              is no cluster's member, and runs its members one by one
//   condition_on_device: the condition is in device memory
//   condition_members: so many members, the first ones, run before the condition is known
namespace attr {
inline constexpr char kVariables[] = "variables";
inline constexpr char kExits[] = "exits";
inline constexpr char kNoMember[] = "no_member";
inline constexpr char kConditionOnDevice[] = "condition_on_device";
inline constexpr char kConditionMembers[] = "condition_members";
}  // namespace attr

// Registers the op, and its kernel for devices of this type. Returns what went wrong, or nothing.
std::string RegisterLoopOp(const std::string& device_type);

// How many iterations loops have run since the process began that no cluster had captured: in blocks (loop_blocks.h)
// and one by one. Also the number of blocks' lists. JSON.
std::string DescribeLoops();

}  // namespace xpu::cluster

#endif  // TENSORFLOW_PLUGIN_CLUSTER_LOOP_OP_H_

// The op that stands for a cluster of ops in a graph.
#ifndef TENSORFLOW_PLUGIN_CLUSTER_CLUSTER_OP_H_
#define TENSORFLOW_PLUGIN_CLUSTER_CLUSTER_OP_H_

#include <string>
#include <vector>

namespace xpu::cluster {

inline constexpr char kOp[] = "_XpuCluster";

// Its attributes.
//   host, uploaded, device:       types of the arguments in host memory, of those there that members read on the
//                                 device, and of those in device memory
//   resources:                    how many variables follow as arguments
//   host_results:                 types of its values in host memory
//   fetched:                      types of its values on the device that are read in host memory
//   device_results:               types of its other values
//   members:                      a GraphDef, serialized: nodes in an order that may run; their inputs are written as
//                                 members.h says, arguments being numbered through
//   results:                      what it gives: values as in a node's inputs, in the order above
// No other cluster of the process has its name (graph/nodes.h, AddOp). Kernels of one name share their members and
// captures: TensorFlow's executor has one, direct_call/ another.
namespace attr {
inline constexpr char kHost[] = "host_types";
inline constexpr char kUploaded[] = "uploaded_types";
inline constexpr char kDevice[] = "device_types";
inline constexpr char kResources[] = "num_resources";
inline constexpr char kHostResults[] = "host_result_types";
inline constexpr char kFetched[] = "fetched_types";
inline constexpr char kDeviceResults[] = "device_result_types";
inline constexpr char kMembers[] = "members";
inline constexpr char kResults[] = "results";
// And one of a member: no update of a variable comes before it in the cluster, by no way.
inline constexpr char kFollowsNoUpdate[] = "_xpu_follows_no_update";
// And another one, of a member of a loop: TensorFlow's kernel for the CPU runs it, with all its values in host memory.
inline constexpr char kOnCpu[] = "_xpu_on_cpu";
}  // namespace attr

// In a capture, the containers of the variables' stand-ins: by number, those on the device, and those of known values
// in host memory (host_variable_op.h).
inline constexpr char kCaptureContainer[] = "xpu_capture";
inline constexpr char kKnownValuesContainer[] = "xpu_capture_known_values";

// From now on captured lists go without these passes (commands::PassNames).
void LeaveOutPasses(std::vector<std::string> names);

// Registers the op, and its kernel for devices of this type. Returns what went wrong, or nothing.
std::string RegisterClusterOp(const std::string& device_type);

}  // namespace xpu::cluster

#endif  // TENSORFLOW_PLUGIN_CLUSTER_CLUSTER_OP_H_

// Which nodes may be part of a cluster, by the traits of their ops, their types and their kernels.
#ifndef TENSORFLOW_PLUGIN_GRAPH_NODE_TRAITS_H_
#define TENSORFLOW_PLUGIN_GRAPH_NODE_TRAITS_H_

#include <string>

#include "tensorflow/core/framework/memory_types.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow_plugin/framework/op_traits.h"

namespace xpu::graph {

enum class Role : uint8_t {
  kOutside,   // never a member
  kCompute,   // enqueues commands, or may
  kFree,      // costs nothing: passes values on, or says shapes; no reason to make a cluster
  kConstant,  // small: each cluster that reads it gets one of its own
  kHost,      // integers in host memory from integers in host memory
};

// An attribute of nodes that are in no cluster: the host counts along with them (whole_loops.h).
inline constexpr char kCountedOnHost[] = "_xpu_counted_on_host";

// An attribute of ops that copy a value to the device which a capture of the loop around them knows (transfers.h).
inline constexpr char kCopiesCount[] = "_xpu_copies_count";

// The traits of a node of a device of this type, by its op, types and kernel.
struct NodeTraits {
  OpTraits op;
  Role role = Role::kOutside;
  bool shape_only = false;  // gives shapes of its inputs, whatever is in them
  tensorflow::MemoryTypeVector inputs, outputs;
};
NodeTraits NodeTraitsOf(const tensorflow::Node& node, const std::string& device_type);

// True if a node copies values between host and device: an op for that (transfers.h), or a cluster.
bool IsTransfer(const tensorflow::Node& node);

// True if a loop with this node is no cluster's member. The node is a transfer of something that no capture knows, or
// is itself a loop that is no member (cluster/loop_op.h).
bool CannotBeMember(const tensorflow::Node& node);

// Empty if a node that is placed on a device of this type may be in a loop that becomes one op. Otherwise the reason
// why it may not, for people: words that follow the node's name.
std::string WhyNotInLoop(const tensorflow::Node& node, const std::string& device_type);
// True if a loop that becomes one op may have values of this type.
bool CanBeInLoop(tensorflow::DataType dtype);

}  // namespace xpu::graph

#endif  // TENSORFLOW_PLUGIN_GRAPH_NODE_TRAITS_H_

// The op that stands for an assertion whose texts are known.
#ifndef TENSORFLOW_PLUGIN_CLUSTER_ASSERT_OP_H_
#define TENSORFLOW_PLUGIN_CLUSTER_ASSERT_OP_H_

#include <string>

namespace xpu::cluster {

// Fails as TensorFlow's Assert does if its first argument is false. All arguments are in host memory.
inline constexpr char kAssertOp[] = "_XpuAssert";

// Its attributes.
//   value_types:  types of the values that the error names, its arguments but the first
//   texts:        what the error says before the first value, between them, and behind the last
//   summarize:    of so many elements of each value
namespace attr {
inline constexpr char kValueTypes[] = "value_types";
inline constexpr char kTexts[] = "texts";
inline constexpr char kSummarize[] = "summarize";
}  // namespace attr

// Registers the op, and its kernel for devices of this type. Returns what went wrong, or nothing.
std::string RegisterAssertOp(const std::string& device_type);

}  // namespace xpu::cluster

#endif  // TENSORFLOW_PLUGIN_CLUSTER_ASSERT_OP_H_

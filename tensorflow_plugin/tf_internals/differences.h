// The differences between the TensorFlow versions that there are cores for (third_party/tensorflows.bzl), as far as
// this project's C++ meets them. Include this file before TensorFlow's headers for stream executors.
#ifndef TENSORFLOW_PLUGIN_TF_INTERNALS_DIFFERENCES_H_
#define TENSORFLOW_PLUGIN_TF_INTERNALS_DIFFERENCES_H_

#if XPU_TENSORFLOW < 2020
// 2.19's stream_executor.h includes a header that needs LLVM's, which the wheel lacks, for a parameter of one function
// about GPUs.
#define XLA_STREAM_EXECUTOR_GPU_TMA_METADATA_H_
namespace stream_executor::gpu {
class TmaDescriptor {};
}  // namespace stream_executor::gpu
#endif

#if XPU_TENSORFLOW >= 2021
#include "xla/stream_executor/device_address.h"
#else
#include "xla/stream_executor/device_memory.h"
#endif

namespace xpu {

#if XPU_TENSORFLOW >= 2021
using DeviceAddress = stream_executor::DeviceAddressBase;
#else
using DeviceAddress = stream_executor::DeviceMemoryBase;
#endif

// Types of fewer than eight bits that not every version has: whether this one does.
#define XPU_HAS_INT2 (XPU_TENSORFLOW >= 2020)
#define XPU_HAS_FLOAT4 (XPU_TENSORFLOW >= 2021)

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_TF_INTERNALS_DIFFERENCES_H_

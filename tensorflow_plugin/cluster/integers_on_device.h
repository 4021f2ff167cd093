// Kernels for 32-bit integers that stay in device memory, of ops that are TensorFlow's own and have them in host
// memory.
#ifndef TENSORFLOW_PLUGIN_CLUSTER_INTEGERS_ON_DEVICE_H_
#define TENSORFLOW_PLUGIN_CLUSTER_INTEGERS_ON_DEVICE_H_

#include <string>

namespace xpu::cluster {

// The label of a kernel of Const, as in framework/kernel_labels.h. A capture includes the constant's value.
inline constexpr char kConstantOnDevice[] = "XpuConstantOnDevice";

// Registers that kernel, and kernels of Reshape, ExpandDims and Squeeze with the label labels::kOnDevice.
void RegisterIntegersOnDevice(const std::string& device_type);

}  // namespace xpu::cluster

#endif  // TENSORFLOW_PLUGIN_CLUSTER_INTEGERS_ON_DEVICE_H_

// Labels of kernels that no program asks for by name: the graph passes give them to nodes (TensorFlow's attribute
// _kernel) that they fit.
#ifndef TENSORFLOW_PLUGIN_FRAMEWORK_KERNEL_LABELS_H_
#define TENSORFLOW_PLUGIN_FRAMEWORK_KERNEL_LABELS_H_

namespace xpu::labels {

// The name of the class of kernels that the registry registers, which TensorFlow tells of each kernel.
inline constexpr char kKernelClass[] = "XpuKernel";

// TensorFlow's attribute of a node that chooses among kernels by their label.
inline constexpr char kAttribute[] = "_kernel";

// An attribute of a convolution that was made of another one and of ops that move pixels (graph/restore_dilations.h).
// By spatial axis: the padding of one of these, and of which number the padded extent has to be a multiple.
inline constexpr char kMultiplesOfPadded[] = "_xpu_multiples_of_padded";

// The op with arguments in host memory that are else in device memory.
inline constexpr char kOnHost[] = "XpuOnHost";
// The other way around.
inline constexpr char kOnDevice[] = "XpuOnDevice";
// Slices that read where they begin in device memory.
inline constexpr char kBeginOnDevice[] = "XpuBeginOnDevice";
// AddN and ZerosLike of variants that are TensorLists.
inline constexpr char kTensorLists[] = "XpuTensorLists";

}  // namespace xpu::labels

#endif  // TENSORFLOW_PLUGIN_FRAMEWORK_KERNEL_LABELS_H_

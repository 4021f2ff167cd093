// Convolutions of any geometry, for what oneDNN does not do well: windows laid out as rows of a matrix, and Gemm.
// Depthwise convolutions with channels last have loops over the channels.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_WINDOWS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_WINDOWS_H_

#include "tensorflow_plugin/backends/host_runtime/thread_team.h"
#include "tensorflow_plugin/primitives/backend.h"
#include "tensorflow_plugin/primitives/descriptors.h"

namespace xpu::cpu {

// T: float or double, whatever `d` says.
template <typename T>
void RunWindows(const ConvolutionDesc& d, const Args& args, const host_runtime::ThreadTeam& team);

}  // namespace xpu::cpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_WINDOWS_H_

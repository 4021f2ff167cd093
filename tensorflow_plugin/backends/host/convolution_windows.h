// Convolutions of any geometry, for what oneDNN does not do well: windows laid out as rows of a matrix, and Gemm.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_HOST_CONVOLUTION_WINDOWS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_HOST_CONVOLUTION_WINDOWS_H_

#include "tensorflow_plugin/backends/runtime/thread_team.h"
#include "tensorflow_plugin/primitives/backend.h"
#include "tensorflow_plugin/primitives/descriptors.h"

namespace xpu::host {

// T: float or double, whatever `d` says.
template <typename T>
void RunWindows(const ConvolutionDesc& d, const Args& args, const runtime::ThreadTeam& team);

}  // namespace xpu::host

#endif  // TENSORFLOW_PLUGIN_BACKENDS_HOST_CONVOLUTION_WINDOWS_H_

// Depthwise convolutions with channels last: each channel has a filter of its own. Vectors hold channels. A row of the
// filter and the sums of a few output pixels are in registers, and the epilogue is computed there.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_DEPTHWISE_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_DEPTHWISE_H_

#include <optional>

#include "tensorflow_plugin/backends/cpu/elementwise/epilogue.h"
#include "tensorflow_plugin/backends/cpu/machine.h"
#include "tensorflow_plugin/backends/host_runtime/thread_team.h"
#include "tensorflow_plugin/primitives/backend.h"
#include "tensorflow_plugin/primitives/descriptors.h"

namespace xpu::cpu {

// True if RunDepthwise computes `d`.
bool IsDepthwise(const ConvolutionDesc& d, const Machine& machine);

// An epilogue that has been run is reset. Throws std::bad_alloc.
void RunDepthwise(const ConvolutionDesc& d, const Args& args, const host_runtime::ThreadTeam& team,
                  std::optional<FusedEpilogue>* epilogue);

}  // namespace xpu::cpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_DEPTHWISE_H_

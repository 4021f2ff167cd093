// Convolutions of images of a few channels, such as the first of a network. They are products: each pixel of the output
// is a row. The kernel of matmul/panels.h reads the rows from the image. Where padding is met, it reads them from a
// copy of some rows of the image with zeros around.
//
// oneDNN has half of this speed there, and an epilogue then reads and writes all results again.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_FEW_CHANNELS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_FEW_CHANNELS_H_

#include <optional>

#include "tensorflow_plugin/backends/cpu/elementwise/epilogue.h"
#include "tensorflow_plugin/backends/cpu/machine.h"
#include "tensorflow_plugin/backends/host_runtime/thread_team.h"
#include "tensorflow_plugin/primitives/backend.h"
#include "tensorflow_plugin/primitives/descriptors.h"

namespace xpu::cpu {

// True if it is such a convolution.
bool HasFewChannels(const ConvolutionDesc& d, const Machine& machine);

// An epilogue that has been run is reset. Throws std::bad_alloc.
void RunFewChannels(const ConvolutionDesc& d, const Args& args, const host_runtime::ThreadTeam& team,
                    std::optional<FusedEpilogue>* epilogue);

}  // namespace xpu::cpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_FEW_CHANNELS_H_

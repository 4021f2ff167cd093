// Convolutions with filters of 3x3 by Winograd's algorithm F(4x4, 3x3): Lavin and Gray, "Fast Algorithms for
// Convolutional Neural Networks", 2016.
//
// Four by four outputs take 36 multiplications instead of 144. Six by six inputs and the filter are transformed to 36
// points each, multiplied point by point, and transformed back. The sum over channels makes the multiplications matrix
// products. The gradient of the filter is the same with the transposes of the transformations.
//
// Rounding loses six times as much as in a sum of products in order, in the mean. That is 8e-7 of the outputs' standard
// deviation for normal numbers and 64 channels, instead of 1.6e-7. The loss is relative to the largest numbers of the
// six by six inputs, not to those that an output depends on.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_WINOGRAD_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_WINOGRAD_H_

#include <optional>

#include "tensorflow_plugin/backends/cpu/elementwise/epilogue.h"
#include "tensorflow_plugin/backends/cpu/machine.h"
#include "tensorflow_plugin/backends/host_runtime/thread_team.h"
#include "tensorflow_plugin/primitives/backend.h"
#include "tensorflow_plugin/primitives/descriptors.h"

namespace xpu::cpu {

// True if RunWinograd computes `d`, and in less time than multiplying takes.
bool WinogradPays(const ConvolutionDesc& d, const Machine& machine);

// The points of a forward convolution's filter, which its third input is if it has packed_filter_bytes.
int64_t WinogradFilterBytes(const ConvolutionDesc& d);
void WinogradFilter(const ConvolutionDesc& d, const float* filter, float* points, const host_runtime::ThreadTeam& team);

// False if there is an infinity or a NaN among the results. It may have spread beyond the outputs that depend on the
// input in which it was, or come from a transformation. An epilogue that has been run is reset; not where it is to
// be run again, on other results. Throws std::bad_alloc.
bool RunWinograd(const ConvolutionDesc& d, const Args& args, const host_runtime::ThreadTeam& team,
                 std::optional<FusedEpilogue>* epilogue);

}  // namespace xpu::cpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_WINOGRAD_H_

// Convolutions as a product of rows and the filter as a matrix. The filter lies in panels, which were made once. Sums
// and epilogue are in registers (matmul/panels.h). With a filter of one pixel the rows are the channels of all pixels.
// Others lay out the window of each pixel of the output as a row (convolution/products.h).
//
// A product that finds its second matrix as it is copies it to such panels in each call. That takes a third of the time
// of a product of some 50 rows.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_POINTWISE_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_POINTWISE_H_

#include <optional>

#include "tensorflow_plugin/backends/cpu/elementwise/epilogue.h"
#include "tensorflow_plugin/backends/cpu/machine.h"
#include "tensorflow_plugin/backends/host_runtime/thread_team.h"
#include "tensorflow_plugin/primitives/backend.h"
#include "tensorflow_plugin/primitives/descriptors.h"

namespace xpu::cpu {

// True if `d` is such a convolution.
bool IsPointwise(const ConvolutionDesc& d);
// True if it gains by a packed filter.
bool PointwisePays(const ConvolutionDesc& d, const Machine& machine);
// True if the windows of another convolution are worth laying out for a packed filter.
bool WindowsPay(const ConvolutionDesc& d, const Machine& machine);

// True if there are too few pixels for parts that an epilogue follows.
bool HasFewRows(const ConvolutionDesc& d);

// Direction::kPackFilter.
int64_t PointwiseFilterBytes(const ConvolutionDesc& d);
void PackPointwiseFilter(const ConvolutionDesc& d, const float* filter, float* packed);

// With a packed filter. An epilogue that has been run is reset.
void RunPointwise(const ConvolutionDesc& d, const Args& args, const host_runtime::ThreadTeam& team,
                  std::optional<FusedEpilogue>* epilogue);
void RunWindowsInPanels(const ConvolutionDesc& d, const Args& args, const host_runtime::ThreadTeam& team,
                        std::optional<FusedEpilogue>* epilogue);

}  // namespace xpu::cpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_POINTWISE_H_

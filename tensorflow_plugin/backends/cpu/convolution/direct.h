// Convolutions that are products: each pixel of the result is a row. The kernel of matmul/panels.h reads the rows where
// they lie in the image. Where padding is met, it reads them from a copy of some rows of the image with zeros around.
//
// A data gradient with strides is several convolutions: pixels of the result that are a stride apart meet the same
// taps. A layer called transposed convolution computes such a gradient.
//
// oneDNN has half of this speed with few channels. It shares one image by OpenMP's threads, which all have to arrive at
// the end of each convolution. Where filters and images are larger it multiplies faster.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_DIRECT_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_DIRECT_H_

#include <optional>

#include "tensorflow_plugin/backends/cpu/elementwise/epilogue.h"
#include "tensorflow_plugin/backends/cpu/machine.h"
#include "tensorflow_plugin/backends/host_runtime/thread_team.h"
#include "tensorflow_plugin/primitives/backend.h"
#include "tensorflow_plugin/primitives/descriptors.h"

namespace xpu::cpu {

// True if this is the best way: with a packed filter, or with one so small that it is packed in each call.
bool DirectPays(const ConvolutionDesc& d, const Machine& machine);

// Direction::kPackFilter for a convolution in another direction.
int64_t DirectFilterBytes(const ConvolutionDesc& d);
void PackDirectFilter(const ConvolutionDesc& d, const float* filter, float* packed);

// With a packed filter, if there is one. An epilogue that has been run is reset. Throws std::bad_alloc.
void RunDirect(const ConvolutionDesc& d, const Args& args, const host_runtime::ThreadTeam& team,
               std::optional<FusedEpilogue>* epilogue);

}  // namespace xpu::cpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_DIRECT_H_

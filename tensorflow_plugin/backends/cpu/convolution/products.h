// Convolutions with large filters over few pixels, and such filters' gradients. Each is one product of the windows,
// laid out as rows, and the filter or the output's gradient.
//
// oneDNN lays a filter out anew in each call, which takes as long as the convolution itself if there are few pixels to
// convolve. A product reads the filter as it is, once. (Gradients of the input gain nothing: their windows would have
// to be added up.)
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_PRODUCTS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_PRODUCTS_H_

#include "tensorflow_plugin/backends/cpu/scratch.h"
#include "tensorflow_plugin/backends/host_runtime/thread_team.h"
#include "tensorflow_plugin/primitives/backend.h"
#include "tensorflow_plugin/primitives/descriptors.h"

namespace xpu::cpu {

// True if it is of that kind.
bool ProductPays(const ConvolutionDesc& d);

// The windows of a forward convolution as rows of a matrix in `frame`'s memory. Each pixel of the output has a row: the
// input's channels at each tap.
const char* LayOutWindows(const ConvolutionDesc& d, const void* x, const host_runtime::ThreadTeam& team,
                          ScratchFrame* frame);

Status RunProduct(const ConvolutionDesc& d, const Args& args, const host_runtime::ThreadTeam& team);

}  // namespace xpu::cpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_PRODUCTS_H_

// Convolutions of bytes, whose results are sums in int32: oneDNN's, where the processor adds up products of bytes
// (AVX-512 VNNI), else plain loops.
//
// A convolution is divided into parts. A part is some rows of the output. Where the filter is large, it is some output
// channels, too. Its sums by oneDNN lie in memory of the thread, which is in its cache. The epilogue stores what
// becomes of them, which may be bytes. Zeros are nothing that oneDNN knows. The sums of the filter's elements are kept
// beside the packed filter, and their products with the zero of x are taken from the sums.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_BYTES_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_BYTES_H_

#include <cstdint>

#include "tensorflow_plugin/backends/host_runtime/thread_team.h"
#include "tensorflow_plugin/primitives/backend.h"
#include "tensorflow_plugin/primitives/descriptors.h"

namespace xpu::cpu {

// True if oneDNN has a fast form.
bool HasBytes(const ConvolutionDesc& d);
// 0 if it has not.
int64_t BytesFilterBytes(const ConvolutionDesc& d);
// Direction::kPackFilter.
Status PackBytesFilter(const ConvolutionDesc& d, const void* filter, void* packed);

// With its epilogue.
Status RunBytes(const ConvolutionDesc& d, const Args& args, const host_runtime::ThreadTeam& team);

}  // namespace xpu::cpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_BYTES_H_

// Convolutions of bytes, whose results are sums in int32. They are computed block by block, in one of three ways
// (byte_sums.h), or by plain loops where none is fast. The epilogue stores what becomes of a block's sums, which may be
// bytes.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_BYTES_BYTES_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_BYTES_BYTES_H_

#include <cstdint>

#include "tensorflow_plugin/backends/host_runtime/thread_team.h"
#include "tensorflow_plugin/primitives/backend.h"
#include "tensorflow_plugin/primitives/descriptors.h"

namespace xpu::cpu {

// True if there is a fast form.
bool HasBytes(const ConvolutionDesc& d);
// 0 if there is none.
int64_t BytesFilterBytes(const ConvolutionDesc& d);
// Direction::kPackFilter.
Status PackBytesFilter(const ConvolutionDesc& d, const void* filter, void* packed);

// With its epilogue.
Status RunBytes(const ConvolutionDesc& d, const Args& args, const host_runtime::ThreadTeam& team);

}  // namespace xpu::cpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_BYTES_BYTES_H_

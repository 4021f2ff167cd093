// Ways to compute the sums of a convolution of bytes.
//
// A result is the sum of (x - zx) * (w - zw), with the zero points zx and zw. The ways below compute the sum of
// (x - zx) * w. Where a filter's zero point is not 0, bytes.cc then takes zw times the sum of (x - zx) from it. Two of
// the ways sum x * w, and add -zx times the sum of w (shifted_sums.h).
//
// - QuadSums: by dot products of quads, four bytes each (byte_products.h). Rows of the product are windows of x.
// - DepthwiseQuadSums: the same where each channel is a group. The four bytes are a channel's in four rows of x.
// - WordSums: x86 processors add up products of 16-bit integers in pairs. Elements become such integers less the zero
//   point. That is exact, and padding is 0. Convolutions qualify that have no groups, or one channel in each.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_BYTE_SUMS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_BYTE_SUMS_H_

#include <cstdint>
#include <memory>

#include "tensorflow_plugin/backends/host_runtime/thread_team.h"
#include "tensorflow_plugin/primitives/backend.h"
#include "tensorflow_plugin/primitives/descriptors.h"

namespace xpu::cpu {

// Sums of some pixels and output channels, in rows of `ld`, in memory of the thread.
struct SumsBlock {
  int32_t* sums;
  int64_t ld;
  const int32_t* shift;   // to be added, by column; null: nothing
  int64_t pixel, pixels;  // of the results, from the first one on
  int64_t first, count;   // output channels
};
using TakeSums = host_runtime::FunctionRef<void(const SumsBlock&)>;

class ByteSums {
 public:
  virtual ~ByteSums() = default;

  // The filter as Run reads it.
  virtual int64_t PackedBytes() const = 0;
  virtual void Pack(const int8_t* filter, void* packed) const = 0;

  // False if this way cannot use the zero point of x.
  virtual bool Accepts(int32_t zero) const = 0;

  // Calls `take` with all sums of x less its zero point and of the filter as it is, block by block, on the team's
  // threads.
  virtual void Run(const Args& args, const void* packed, const host_runtime::ThreadTeam& team, TakeSums take) const = 0;
};

// Null if this way does not support the convolution. The object refers to the descriptor, which must outlive it.
std::unique_ptr<ByteSums> QuadSums(const ConvolutionDesc& d);
std::unique_ptr<ByteSums> DepthwiseQuadSums(const ConvolutionDesc& d);
std::unique_ptr<ByteSums> WordSums(const ConvolutionDesc& d);

}  // namespace xpu::cpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_BYTE_SUMS_H_

// Ways to compute the sums of a convolution of bytes.
//
// A result is the sum of (x - zx) * (w - zw), with the zero points zx and zw. The ways below compute the sum of
// (x - zx) * w. Where a filter's zero point is not 0, bytes.cc then takes zw times the sum of (x - zx) from it. Two of
// the ways sum x * w, and compensate for zx afterwards (compensated_sums.h).
//
// - QuadSums: by dot products of quads, four bytes each (byte_products.h). Rows of the product are windows of x.
// - DepthwiseQuadSums: the same where each channel is a group. The four bytes are a channel's in four rows of x.
// - WordSums: x86 processors add up products of 16-bit integers in pairs. Elements become such integers less the zero
//   point. That is exact, and padding is 0. Convolutions qualify that have no groups, or one channel in each.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_BYTES_BYTE_SUMS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_BYTES_BYTE_SUMS_H_

#include <cstdint>
#include <memory>

#include "tensorflow_plugin/backends/cpu/elementwise/quantized_chain.h"
#include "tensorflow_plugin/backends/host_runtime/thread_team.h"
#include "tensorflow_plugin/primitives/backend.h"
#include "tensorflow_plugin/primitives/descriptors.h"

namespace xpu::cpu {

// Sums at a time that stay in a core's own cache, and the nanoseconds of one's epilogue.
inline constexpr int64_t kMostSums = 1 << 15;
inline constexpr double kSumEpilogueNs = 0.3;

// Sums of some pixels and output channels, in rows of `ld`, in memory of the thread.
struct SumsBlock {
  int32_t* sums;
  int64_t ld;
  const int32_t* compensation;  // to be added, by column; null: nothing
  int64_t pixel, pixels;        // of the results, from the first one on
  int64_t first, count;         // output channels
};

// Finishes sums and stores the results.
struct SumsEpilogue {
  host_runtime::FunctionRef<void(const SumsBlock&)> take;
  // If `take` does nothing but to apply this chain, a way may do so itself, to sums in registers. Otherwise null.
  const QuantizedChain* chain;
};

// Finishes sums in registers, in rows of some columns.
struct ByteEpilogue {
  const QuantizedChain* chain;
  const int32_t* compensation;  // by column from `col` on; null: none
  int64_t ld, offset, col;      // of the results: from row to row, the element of the first one, and its column

  ByteEpilogue At(int64_t row, int64_t column) const {
    return {chain, FromColumn(compensation, column), ld, offset + row * ld + column, col + column};
  }
};

class ByteSums {
 public:
  virtual ~ByteSums() = default;

  // The filter as Run reads it.
  virtual int64_t PackedBytes() const = 0;
  virtual void Pack(const int8_t* filter, void* packed) const = 0;

  // False if this way cannot use the zero point of x.
  virtual bool Accepts(int32_t zero_point) const = 0;

  // Computes all sums of x less its zero point and of the filter as it is. The epilogue takes them block by block, on
  // the team's threads.
  virtual void Run(const Args& args, const void* packed, const host_runtime::ThreadTeam& team,
                   const SumsEpilogue& epilogue) const = 0;
};

// Null if this way does not support the convolution. The object refers to the descriptor, which must outlive it.
std::unique_ptr<ByteSums> QuadSums(const ConvolutionDesc& d);
std::unique_ptr<ByteSums> DepthwiseQuadSums(const ConvolutionDesc& d);
std::unique_ptr<ByteSums> WordSums(const ConvolutionDesc& d);

}  // namespace xpu::cpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_BYTES_BYTE_SUMS_H_

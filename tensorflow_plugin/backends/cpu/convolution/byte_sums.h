// Ways to compute the sums of a convolution of bytes, part by part (byte_parts.h).
//
// - OnednnSums: oneDNN's, where the processor adds up products of bytes (AVX-512 VNNI). Zeros are nothing that oneDNN
//   knows. The sums of the filter's elements are kept beside the packed filter.
// - WordSums: products of 16-bit integers, which every processor adds up in pairs. Elements become such integers less
//   the zero of x. That is exact, and padding is 0. For convolutions without groups, or with one channel in each, on
//   x86.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_BYTE_SUMS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_BYTE_SUMS_H_

#include <cstdint>
#include <memory>

#include "tensorflow_plugin/backends/cpu/convolution/byte_parts.h"
#include "tensorflow_plugin/primitives/backend.h"
#include "tensorflow_plugin/primitives/status.h"

namespace xpu::cpu {

class ByteSums {
 public:
  virtual ~ByteSums() = default;

  // The filter as Multiply reads it.
  virtual int64_t PackedBytes() const = 0;
  virtual Status Pack(const int8_t* filter, void* packed) const = 0;

  // The sums of a part, of x as it is or less its zero, and of the filter as it is.
  virtual Status Multiply(const BytePart& part, const Args& args, const void* packed, int32_t* sums) const = 0;

  // The sums over the filter's input channels, by cell of the filter and output channel; null if Multiply takes the
  // zero from x.
  virtual const int32_t* FilterSums(const void* packed) const = 0;
};

// Null if this way has no fast form of the convolution. The parts stay in use.
std::unique_ptr<ByteSums> OnednnSums(const ByteParts& parts);
std::unique_ptr<ByteSums> WordSums(const ByteParts& parts);

}  // namespace xpu::cpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_BYTE_SUMS_H_

// Ways to compute the sums of a convolution of bytes, part by part (byte_parts.h).
//
// - OnednnSums: oneDNN computes them where the processor adds up products of bytes (AVX-512 VNNI). It knows no zeros.
//   So the sums of the filter's elements are kept beside the packed filter.
// - WordSums: x86 processors add up products of 16-bit integers in pairs. Elements become such integers less the zero
//   of x. That is exact, and padding is 0. Convolutions qualify that have no groups, or one channel in each.
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
  virtual const int32_t* FilterSums(const void*) const { return nullptr; }
};

// Null if this way has no fast form of the convolution. The parts stay in use.
std::unique_ptr<ByteSums> OnednnSums(const ByteParts& parts);
std::unique_ptr<ByteSums> WordSums(const ByteParts& parts);

}  // namespace xpu::cpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_BYTE_SUMS_H_

// Ways that sum x without subtracting its zero point, and pad with the zero point. Each sum then lacks a term that
// depends on its column alone, the compensation: minus the zero point times the sum of the filter's column. Those
// column sums lie behind the packed filter.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_BYTES_COMPENSATED_SUMS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_BYTES_COMPENSATED_SUMS_H_

#include <cstdint>

#include "tensorflow_plugin/backends/cpu/convolution/bytes/byte_sums.h"
#include "tensorflow_plugin/backends/cpu/scratch.h"
#include "tensorflow_plugin/primitives/descriptors.h"

namespace xpu::cpu {

class CompensatedSums : public ByteSums {
 public:
  int64_t PackedBytes() const final;
  void Pack(const int8_t* filter, void* packed) const final;
  bool Accepts(int32_t zero_point) const final;

 protected:
  explicit CompensatedSums(const ConvolutionDesc& d);

  // The filter without those sums, a multiple of four bytes.
  virtual int64_t FilterBytes() const = 0;
  virtual void PackFilter(const int8_t* filter, int8_t* packed) const = 0;

  // By output channel; null: none.
  const int32_t* Compensation(const void* packed, int32_t zero_point, ScratchFrame* frame) const;

 private:
  const int64_t rows_, out_channels_;  // of the filter as a matrix
  const bool has_padding_;
};

}  // namespace xpu::cpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_BYTES_COMPENSATED_SUMS_H_

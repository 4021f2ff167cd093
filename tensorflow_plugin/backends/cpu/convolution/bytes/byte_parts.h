// The division of a convolution by WordSums into parts. A part is some images, or some rows of the output of one image.
// Where the filter is large, it is some output channels, too. Its sums lie in memory of the thread, which is in its
// cache.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_BYTES_BYTE_PARTS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_BYTES_BYTE_PARTS_H_

#include <algorithm>
#include <cstdint>

#include "tensorflow_plugin/backends/cpu/convolution/bytes/byte_sums.h"
#include "tensorflow_plugin/backends/cpu/convolution/parts.h"
#include "tensorflow_plugin/primitives/descriptors.h"

namespace xpu::cpu {

struct BytePart {
  ConvolutionPart of;
  int64_t pixel, pixels;        // of the results, from the first one on
  int64_t block, first, count;  // output channels
};

// It depends on the descriptor alone. A part has at most kMostSums sums, but for one that is a single row.
class ByteParts {
 public:
  explicit ByteParts(const ConvolutionDesc& given);

  // True if threads share it.
  bool IsShared() const;
  // The blocks of a filter come one after the other, so that it is read once.
  BytePart At(int64_t i) const;
  int64_t ChannelsOf(int64_t block) const { return std::min(channels, d.out_channels - block * channels); }

  ConvolutionDesc d;                 // forward, without epilogue; of one row of pixels if the filter has one pixel
  int64_t channels = 0, blocks = 1;  // of a block of the filter, and how many there are
  int64_t parts = 1;

 private:
  int64_t row_pixels_ = 0, rows_ = 1, images_ = 1;  // of a part
  int64_t stacks_ = 1, image_groups_ = 1;
};

}  // namespace xpu::cpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_BYTES_BYTE_PARTS_H_

// Parts of a convolution, which are convolutions, too.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_PARTS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_PARTS_H_

#include <cstdint>

#include "tensorflow_plugin/primitives/descriptors.h"

namespace xpu::cpu {

// Some images of a convolution or, of one image, some rows of the output; where its x and y begin, in elements.
struct ConvolutionPart {
  ConvolutionDesc desc;
  int64_t x, y;
};

// Rows [row, row + rows) of the output of some images from `image` on.
ConvolutionPart PartOf(const ConvolutionDesc& d, int64_t image, int64_t images, int64_t row, int64_t rows);

}  // namespace xpu::cpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_PARTS_H_

// The loops of depthwise.h, once per instruction set.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_DEPTHWISE_LOOPS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_DEPTHWISE_LOOPS_H_

#include <cstdint>

#include "tensorflow_plugin/backends/cpu/elementwise/chain_epilogue.h"
#include "tensorflow_plugin/backends/cpu/elementwise/chain_epilogue_loops.h"
#include "tensorflow_plugin/backends/cpu/simd/vector_math.h"

namespace xpu::cpu {

// A part of the output: rows, counted through all images, and channels.
struct DepthwisePart {
  int64_t first_row, last_row, first_channel, last_channel;  // [first, last)
};

// The rows of all images, and the filter's.
struct DepthwiseRows {
  const float* x;
  const float* w;
  float* y;
  int64_t channels, row;  // elements of a pixel, and of a row of the input
  int64_t in_rows, in_cols, out_rows, out_cols, filter_rows;
  int64_t stride, before_rows, before_cols;  // stride: from row to row
};

}  // namespace xpu::cpu

#define XPU_ISA_FILE "tensorflow_plugin/backends/cpu/convolution/depthwise_loops.h"
#define XPU_ISA baseline
#define XPU_VECTOR_BYTES 16
#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_DEPTHWISE_LOOPS_H_

#if defined(XPU_ISA)
namespace xpu::cpu::XPU_ISA {

// Pixels of the output at a time.
inline constexpr int kPixels = 7;

// Computes a vector of channels for kPixels output pixels in a row, and stores `count` of them. The first pixel meets
// the image at x; the filter begins at w. Both point at row `begin` of the filter and the first of the channels. With
// `checked`, columns of the image before `left` and from `right` on are padding.
template <int kWidth, int kStride, bool checked>
static inline void DepthwisePixels(const DepthwiseRows& d, int begin, int end, const float* x, const float* w,
                                   int64_t left, int64_t right, int lanes, int count, float* y, int64_t offset,
                                   int64_t channel, const ChainEpilogue* chain) {
  VF sum[kPixels][1] = {};
  for (int row = begin; row < end; ++row, x += d.row, w += kWidth * d.channels) {
    VF f[kWidth];
#pragma GCC unroll 8
    for (int i = 0; i < kWidth; ++i) {
      const float* const from = w + i * d.channels;
      f[i] = lanes == kLanes ? Load(from) : LoadFirst(from, lanes, 0);
    }
#pragma GCC unroll 32
    for (int col = 0; col < (kPixels - 1) * kStride + kWidth; ++col) {
      if (checked && (col < left || col >= right)) continue;
      const float* const from = x + col * d.channels;
      // Loaded once: the compiler would load it again for each product.
      const VF v = Uncontracted(lanes == kLanes ? Load(from) : LoadFirst(from, lanes, 0));
#pragma GCC unroll 8
      for (int i = 0; i < kWidth; ++i) {
        const int pixel = col - i;
        if (pixel >= 0 && pixel % kStride == 0 && pixel / kStride < kPixels) sum[pixel / kStride][0] += v * f[i];
      }
    }
  }
  if (chain != nullptr && chain->is_affine) {
    const AffineChain& affine = chain->affine;
    if (affine.scale == nullptr && affine.elements == nullptr) {
      ApplyAffineChain<kPixels, 1, true>(affine, sum, count, y, d.channels, offset, channel, lanes);
    } else {
      ApplyAffineChain<kPixels, 1>(affine, sum, count, y, d.channels, offset, channel, lanes);
    }
    return;
  }
  if (chain != nullptr) {
    alignas(64) float sums[kPixels * kLanes];
#pragma GCC unroll 8
    for (int i = 0; i < kPixels; ++i) Store(sums + i * kLanes, sum[i][0]);
    ApplyChainToTile<1, kPixels>(*chain, count, sums, kLanes, y, d.channels, offset, channel, lanes);
    return;
  }
#pragma GCC unroll 8
  for (int i = 0; i < kPixels; ++i) {
    if (i == count) return;
    if (lanes == kLanes) {
      Store(y + i * d.channels, sum[i][0]);
    } else {
      StoreFirst(y + i * d.channels, lanes, sum[i][0]);
    }
  }
}

template <int kWidth, int kStride>
static inline void DepthwiseOf(const DepthwiseRows& d, const DepthwisePart& part, const ChainEpilogue* chain) {
  constexpr int kMet = (kPixels - 1) * kStride + kWidth;  // columns of the image
  for (int64_t r = part.first_row; r < part.last_row; ++r) {
    const int64_t top = r % d.out_rows * d.stride - d.before_rows;
    const int begin = static_cast<int>(top < 0 ? -top : 0);
    const int end = static_cast<int>(d.in_rows - top < d.filter_rows ? d.in_rows - top : d.filter_rows);
    const float* const image = d.x + (r / d.out_rows * d.in_rows + top + begin) * d.row;
    const float* const filter = d.w + begin * kWidth * d.channels;
    for (int64_t pixel = 0; pixel < d.out_cols; pixel += kPixels) {
      const int count = static_cast<int>(d.out_cols - pixel < kPixels ? d.out_cols - pixel : kPixels);
      const int64_t col = pixel * kStride - d.before_cols;  // where the first one meets the image
      const bool inside = col >= 0 && col + kMet <= d.in_cols;
      const int64_t offset = (r * d.out_cols + pixel) * d.channels;
      for (int64_t c = part.first_channel; c < part.last_channel; c += kLanes) {
        const int lanes = static_cast<int>(part.last_channel - c < kLanes ? part.last_channel - c : kLanes);
        const float* const x = image + col * d.channels + c;
        if (inside && lanes == kLanes) {
          DepthwisePixels<kWidth, kStride, false>(d, begin, end, x, filter + c, 0, kMet, kLanes, count,
                                                  d.y + offset + c, offset + c, c, chain);
        } else {
          DepthwisePixels<kWidth, kStride, true>(d, begin, end, x, filter + c, -col, d.in_cols - col, lanes, count,
                                                 d.y + offset + c, offset + c, c, chain);
        }
      }
    }
  }
}

static inline void DepthwiseBy(const DepthwiseRows& d, int width, int stride, const DepthwisePart& part,
                               const ChainEpilogue* chain) {
  if (stride == 1) {
    if (width == 3) return DepthwiseOf<3, 1>(d, part, chain);
    if (width == 5) return DepthwiseOf<5, 1>(d, part, chain);
    return DepthwiseOf<7, 1>(d, part, chain);
  }
  if (width == 3) return DepthwiseOf<3, 2>(d, part, chain);
  if (width == 5) return DepthwiseOf<5, 2>(d, part, chain);
  return DepthwiseOf<7, 2>(d, part, chain);
}

// Some channels at a time, so that the filter and the rows that it meets stay in the first cache.
static inline void Depthwise(const DepthwiseRows& d, int width, int stride, const DepthwisePart& part,
                             const ChainEpilogue* chain) {
  constexpr int64_t kAtOnce = 128;
  for (int64_t c = part.first_channel; c < part.last_channel; c += kAtOnce) {
    const int64_t last = c + kAtOnce < part.last_channel ? c + kAtOnce : part.last_channel;
    DepthwiseBy(d, width, stride, {part.first_row, part.last_row, c, last}, chain);
  }
}

}  // namespace xpu::cpu::XPU_ISA
#include "tensorflow_plugin/backends/cpu/simd/each_isa.h"
#endif  // XPU_ISA

#include "tensorflow_plugin/backends/cpu/convolution/bytes/byte_parts.h"

#include "tensorflow_plugin/backends/cpu/convolution/pointwise.h"
#include "tensorflow_plugin/backends/cpu/convolution/sizes.h"
#include "tensorflow_plugin/backends/cpu/cost.h"

namespace xpu::cpu {
namespace {

using host_runtime::Pixels;

// A filter of more bytes is divided by output channels, into blocks of a multiple of so many.
constexpr int64_t kBytesOfBlock = 1 << 18, kChannelsOfBlock = 64;
// Multiplications below which a convolution stays on the calling thread, and the parts that others have at least.
constexpr int64_t kShared = 1 << 20, kFewestParts = 4;

}  // namespace

ByteParts::ByteParts(const ConvolutionDesc& given) : d(given) {
  d.direction = Direction::kForward;
  d.epilogue = {};
  d.packed_filter_bytes = 0;
  if (IsPointwise(d)) {  // all pixels of all images lie in a row
    const int64_t pixels = d.batch * Pixels(d.input);
    d.batch = 1;
    d.spatial_rank = 1;
    std::fill_n(d.input, ConvolutionDesc::kMaxSpatial, 1);
    std::fill_n(d.output, ConvolutionDesc::kMaxSpatial, 1);
    d.input[0] = d.output[0] = pixels;
  }
  const int64_t bytes = FilterSize(d);
  channels = d.out_channels;
  if (d.groups == 1 && bytes > kBytesOfBlock) {
    const int64_t blocks_wanted = (bytes + kBytesOfBlock - 1) / kBytesOfBlock;
    channels = std::min(channels, RoundUp((channels + blocks_wanted - 1) / blocks_wanted, kChannelsOfBlock));
  }
  blocks = (d.out_channels + channels - 1) / channels;
  row_pixels_ = d.output[1] * d.output[2];
  const int64_t of_row = std::max<int64_t>(1, row_pixels_ * channels);
  rows_ = std::clamp<int64_t>(kMostSums / of_row, 1, d.output[0]);
  if (IsShared()) {
    const int64_t parts_wanted = (kFewestParts + blocks * d.batch - 1) / (blocks * d.batch);
    rows_ = std::min(rows_, (d.output[0] + parts_wanted - 1) / parts_wanted);
  }
  if (rows_ == d.output[0]) {
    images_ = std::clamp<int64_t>(kMostSums / (of_row * rows_), 1, d.batch);
    if (IsShared()) {
      const int64_t parts_wanted = (kFewestParts + blocks - 1) / blocks;
      images_ = std::min(images_, std::max<int64_t>(1, (d.batch + parts_wanted - 1) / parts_wanted));
    }
  }
  stacks_ = (d.output[0] + rows_ - 1) / rows_;
  image_groups_ = (d.batch + images_ - 1) / images_;
  parts = blocks * stacks_ * image_groups_;
}

bool ByteParts::IsShared() const { return OutputSize(d) * (d.in_channels / d.groups) * Pixels(d.filter) >= kShared; }

BytePart ByteParts::At(int64_t i) const {
  BytePart part;
  const int64_t row = i % stacks_ * rows_, image = i / stacks_ % image_groups_ * images_;
  part.block = i / stacks_ / image_groups_;
  part.first = part.block * channels;
  part.count = ChannelsOf(part.block);
  const int64_t rows_here = std::min(rows_, d.output[0] - row), images_here = std::min(images_, d.batch - image);
  part.of = PartOf(d, image, images_here, row, rows_here);
  part.of.desc.out_channels = part.count;
  part.pixel = (image * d.output[0] + row) * row_pixels_;
  part.pixels = images_here * rows_here * row_pixels_;
  return part;
}

}  // namespace xpu::cpu

#include "tensorflow_plugin/backends/cpu/convolution/bytes/byte_windows.h"

#include <algorithm>
#include <cstring>

#include "tensorflow_plugin/backends/cpu/cost.h"

namespace xpu::cpu {
namespace {

// Images that are copied at a time have about so many bytes, which stay in the outer caches.
constexpr int64_t kMostCopied = 1 << 21;
// Bytes to copy that are worth a thread.
constexpr int64_t kGrainBytes = 1 << 16;

}  // namespace

ByteWindows::ByteWindows(const ConvolutionDesc& d, int64_t tile_rows, int64_t unit)
    : of_x_(AxesOf(d)),
      axes_(of_x_),
      channels_(d.in_channels),
      depth_(d.in_channels / d.groups),
      tile_rows_(tile_rows),
      batch_(d.batch) {
  const bool has_padding = HasPadding(d);
  bool has_one_pixel = true, has_all_pixels = true;
  for (int i = 0; i < kAxes; ++i) {
    const SpatialAxis& a = axes_[i];
    has_one_pixel = has_one_pixel && a.filter == 1;
    has_all_pixels = has_all_pixels && a.output == a.input;
    pixels_[i] = a.covered();
  }
  is_copied_ = has_padding || (has_one_pixel && !has_all_pixels);
  if (!is_copied_) {
    for (int i = 0; i < kAxes; ++i) pixels_[i] = axes_[i].input;
  }
  if (has_one_pixel && !has_padding) MakeOneRow();
  row_bytes_ = pixels_[2] * channels_;
  plane_bytes_ = pixels_[1] * row_bytes_;
  image_bytes_ = pixels_[0] * plane_bytes_;
  planes_ = planes_at_once_ = batch_ * axes_[0].output;
  if (is_copied_) planes_at_once_ = std::clamp<int64_t>(kMostCopied / image_bytes_, 1, batch_) * axes_[0].output;

  const SpatialAxis& last = axes_[2];
  const bool is_whole = depth_ == channels_ && last.dilation == 1;
  const int64_t runs_of_row = is_whole ? 1 : last.filter;
  run_length_ = depth_ * last.filter / runs_of_row;
  run_terms_ = RoundUp(run_length_, unit);
  for (int64_t a = 0; a < axes_[0].filter; ++a) {
    for (int64_t b = 0; b < axes_[1].filter; ++b) {
      const int64_t row = a * axes_[0].dilation * plane_bytes_ + b * axes_[1].dilation * row_bytes_;
      for (int64_t c = 0; c < runs_of_row; ++c) offsets_.push_back(row + c * last.dilation * channels_);
    }
  }
  pitch_ = last.stride * channels_;
  row_windows_ = axes_[1].stride == 1 && last.stride == 1 ? pixels_[2] : RoundUp(last.output, tile_rows);
}

void ByteWindows::MakeOneRow() {
  is_one_row_ = true;
  int64_t pixels = batch_;
  for (const SpatialAxis& a : of_x_) pixels *= a.output;
  axes_ = {};
  axes_[2].input = axes_[2].output = pixels;
  pixels_ = {1, 1, pixels};
  batch_ = 1;
}

void ByteWindows::CopyPixels(const uint8_t* x, int64_t begin, int64_t end, uint8_t* to) const {
  const SpatialAxis &a = of_x_[0], &b = of_x_[1], &c = of_x_[2];
  for (int64_t pixel = begin; pixel < end; ++pixel) {
    const int64_t k = pixel % c.output, j = pixel / c.output % b.output, i = pixel / c.output / b.output % a.output;
    const int64_t image = pixel / c.output / b.output / a.output;
    const int64_t met = ((image * a.input + i * a.stride) * b.input + j * b.stride) * c.input + k * c.stride;
    std::memcpy(to + pixel * channels_, x + met * channels_, channels_);
  }
}

void ByteWindows::CopyRow(const uint8_t* x, int32_t zero_point, int64_t image, int64_t a, int64_t b,
                          uint8_t* to) const {
  const SpatialAxis& last = of_x_[2];
  const int64_t i = a - of_x_[0].pad, j = b - of_x_[1].pad;
  if (i < 0 || i >= of_x_[0].input || j < 0 || j >= of_x_[1].input) {
    std::memset(to, zero_point, row_bytes_);
    return;
  }
  const int64_t before = std::min(last.pad, pixels_[2]), inside = std::min(last.input, pixels_[2] - before);
  std::memset(to, zero_point, before * channels_);
  const int64_t row = (image * of_x_[0].input + i) * of_x_[1].input + j;
  std::memcpy(to + before * channels_, x + row * last.input * channels_, inside * channels_);
  std::memset(to + (before + inside) * channels_, zero_point, (pixels_[2] - before - inside) * channels_);
}

void ByteWindows::Copy(const uint8_t* x, int32_t zero_point, int64_t plane, int64_t planes,
                       const host_runtime::ThreadTeam& team, uint8_t* to) const {
  if (is_one_row_) {
    team.ParallelFor(row_pixels(), Count(kGrainBytes, channels_),
                     [&](int64_t begin, int64_t end) { CopyPixels(x, begin, end, to); });
    return;
  }
  const int64_t image = plane / axes_[0].output, images = planes / axes_[0].output, rows = pixels_[0] * pixels_[1];
  team.ParallelFor(images * rows, Count(kGrainBytes, row_bytes_), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      CopyRow(x, zero_point, image + i / rows, i / pixels_[1] % pixels_[0], i % pixels_[1], to + i * row_bytes_);
    }
  });
}

int64_t ByteWindows::Place(int64_t plane, int64_t window, int64_t group) const {
  const int64_t image = plane / axes_[0].output, a = plane % axes_[0].output;
  const int64_t b = window / row_windows_, c = window % row_windows_;
  return image * image_bytes_ + a * axes_[0].stride * plane_bytes_ + b * axes_[1].stride * row_bytes_ + c * pitch_ +
         group * depth_;
}

}  // namespace xpu::cpu

// The input of a convolution of bytes, seen as the left matrix of a product. A row of the matrix is one window. Windows
// of neighbouring pixels begin pitch() bytes apart. A window consists of runs: adjacent bytes, at the same offsets in
// every window. A run is a row of the filter with all channels, or one tap with a group's channels.
//
// x is copied if it has padding, or if a filter of 1x1 has strides. Windows that span two rows of the output are
// computed, too, and dropped.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_BYTES_BYTE_WINDOWS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_BYTES_BYTE_WINDOWS_H_

#include <array>
#include <cstdint>
#include <vector>

#include "tensorflow_plugin/backends/cpu/convolution/axes.h"
#include "tensorflow_plugin/backends/host_runtime/thread_team.h"
#include "tensorflow_plugin/primitives/descriptors.h"

namespace xpu::cpu {

class ByteWindows {
 public:
  // A tile has `tile_rows` windows. Products read each run up to a multiple of `unit` bytes. The packed filter is 0
  // there, so those bytes may be anything.
  ByteWindows(const ConvolutionDesc& d, int64_t tile_rows, int64_t unit);

  int64_t runs() const { return static_cast<int64_t>(offsets_.size()); }
  int64_t run_length() const { return run_length_; }  // the bytes of the window
  int64_t run_terms() const { return run_terms_; }    // with those behind them
  const int64_t* offsets() const { return offsets_.data(); }
  int64_t pitch() const { return pitch_; }  // from one window to the next

  // Pixels of the output lie in rows, and these in planes, some of which are read at a time.
  int64_t planes() const { return planes_; }
  int64_t planes_at_once() const { return planes_at_once_; }
  int64_t rows() const { return axes_[1].output; }
  int64_t row_pixels() const { return axes_[2].output; }
  // Windows from one row to the next, and from the first one of a plane to the last one.
  int64_t row_windows() const { return row_windows_; }
  int64_t plane_windows() const { return (rows() - 1) * row_windows_ + row_pixels(); }

  // Products read x, or a copy for some planes, which takes so many bytes.
  bool is_copied() const { return is_copied_; }
  int64_t CopyBytes(int64_t planes) const { return planes / axes_[0].output * image_bytes_ + Reach(); }
  void Copy(const uint8_t* x, int32_t zero_point, int64_t plane, int64_t planes, const host_runtime::ThreadTeam& team,
            uint8_t* to) const;

  // Where the first window of a tile begins, and the bytes from there on that products read. All windows of a tile lie
  // in one row where a convolution of several pixels has strides.
  int64_t Place(int64_t plane, int64_t window, int64_t group) const;
  int64_t Reach() const { return (tile_rows_ - 1) * pitch_ + offsets_.back() + run_terms_; }

 private:
  // Sees all pixels of all images as one row.
  void MakeOneRow();
  void CopyPixels(const uint8_t* x, int64_t begin, int64_t end, uint8_t* to) const;
  void CopyRow(const uint8_t* x, int32_t zero_point, int64_t image, int64_t a, int64_t b, uint8_t* to) const;

  const std::array<SpatialAxis, kAxes> of_x_;
  std::array<SpatialAxis, kAxes> axes_;  // as products see them
  std::array<int64_t, kAxes> pixels_;    // of an image that they read
  const int64_t channels_, depth_, tile_rows_;
  int64_t batch_;
  bool is_copied_ = false, is_one_row_ = false;
  int64_t row_bytes_, plane_bytes_, image_bytes_;
  int64_t planes_, planes_at_once_;
  int64_t run_length_, run_terms_, pitch_, row_windows_;
  std::vector<int64_t> offsets_;
};

}  // namespace xpu::cpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_CONVOLUTION_BYTES_BYTE_WINDOWS_H_

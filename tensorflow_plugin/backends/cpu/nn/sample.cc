#include "tensorflow_plugin/backends/plain/sample.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <type_traits>

#include "tensorflow_plugin/backends/cpu/kernels.h"
#include "tensorflow_plugin/backends/cpu/scratch.h"
#include "tensorflow_plugin/backends/plain/loops.h"

namespace xpu::cpu {
namespace {

using host_runtime::ThreadTeam;
using plain::Axis;

constexpr int64_t kGrainElements = 1 << 13;  // worth handing to another thread

// Each point's y is its row's, and its x its column's: a grid of points, as in resizing and cropping.
bool IsGrid(const SampleDesc& d) {
  return d.direction == SampleDirection::kForward && d.outside != Outside::kPixels &&
         (d.y_strides[2] == 0 || d.out_w == 1) && (d.x_strides[1] == 0 || d.out_h == 1);
}

// A column of the grid: where its pixels are in a row of the image.
struct Column {
  int64_t left, right;
  float after;
  bool filled;
};

// A row of the image at all columns. The number of channels is a constant where it is small (else 0).
template <typename T, int kChannels>
void AcrossRow(const T* row, const Column* columns, int64_t n, int64_t channels, float* out) {
  const int64_t count = kChannels > 0 ? kChannels : channels;
  for (int64_t j = 0; j < n; ++j, out += count) {
    const T *const left = row + columns[j].left, *const right = row + columns[j].right;
    const float t = columns[j].after;
    for (int64_t c = 0; c < count; ++c) {
      const float a = static_cast<float>(left[c]), b = static_cast<float>(right[c]);
      out[c] = a + (b - a) * t;
    }
  }
}

template <typename T>
void AcrossRow(const T* row, const Column* columns, int64_t n, int64_t channels, float* out) {
  switch (channels) {
    case 1:
      return AcrossRow<T, 1>(row, columns, n, channels, out);
    case 3:
      return AcrossRow<T, 3>(row, columns, n, channels, out);
    case 4:
      return AcrossRow<T, 4>(row, columns, n, channels, out);
  }
  AcrossRow<T, 0>(row, columns, n, channels, out);
}

template <typename R>
void BetweenRows(const float* top, const float* bottom, float t, int64_t n, R* out) {
  for (int64_t k = 0; k < n; ++k) out[k] = R(top[k] + (bottom[k] - top[k]) * t);
}

// Rows of the image that have been put across the columns already, of which the next output row often needs one.
template <typename T>
class Rows {
 public:
  Rows(const SampleDesc& d, ScratchFrame* frame) : d_(d) {
    for (float*& row : rows_) row = frame->Get<float>(d.out_w * d.channels);
  }
  void Forget() { held_[0] = held_[1] = -1; }
  // Row y of the image; `other` is kept.
  const float* Get(const T* image, int64_t y, int64_t other, const Column* columns) {
    const int at = held_[0] == y || (held_[1] != y && held_[0] != other) ? 0 : 1;
    if (held_[at] != y) {
      AcrossRow(image + y * d_.width * d_.channels, columns, d_.out_w, d_.channels, rows_[at]);
      held_[at] = y;
    }
    return rows_[at];
  }

 private:
  const SampleDesc& d_;
  float* rows_[2];
  int64_t held_[2] = {-1, -1};
};

template <typename T, typename R>
void NearestRow(const T* row, const Column* columns, int64_t n, int64_t channels, R* out) {
  if constexpr (std::is_same_v<T, R>) {
    const auto copy = [&](auto size) {
      for (int64_t j = 0; j < n; ++j) std::memcpy(out + j * size(), row + columns[j].left, size() * sizeof(T));
    };
    if (channels == 1) return copy(std::integral_constant<int64_t, 1>());
    if (channels == 3) return copy(std::integral_constant<int64_t, 3>());
    if (channels == 4) return copy(std::integral_constant<int64_t, 4>());
    return copy([&] { return channels; });
  } else {
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t c = 0; c < channels; ++c) out[j * channels + c] = plain::Convert<R>(row[columns[j].left + c]);
    }
  }
}

template <typename T, typename R>
void Grid(const SampleDesc& d, const Args& args, const ThreadTeam& team) {
  const T* const images = static_cast<const T*>(args.in[0]);
  const float *const ys = static_cast<const float*>(args.in[1]), *const xs = static_cast<const float*>(args.in[2]);
  const int32_t* const numbers = d.numbered ? static_cast<const int32_t*>(args.in[3]) : nullptr;
  R* const out = static_cast<R*>(args.out[0]);
  const int64_t row_size = d.out_w * d.channels;
  const int64_t grain = std::max<int64_t>(1, kGrainElements / std::max<int64_t>(1, row_size));
  team.ParallelFor(d.batch * d.out_h, grain, [&](int64_t begin, int64_t end) {
    ScratchFrame frame;
    Column* const columns = frame.Get<Column>(d.out_w);
    Rows<T> rows(d, &frame);
    bool any_filled = false;
    for (int64_t row = begin; row < end; ++row) {
      const int64_t b = row / d.out_h, i = row % d.out_h;
      R* const to = out + row * row_size;
      if (row == begin || i == 0) {
        any_filled = false;
        for (int64_t j = 0; j < d.out_w; ++j) {
          const Axis x = plain::AxisOf(d, xs[b * d.x_strides[0] + j * d.x_strides[2]], d.width);
          columns[j] = {std::max<int64_t>(0, x.lower) * d.channels, std::max<int64_t>(0, x.upper) * d.channels, x.after,
                        x.filled};
          any_filled |= x.filled;
        }
        rows.Forget();
      }
      const int64_t number = numbers == nullptr ? b : numbers[b];
      const Axis y = plain::AxisOf(d, ys[b * d.y_strides[0] + i * d.y_strides[1]], d.height);
      if (y.filled || number < 0 || number >= d.images) {
        std::fill_n(to, row_size, R(d.fill));
        continue;
      }
      const T* const image = images + number * d.height * d.width * d.channels;
      if (d.kind == SampleKind::kNearest) {
        NearestRow(image + y.lower * d.width * d.channels, columns, d.out_w, d.channels, to);
      } else {
        const float* const top = rows.Get(image, y.lower, y.upper, columns);
        const float* const bottom = rows.Get(image, y.upper, y.lower, columns);
        BetweenRows(top, bottom, y.after, row_size, to);
      }
      for (int64_t j = 0; any_filled && j < d.out_w; ++j) {
        if (columns[j].filled) std::fill_n(to + j * d.channels, d.channels, R(d.fill));
      }
    }
  });
}

}  // namespace

Status CpuKernels::Run(const SampleDesc& d, const Args& args, const ThreadTeam& team) const {
  const bool image_gradient = d.direction == SampleDirection::kImageGradient;
  try {
    if (IsGrid(d) && d.images > 0 && d.height > 0 && d.width > 0) {
      plain::VisitSampleTypes(d, [&](auto type, auto result_type) {
        Grid<typename decltype(type)::type, typename decltype(result_type)::type>(d, args, team);
      });
    } else if (image_gradient) {
      // Points may lie anywhere: a thread takes an image, and all points that lie there.
      team.ParallelFor(d.images, 1, [&](int64_t begin, int64_t end) { plain::RunSamplePart(d, args, begin, end); });
    } else {
      const int64_t grain = std::max<int64_t>(1, kGrainElements / 4 / std::max<int64_t>(1, d.out_w * d.channels));
      team.ParallelFor(d.batch * d.out_h, grain,
                       [&](int64_t begin, int64_t end) { plain::RunSamplePart(d, args, begin, end); });
    }
  } catch (const std::bad_alloc&) {
    return errors::ResourceExhausted("no memory for ", Name(d));
  }
  return plain::CheckImageNumbers(d, args);
}

}  // namespace xpu::cpu

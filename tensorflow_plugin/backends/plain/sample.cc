#include "tensorflow_plugin/backends/plain/sample.h"

#include <algorithm>
#include <vector>

#include "tensorflow_plugin/backends/plain/loops.h"

namespace xpu::plain {
namespace {

// The values that a command's points share.
struct Points {
  Points(const SampleDesc& d, const Args& args) : d(d) {
    const int first = d.direction == SampleDirection::kPointGradient ? 2 : 1;
    y = static_cast<const float*>(args.in[first]);
    x = static_cast<const float*>(args.in[first + 1]);
    numbers = d.numbered ? static_cast<const int32_t*>(args.in[first + 2]) : nullptr;
  }

  // The image that the points of `b` lie in; -1: none.
  int64_t ImageOf(int64_t b) const {
    if (numbers == nullptr) return b;
    return numbers[b] >= 0 && numbers[b] < d.images ? numbers[b] : -1;
  }
  Axis Y(int64_t b, int64_t i, int64_t j) const {
    return AxisOf(d, y[b * d.y_strides[0] + i * d.y_strides[1] + j * d.y_strides[2]], d.height);
  }
  Axis X(int64_t b, int64_t i, int64_t j) const {
    return AxisOf(d, x[b * d.x_strides[0] + i * d.x_strides[1] + j * d.x_strides[2]], d.width);
  }

  const SampleDesc& d;
  const float *y, *x;
  const int32_t* numbers;
};

// The pixel of channel 0, or nullptr outside.
template <typename T>
T* PixelAt(const SampleDesc& d, T* image, int64_t y, int64_t x) {
  return y < 0 || x < 0 ? nullptr : image + (y * d.width + x) * d.channels;
}

template <typename T, typename R>
void Forward(const Points& points, const T* images, R* out, int64_t begin, int64_t end) {
  const SampleDesc& d = points.d;
  const R fill = R(d.fill);
  const auto value = [&](const T* pixel, int64_t c) {
    return pixel == nullptr ? static_cast<float>(fill) : static_cast<float>(pixel[c]);
  };
  for (int64_t row = begin; row < end; ++row) {
    const int64_t b = row / d.out_h, i = row % d.out_h, number = points.ImageOf(b);
    const T* const image = images + std::max<int64_t>(number, 0) * d.height * d.width * d.channels;
    for (int64_t j = 0; j < d.out_w; ++j) {
      R* const to = out + (row * d.out_w + j) * d.channels;
      const Axis y = points.Y(b, i, j), x = points.X(b, i, j);
      if (number < 0 || y.filled || x.filled) {
        std::fill_n(to, d.channels, fill);
        continue;
      }
      const T* const top_left = PixelAt(d, image, y.lower, x.lower);
      if (d.kind == SampleKind::kNearest) {
        for (int64_t c = 0; c < d.channels; ++c) to[c] = top_left == nullptr ? fill : Convert<R>(top_left[c]);
        continue;
      }
      const T* const top_right = PixelAt(d, image, y.lower, x.upper);
      const T* const bottom_left = PixelAt(d, image, y.upper, x.lower);
      const T* const bottom_right = PixelAt(d, image, y.upper, x.upper);
      for (int64_t c = 0; c < d.channels; ++c) {
        const float top = Blend(d, value(top_left, c), value(top_right, c), x);
        const float bottom = Blend(d, value(bottom_left, c), value(bottom_right, c), x);
        to[c] = R(Blend(d, top, bottom, y));
      }
    }
  }
}

// Calls add(pixel, weight of y, weight of x) for the pixels of a point that get something of its gradient.
template <typename T, typename F>
void ForEachPixel(const SampleDesc& d, T* image, const Axis& y, const Axis& x, F&& add) {
  if (y.filled || x.filled) return;
  const bool nearest = d.kind == SampleKind::kNearest;
  const auto one = [&](int64_t row, float wy, int64_t column, float wx) {
    if (T* const pixel = PixelAt(d, image, row, column)) add(pixel, wy, wx);
  };
  if (nearest) return one(y.lower, 1, x.lower, 1);
  one(y.lower, y.before, x.lower, x.before);
  one(y.lower, y.before, x.upper, x.after);
  one(y.upper, y.after, x.lower, x.before);
  one(y.upper, y.after, x.upper, x.after);
}

template <typename T, typename R>
void ImageGradient(const Points& points, const R* gradient, T* images, int64_t begin, int64_t end) {
  using C = ComputeTypeT<T>;
  const SampleDesc& d = points.d;
  const int64_t size = d.height * d.width * d.channels;
  std::vector<C> sums;
  for (int64_t number = begin; number < end; ++number) {
    sums.assign(size, C(0));
    for (int64_t b = 0; b < d.batch; ++b) {
      if (points.ImageOf(b) != number) continue;
      for (int64_t i = 0; i < d.out_h; ++i) {
        for (int64_t j = 0; j < d.out_w; ++j) {
          const R* const from = gradient + ((b * d.out_h + i) * d.out_w + j) * d.channels;
          ForEachPixel(d, sums.data(), points.Y(b, i, j), points.X(b, i, j), [&](C* pixel, float wy, float wx) {
            for (int64_t c = 0; c < d.channels; ++c) {
              pixel[c] += static_cast<C>(static_cast<float>(from[c]) * wy * wx);
            }
          });
        }
      }
    }
    for (int64_t k = 0; k < size; ++k) images[number * size + k] = T(sums[k]);
  }
}

template <typename T, typename R>
void PointGradient(const Points& points, const R* gradient, const T* images, float* dy, float* dx, int64_t begin,
                   int64_t end) {
  const SampleDesc& d = points.d;
  const auto value = [&](const T* pixel, int64_t c) {
    return pixel == nullptr ? static_cast<float>(T(d.fill)) : static_cast<float>(pixel[c]);
  };
  for (int64_t row = begin; row < end; ++row) {
    const int64_t b = row / d.out_h, i = row % d.out_h, number = points.ImageOf(b);
    const T* const image = images + std::max<int64_t>(number, 0) * d.height * d.width * d.channels;
    for (int64_t j = 0; j < d.out_w; ++j) {
      const int64_t at = row * d.out_w + j;
      dy[at] = dx[at] = 0;
      const Axis y = points.Y(b, i, j), x = points.X(b, i, j);
      if (number < 0 || y.filled || x.filled) continue;
      const T* const top_left = PixelAt(d, image, y.lower, x.lower);
      const T* const top_right = PixelAt(d, image, y.lower, x.upper);
      const T* const bottom_left = PixelAt(d, image, y.upper, x.lower);
      const T* const bottom_right = PixelAt(d, image, y.upper, x.upper);
      for (int64_t c = 0; c < d.channels; ++c) {
        const float a = value(top_left, c), e = value(top_right, c);
        const float f = value(bottom_left, c), g = value(bottom_right, c);
        const float of_point = static_cast<float>(gradient[at * d.channels + c]);
        dy[at] += of_point * (x.before * (f - a) + x.after * (g - e));
        dx[at] += of_point * (y.before * (e - a) + y.after * (g - f));
      }
    }
  }
}

template <typename T, typename R>
void Part(const SampleDesc& d, const Args& args, int64_t begin, int64_t end) {
  const Points points(d, args);
  switch (d.direction) {
    case SampleDirection::kForward:
      return Forward(points, static_cast<const T*>(args.in[0]), static_cast<R*>(args.out[0]), begin, end);
    case SampleDirection::kImageGradient:
      if constexpr (IsFloating(DTypeOf<T>::value)) {
        ImageGradient(points, static_cast<const R*>(args.in[0]), static_cast<T*>(args.out[0]), begin, end);
      }
      return;
    case SampleDirection::kPointGradient:
      return PointGradient(points, static_cast<const R*>(args.in[0]), static_cast<const T*>(args.in[1]),
                           static_cast<float*>(args.out[0]), static_cast<float*>(args.out[1]), begin, end);
  }
}

}  // namespace

void RunSamplePart(const SampleDesc& d, const Args& args, int64_t begin, int64_t end) {
  VisitSampleTypes(d, [&](auto type, auto result_type) {
    Part<typename decltype(type)::type, typename decltype(result_type)::type>(d, args, begin, end);
  });
}

Status CheckImageNumbers(const SampleDesc& d, const Args& args) {
  const Points points(d, args);
  for (int64_t b = 0; b < d.batch; ++b) {
    XPU_REQUIRE(points.ImageOf(b) >= 0, errors::InvalidArgument("image number ", b, " is ", points.numbers[b],
                                                                ", which is not in [0, ", d.images, ")"));
  }
  return OkStatus();
}

Status Run(const SampleDesc& d, const Args& args) {
  RunSamplePart(d, args, 0, d.direction == SampleDirection::kImageGradient ? d.images : d.batch * d.out_h);
  return CheckImageNumbers(d, args);
}

}  // namespace xpu::plain

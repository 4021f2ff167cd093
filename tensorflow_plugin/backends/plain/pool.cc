#include <limits>
#include <type_traits>
#include <vector>

#include "tensorflow_plugin/backends/host_runtime/spatial.h"
#include "tensorflow_plugin/backends/plain/loops.h"

namespace xpu::plain {
namespace {

using host_runtime::PixelRange;
using host_runtime::SpatialStrides;

// float sums in double, which makes this the better oracle; integers sum in int64.
template <typename T>
using Sum = std::conditional_t<std::is_integral_v<T>, int64_t,
                               std::conditional_t<std::is_same_v<T, float>, double, ComputeTypeT<T>>>;

// Calls f(output offset, first input offset of the channel and image, ranges) for every output element.
template <typename F>
void ForEachWindow(const PoolDesc& d, F&& f) {
  const SpatialStrides x(d.order, d.channels, d.input), y(d.order, d.channels, d.output);
  int64_t o[3];
  for (int64_t n = 0; n < d.batch; ++n) {
    for (o[0] = 0; o[0] < d.output[0]; ++o[0]) {
      for (o[1] = 0; o[1] < d.output[1]; ++o[1]) {
        for (o[2] = 0; o[2] < d.output[2]; ++o[2]) {
          int64_t begin[3], end[3];
          for (int i = 0; i < 3; ++i) {
            const int64_t start = o[i] * d.stride[i] - d.pad_before[i];
            const PixelRange range(start, d.window[i], 1, d.input[i]);
            begin[i] = start + range.begin;
            end[i] = start + range.end;
          }
          for (int64_t c = 0; c < d.channels; ++c) {
            f(n * y.n + c * y.c + o[0] * y.s[0] + o[1] * y.s[1] + o[2] * y.s[2], n * x.n + c * x.c, begin, end, x);
          }
        }
      }
    }
  }
}

// Calls f(input offset) for the pixels of one window, in row-major order.
template <typename F>
void ForEachPixel(int64_t base, const int64_t* begin, const int64_t* end, const SpatialStrides& x, F&& f) {
  for (int64_t i = begin[0]; i < end[0]; ++i) {
    for (int64_t j = begin[1]; j < end[1]; ++j) {
      for (int64_t k = begin[2]; k < end[2]; ++k) f(base + i * x.s[0] + j * x.s[1] + k * x.s[2]);
    }
  }
}

// Where the gradient of a window goes: its first maximum in row-major order, -1 for a window that is all padding.
// A NaN counts as the maximum only where the window starts with it, as in TensorFlow.
template <typename T>
int64_t ArgMax(const T* x, int64_t base, const int64_t* begin, const int64_t* end, const SpatialStrides& strides) {
  using C = ComputeTypeT<T>;
  int64_t best = -1;
  ForEachPixel(base, begin, end, strides, [&](int64_t at) {
    if (best < 0 || static_cast<C>(x[best]) < static_cast<C>(x[at])) best = at;
  });
  return best;
}

// The maximum starts here, so that it is never NaN or -infinity: as in TensorFlow.
template <typename T>
T Lowest() {
  if constexpr (std::is_same_v<T, Half>) return Half(-65504.0f);
  if constexpr (std::is_same_v<T, BFloat16>) return BFloat16(-0x1.fep127f);
  if constexpr (std::is_arithmetic_v<T>) return std::numeric_limits<T>::lowest();
}

template <typename T>
void Forward(const PoolDesc& d, const T* x, T* y) {
  ForEachWindow(d, [&](int64_t out, int64_t base, const int64_t* begin, const int64_t* end, const SpatialStrides& s) {
    if (d.kind == PoolKind::kMax) {
      T best = Lowest<T>();
      ForEachPixel(base, begin, end, s, [&](int64_t at) {
        if (static_cast<ComputeTypeT<T>>(best) < static_cast<ComputeTypeT<T>>(x[at])) best = x[at];
      });
      y[out] = best;
      return;
    }
    Sum<T> sum = 0;
    int64_t count = 0;
    ForEachPixel(base, begin, end, s, [&](int64_t at) {
      sum += static_cast<Sum<T>>(x[at]);
      ++count;
    });
    y[out] = static_cast<T>(count == 0 ? Sum<T>(0) : static_cast<Sum<T>>(sum / static_cast<Sum<T>>(count)));
  });
}

// The maximum is the element at its position: a NaN where the window starts with it, as in TensorFlow. A window of
// nothing but padding has no position: -1.
template <typename T, typename P>
void WithPositions(const PoolDesc& d, const T* x, T* y, P* positions) {
  ForEachWindow(d, [&](int64_t out, int64_t base, const int64_t* begin, const int64_t* end, const SpatialStrides& s) {
    const int64_t at = ArgMax(x, base, begin, end, s);
    y[out] = at < 0 ? Lowest<T>() : x[at];
    positions[out] = static_cast<P>(at < 0 ? at : at % s.n);
  });
}

template <typename T>
void Gradient(const PoolDesc& d, const T* x, const T* dy, T* dx) {
  std::vector<Sum<T>> sums(d.batch * d.channels * host_runtime::Pixels(d.input), 0);
  ForEachWindow(d, [&](int64_t out, int64_t base, const int64_t* begin, const int64_t* end, const SpatialStrides& s) {
    const Sum<T> g = static_cast<Sum<T>>(dy[out]);
    if (d.kind == PoolKind::kMax) {
      const int64_t at = ArgMax(x, base, begin, end, s);
      if (at >= 0) sums[at] += g;
      return;
    }
    const int64_t count = (end[0] - begin[0]) * (end[1] - begin[1]) * (end[2] - begin[2]);
    ForEachPixel(base, begin, end, s,
                 [&](int64_t at) { sums[at] += static_cast<Sum<T>>(g / static_cast<Sum<T>>(count)); });
  });
  for (size_t i = 0; i < sums.size(); ++i) dx[i] = static_cast<T>(sums[i]);
}

}  // namespace

Status Run(const PoolDesc& d, const Args& args) {
  VisitType(d.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr DType type = DTypeOf<T>::value;
    if constexpr (IsFloating(type) || IsInteger(type)) {
      const T* in = static_cast<const T*>(args.in[0]);
      T* out = static_cast<T*>(args.out[0]);
      if (d.positions_type == DType::kInt32) {
        WithPositions<T>(d, in, out, static_cast<int32_t*>(args.out[1]));
      } else if (d.positions_type == DType::kInt64) {
        WithPositions<T>(d, in, out, static_cast<int64_t*>(args.out[1]));
      } else if (!d.gradient) {
        Forward<T>(d, in, out);
      } else if (d.kind == PoolKind::kMax) {
        Gradient<T>(d, in, static_cast<const T*>(args.in[2]), out);
      } else {
        Gradient<T>(d, nullptr, in, out);
      }
    }
  });
  return OkStatus();
}

}  // namespace xpu::plain

#include <cmath>
#include <limits>

#include "tensorflow_plugin/backends/plain/loops.h"

namespace xpu::plain {
namespace {

// Calls f(offset) for every element of channel c.
template <typename F>
void ForEachOfChannel(const NormalizeDesc& d, int64_t c, F&& f) {
  const bool last = d.order == ChannelOrder::kLast;
  for (int64_t n = 0; n < d.batch; ++n) {
    for (int64_t s = 0; s < d.spatial; ++s) {
      f(last ? (n * d.spatial + s) * d.channels + c : (n * d.channels + c) * d.spatial + s);
    }
  }
}

template <typename T>
void Forward(const NormalizeDesc& d, const Args& args) {
  const T* x = static_cast<const T*>(args.in[0]);
  const float* param[4];  // scale, offset, running mean and variance
  for (int i = 0; i < 4; ++i) param[i] = static_cast<const float*>(args.in[1 + i]);
  T* y = static_cast<T*>(args.out[0]);
  const int64_t count = d.batch * d.spatial;
  for (int64_t c = 0; c < d.channels; ++c) {
    double mean, variance;
    if (!d.training) {
      mean = param[2][c];
      variance = param[3][c];
    } else {
      double sum = 0, squares = 0;
      ForEachOfChannel(d, c, [&](int64_t at) { sum += static_cast<double>(static_cast<float>(x[at])); });
      mean = sum / count;
      ForEachOfChannel(d, c, [&](int64_t at) {
        const double centered = static_cast<double>(static_cast<float>(x[at])) - mean;
        squares += centered * centered;
      });
      variance = squares / count;  // NaN, as the mean, when there is nothing to average
      const double corrected = count > 1 ? squares / (count - 1) : variance;
      // With factor 1 there may be no running statistics at all.
      auto blend = [&](const float* running, double batch) {
        return static_cast<float>(d.factor == 1.0f ? batch : running[c] * (1.0 - d.factor) + batch * d.factor);
      };
      static_cast<float*>(args.out[1])[c] = blend(param[2], mean);
      static_cast<float*>(args.out[2])[c] = blend(param[3], corrected);
      static_cast<float*>(args.out[3])[c] = static_cast<float>(mean);
      static_cast<float*>(args.out[4])[c] = static_cast<float>(variance);
    }
    const double scale = param[0][c] / std::sqrt(variance + d.epsilon), offset = param[1][c];
    ForEachOfChannel(d, c, [&](int64_t at) {
      y[at] =
          static_cast<T>(static_cast<float>((static_cast<double>(static_cast<float>(x[at])) - mean) * scale + offset));
    });
  }
}

template <typename T>
void Gradient(const NormalizeDesc& d, const Args& args) {
  const T *dy = static_cast<const T*>(args.in[0]), *x = static_cast<const T*>(args.in[1]);
  T* dx = static_cast<T*>(args.out[0]);
  const int64_t count = d.batch * d.spatial;
  for (int64_t c = 0; c < d.channels; ++c) {
    const double scale = static_cast<const float*>(args.in[2])[c], mean = static_cast<const float*>(args.in[3])[c];
    const double variance = static_cast<const float*>(args.in[4])[c] + static_cast<double>(d.epsilon);
    const double inverse = 1 / std::sqrt(variance);
    double sum = 0, dot = 0;  // of dy, and of dy with the centered x
    ForEachOfChannel(d, c, [&](int64_t at) {
      const double g = static_cast<float>(dy[at]);
      sum += g;
      dot += g * (static_cast<double>(static_cast<float>(x[at])) - mean);
    });
    static_cast<float*>(args.out[1])[c] = static_cast<float>(dot * inverse);
    static_cast<float*>(args.out[2])[c] = static_cast<float>(sum);
    ForEachOfChannel(d, c, [&](int64_t at) {
      double g = static_cast<float>(dy[at]);
      if (d.training) {
        const double centered = static_cast<double>(static_cast<float>(x[at])) - mean;
        g -= sum / count + centered * (dot / count) / variance;
      }
      dx[at] = static_cast<T>(static_cast<float>(g * scale * inverse));
    });
  }
}

}  // namespace

Status Run(const NormalizeDesc& d, const Args& args) {
  VisitType(d.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (DTypeOf<T>::value == DType::kFloat || IsReducedFloat(DTypeOf<T>::value)) {
      d.gradient ? Gradient<T>(d, args) : Forward<T>(d, args);
    }
  });
  return OkStatus();
}

}  // namespace xpu::plain

#include <algorithm>
#include <type_traits>

#include "tensorflow_plugin/backends/plain/loops.h"

namespace xpu::plain {
namespace {

template <typename T, typename R>
void Resample(const ResampleDesc& d, const Args& args) {
  using C = std::conditional_t<std::is_same_v<R, double>, double, float>;
  const T* const images = static_cast<const T*>(args.in[0]);
  const int32_t* const ys = static_cast<const int32_t*>(args.in[1]);
  const float* const wy = static_cast<const float*>(args.in[2]);
  const int32_t* const xs = static_cast<const int32_t*>(args.in[3]);
  const float* const wx = static_cast<const float*>(args.in[4]);
  R* out = static_cast<R*>(args.out[0]);
  for (int64_t b = 0; b < d.batch; ++b) {
    for (int64_t i = 0; i < d.out_h; ++i) {
      for (int64_t j = 0; j < d.out_w; ++j) {
        for (int64_t c = 0; c < d.channels; ++c) {
          C sum = 0;
          for (int64_t t = 0; t < std::min<int64_t>(xs[2 * j + 1], d.x_taps); ++t) {
            const int64_t x = xs[2 * j] + t;
            if (x < 0 || x >= d.width) continue;
            C column = 0;
            for (int64_t s = 0; s < std::min<int64_t>(ys[2 * i + 1], d.y_taps); ++s) {
              const int64_t y = ys[2 * i] + s;
              if (y < 0 || y >= d.height) continue;
              column += static_cast<C>(wy[i * d.y_taps + s]) *
                        static_cast<C>(images[((b * d.height + y) * d.width + x) * d.channels + c]);
            }
            sum += static_cast<C>(wx[j * d.x_taps + t]) * column;
          }
          *out++ = R(sum);
        }
      }
    }
  }
}

}  // namespace

Status Run(const ResampleDesc& d, const Args& args) {
  VisitType(d.type, [&](auto type) {
    VisitType(d.result_type, [&](auto result_type) {
      using T = typename decltype(type)::type;
      using R = typename decltype(result_type)::type;
      constexpr DType t = DTypeOf<T>::value;
      if constexpr ((IsFloating(t) || IsInteger(t)) && IsFloating(DTypeOf<R>::value)) Resample<T, R>(d, args);
    });
  });
  return OkStatus();
}

}  // namespace xpu::plain

// The parts of Sample's loops: where a point lies, and how pixels are blended. To be compiled without fused
// multiplication and addition, since each operation is rounded by itself.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_PLAIN_SAMPLE_H_
#define TENSORFLOW_PLUGIN_BACKENDS_PLAIN_SAMPLE_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "tensorflow_plugin/primitives/descriptors.h"

namespace xpu::plain {

// A point along one axis.
struct Axis {
  int64_t lower, upper;  // the pixels around it; -1: outside
  float before, after;   // their weights
  bool filled;           // nothing but the fill value
};

inline Axis AxisOf(const SampleDesc& d, float at, int64_t extent) {
  const float last = static_cast<float>(extent - 1), floor = std::floor(at);
  // (A NaN compares with nothing.)
  if (d.outside == Outside::kFill && !(at >= 0 && at <= last)) return {-1, -1, 0, 0, true};
  Axis axis{-1, -1, 0, at - floor, false};
  if (d.outside == Outside::kPixels) {
    const float next = floor + 1;
    axis.before = next - at;
    if (floor >= 0 && floor <= last) axis.lower = static_cast<int64_t>(floor);
    if (next >= 0 && next <= last) axis.upper = static_cast<int64_t>(next);
    return axis;
  }
  axis.before = 1 - axis.after;
  axis.lower = static_cast<int64_t>(std::min(std::max(0.0f, floor), last));
  axis.upper = static_cast<int64_t>(std::min(std::max(0.0f, std::ceil(at)), last));
  return axis;
}

inline float Blend(const SampleDesc& d, float a, float b, const Axis& axis) {
  return d.outside == Outside::kPixels ? axis.before * a + axis.after * b : a + (b - a) * axis.after;
}

template <typename R, typename T>
R Convert(T v) {
  if constexpr (std::is_same_v<R, T>) {
    return v;
  } else {
    return R(static_cast<ComputeTypeT<T>>(v));
  }
}

// Calls f(TypeTag<T>{}, TypeTag<R>{}) for the descriptor's types.
template <typename F>
void VisitSampleTypes(const SampleDesc& d, F&& f) {
  VisitType(d.type, [&](auto type) {
    VisitType(d.result_type, [&](auto result_type) {
      using T = typename decltype(type)::type;
      using R = typename decltype(result_type)::type;
      constexpr DType t = DTypeOf<T>::value, r = DTypeOf<R>::value;
      if constexpr ((IsFloating(t) || IsInteger(t)) && (t == r || IsFloating(r))) f(type, result_type);
    });
  });
}

}  // namespace xpu::plain

#endif  // TENSORFLOW_PLUGIN_BACKENDS_PLAIN_SAMPLE_H_

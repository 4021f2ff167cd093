// The arithmetic of Scatter on one element, the same in every backend on host memory.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_SCATTER_OP_H_
#define TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_SCATTER_OP_H_

#include <cstdint>
#include <type_traits>

#include "tensorflow_plugin/primitives/check.h"
#include "tensorflow_plugin/primitives/descriptors.h"
#include "tensorflow_plugin/primitives/status.h"
#include "tensorflow_plugin/primitives/types.h"

namespace xpu::host_runtime {

// old op update. Integers wrap around; an integer divided by zero is left as it was (the caller reports it). A value
// that is replaced is not read: it may never have been written, and be neither of the two values of a bool.
template <ScatterKind kind, typename T>
T Combine(const T& old_value, T update) {
  if constexpr (kind == ScatterKind::kUpdate) {
    return update;
  } else if constexpr (std::is_integral_v<T>) {
    // 64-bit unsigned arithmetic: nothing overflows, and narrow types are not promoted to int.
    using U = uint64_t;
    const U a = static_cast<U>(old_value), b = static_cast<U>(update);
    if constexpr (kind == ScatterKind::kAdd) return static_cast<T>(a + b);
    if constexpr (kind == ScatterKind::kSub) return static_cast<T>(a - b);
    if constexpr (kind == ScatterKind::kMul) return static_cast<T>(a * b);
    if constexpr (kind == ScatterKind::kDiv) {
      if (update == 0) return old_value;
      // The lowest value divided by -1 would trap.
      if (std::is_signed_v<T> && update == static_cast<T>(-1)) return static_cast<T>(U{0} - a);
      return static_cast<T>(old_value / update);
    }
    if constexpr (kind == ScatterKind::kMin) return update < old_value ? update : old_value;
    if constexpr (kind == ScatterKind::kMax) return old_value < update ? update : old_value;
  } else {
    using C = ComputeTypeT<T>;
    const C a = static_cast<C>(old_value), b = static_cast<C>(update);
    if constexpr (kind == ScatterKind::kAdd) return static_cast<T>(a + b);
    if constexpr (kind == ScatterKind::kSub) return static_cast<T>(a - b);
    if constexpr (kind == ScatterKind::kMul) return static_cast<T>(a * b);
    if constexpr (kind == ScatterKind::kDiv) return static_cast<T>(a / b);
    if constexpr (kind == ScatterKind::kMin) return static_cast<T>(b < a ? b : a);
    if constexpr (kind == ScatterKind::kMax) return static_cast<T>(a < b ? b : a);
  }
}

// The error of an integer update of 0 in a division; `j` and `k` are its place in updates.
inline Status DivisionByZero(int64_t j, int64_t k) {
  return errors::InvalidArgument("integer division by zero: updates[", j, "] has a 0 at position ", k);
}

// Calls f(std::integral_constant<ScatterKind, kind>) for the kinds that T has; false (and no call) for others.
template <typename T, typename F>
bool VisitScatter(ScatterKind kind, F&& f) {
  switch (kind) {
#define XPU_CASE(E)                                               \
  case ScatterKind::E:                                            \
    if constexpr (IsDefined(ScatterKind::E, DTypeOf<T>::value)) { \
      f(std::integral_constant<ScatterKind, ScatterKind::E>{});   \
      return true;                                                \
    } else {                                                      \
      return false;                                               \
    }
    XPU_CASE(kUpdate);
    XPU_CASE(kAdd);
    XPU_CASE(kSub);
    XPU_CASE(kMul);
    XPU_CASE(kDiv);
    XPU_CASE(kMin);
    XPU_CASE(kMax);
#undef XPU_CASE
  }
  return false;
}

}  // namespace xpu::host_runtime

#endif  // TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_SCATTER_OP_H_

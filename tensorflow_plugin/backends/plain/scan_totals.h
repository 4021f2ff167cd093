// How running totals go on: what each kind of scan starts from, and what it makes of two totals.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_PLAIN_SCAN_TOTALS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_PLAIN_SCAN_TOTALS_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "tensorflow_plugin/primitives/descriptors.h"

namespace xpu::plain {

template <ScanKind kind, typename C>
C StartOfTotal() {
  if constexpr (kind == ScanKind::kLogSumExp) return -std::numeric_limits<C>::infinity();
  return C(kind == ScanKind::kProd ? 1 : 0);
}

template <ScanKind kind, typename C>
C Total(C a, C b) {
  if constexpr (kind == ScanKind::kLogSumExp) {
    if (std::isnan(a) || std::isnan(b)) return a + b;
    const C larger = std::max(a, b), smaller = std::min(a, b);
    if (std::isinf(larger)) return larger;  // equal infinities have no difference
    return larger + std::log1p(std::exp(smaller - larger));
  } else if constexpr (std::is_integral_v<C>) {
    const uint64_t x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);  // which wrap
    return static_cast<C>(kind == ScanKind::kProd ? x * y : x + y);
  } else if constexpr (kind == ScanKind::kProd) {
    return a * b;
  } else {
    return a + b;
  }
}

// Calls f(TypeTag<T>{}, constant of the kind) for a scan that is defined (check.h).
template <typename F>
void VisitScan(const ScanDesc& desc, F&& f) {
  VisitType(desc.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (IsFloating(DTypeOf<T>::value)) {
      if (desc.kind == ScanKind::kLogSumExp) f(tag, std::integral_constant<ScanKind, ScanKind::kLogSumExp>());
    }
    if constexpr (DTypeOf<T>::value != DType::kBool) {
      if (desc.kind == ScanKind::kSum) f(tag, std::integral_constant<ScanKind, ScanKind::kSum>());
      if (desc.kind == ScanKind::kProd) f(tag, std::integral_constant<ScanKind, ScanKind::kProd>());
    }
  });
}

}  // namespace xpu::plain

#endif  // TENSORFLOW_PLUGIN_BACKENDS_PLAIN_SCAN_TOTALS_H_

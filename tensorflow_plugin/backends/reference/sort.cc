#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "tensorflow_plugin/backends/reference/kernels.h"

namespace xpu::reference {
namespace {

template <typename T, typename I>
void Sort(const SortDesc& desc, const T* x, T* elements, I* positions) {
  using C = ComputeTypeT<T>;
  std::vector<int64_t> order(desc.n);
  for (int64_t r = 0; r < desc.rows; ++r, x += desc.n, elements += desc.k, positions += desc.k) {
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
      const C a = static_cast<C>(x[i]), b = static_cast<C>(x[j]);
      if (a != a || b != b) return a == a && b != b;
      return desc.descending ? a > b : a < b;
    });
    for (int64_t i = 0; i < desc.k; ++i) {
      elements[i] = x[order[i]];
      positions[i] = static_cast<I>(order[i]);
    }
  }
}

}  // namespace

Status ReferenceKernels::Run(const SortDesc& desc, const Args& args, const host_runtime::ThreadTeam&) const {
  VisitType(desc.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (IsFloating(DTypeOf<T>::value) || IsInteger(DTypeOf<T>::value)) {
      VisitType(desc.index_type, [&](auto index_tag) {
        using I = typename decltype(index_tag)::type;
        if constexpr (IsSignedInteger(DTypeOf<I>::value)) {
          Sort(desc, static_cast<const T*>(args.in[0]), static_cast<T*>(args.out[0]), static_cast<I*>(args.out[1]));
        }
      });
    }
  });
  return OkStatus();
}

}  // namespace xpu::reference

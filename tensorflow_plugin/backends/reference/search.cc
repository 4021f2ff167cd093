#include <cstdint>

#include "tensorflow_plugin/backends/reference/kernels.h"

namespace xpu::reference {
namespace {

// The first position of a sorted row whose element is not before the value.
template <typename T>
int64_t Search(const T* row, int64_t n, T x, bool upper) {
  using C = ComputeTypeT<T>;
  const C value = static_cast<C>(x);
  int64_t low = 0, high = n;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    const C element = static_cast<C>(row[middle]);
    if (upper ? !(value < element) : element < value) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

}  // namespace

Status ReferenceKernels::Run(const SearchDesc& desc, const Args& args, const host_runtime::ThreadTeam&) const {
  VisitType(desc.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (IsFloating(DTypeOf<T>::value) || IsInteger(DTypeOf<T>::value)) {
      VisitType(desc.index_type, [&](auto index_tag) {
        using I = typename decltype(index_tag)::type;
        if constexpr (IsSignedInteger(DTypeOf<I>::value)) {
          const T *sorted = static_cast<const T*>(args.in[0]), *values = static_cast<const T*>(args.in[1]);
          for (int64_t i = 0; i < desc.rows * desc.m; ++i) {
            static_cast<I*>(args.out[0])[i] =
                static_cast<I>(Search(sorted + i / desc.m * desc.n, desc.n, values[i], desc.upper));
          }
        }
      });
    }
  });
  return OkStatus();
}

}  // namespace xpu::reference

#include <algorithm>
#include <cstdint>

#include "tensorflow_plugin/backends/reference/kernels.h"

namespace xpu::reference {
namespace {

template <typename T, typename I>
void Unique(const UniqueDesc& desc, const T* x, I* numbers, int64_t* firsts, int64_t* count) {
  using C = ComputeTypeT<T>;
  *count = 0;
  for (int64_t i = 0; i < desc.n; ++i) {
    const T* row = x + i * desc.inner;
    const auto same = [&](int64_t first) {
      const T* other = x + first * desc.inner;
      return std::equal(row, row + desc.inner, other,
                        [](const T& a, const T& b) { return static_cast<C>(a) == static_cast<C>(b); });
    };
    const int64_t number = std::find_if(firsts, firsts + *count, same) - firsts;
    if (number == *count) firsts[(*count)++] = i;
    numbers[i] = static_cast<I>(number);
  }
  std::fill(firsts + *count, firsts + desc.n, -1);
}

}  // namespace

Status ReferenceKernels::Run(const UniqueDesc& desc, const Args& args, const host_runtime::ThreadTeam&) const {
  VisitType(desc.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    VisitType(desc.index_type, [&](auto index_tag) {
      using I = typename decltype(index_tag)::type;
      if constexpr (IsSignedInteger(DTypeOf<I>::value)) {
        Unique(desc, static_cast<const T*>(args.in[0]), static_cast<I*>(args.out[0]),
               static_cast<int64_t*>(args.out[1]), static_cast<int64_t*>(args.out[2]));
      }
    });
  });
  return OkStatus();
}

}  // namespace xpu::reference

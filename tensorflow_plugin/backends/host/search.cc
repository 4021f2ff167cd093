#include <algorithm>
#include <cstdint>

#include "tensorflow_plugin/backends/host/kernels.h"
#include "tensorflow_plugin/backends/host/order_keys.h"

namespace xpu::host {
namespace {

// How many elements of a sorted row come before the value. The number of steps depends on n alone and none branches, so
// that the processor searches for several values at a time.
template <typename T, bool upper>
int64_t Before(const T* row, int64_t n, ComputeTypeT<T> value) {
  using C = ComputeTypeT<T>;
  const auto before = [&](T element) {
    return upper ? !(value < static_cast<C>(element)) : static_cast<C>(element) < value;
  };
  const T* first = row;
  for (; n > 1; n -= n / 2) first += before(first[n / 2 - 1]) ? n / 2 : 0;
  return first - row + (n == 1 && before(*first));
}

template <typename T, bool upper, typename I>
void Search(const SearchDesc& desc, const Args& args, int64_t grain, const runtime::ThreadTeam& team) {
  const T *sorted = static_cast<const T*>(args.in[0]), *values = static_cast<const T*>(args.in[1]);
  I* out = static_cast<I*>(args.out[0]);
  team.ParallelFor(desc.rows * desc.m, grain, [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t r = begin / desc.m, row_end = std::min(end, (r + 1) * desc.m);
      const T* row = sorted + r * desc.n;
      for (; begin < row_end; ++begin) out[begin] = static_cast<I>(Before<T, upper>(row, desc.n, values[begin]));
    }
  });
}

}  // namespace

Status HostKernels::Run(const SearchDesc& desc, const Args& args, const runtime::ThreadTeam& team) const {
  const double ns = static_cast<double>(EstimateNs(desc)) / static_cast<double>(desc.rows * desc.m);
  const int64_t grain = std::max<int64_t>(1, static_cast<int64_t>(20000 / ns));
  VisitType(desc.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (kHasOrder<T>) {
      VisitType(desc.index_type, [&](auto index_tag) {
        using I = typename decltype(index_tag)::type;
        if constexpr (IsSignedInteger(DTypeOf<I>::value)) {
          desc.upper ? Search<T, true, I>(desc, args, grain, team) : Search<T, false, I>(desc, args, grain, team);
        }
      });
    }
  });
  return OkStatus();
}

}  // namespace xpu::host

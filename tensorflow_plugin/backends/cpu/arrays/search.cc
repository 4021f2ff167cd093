#include <algorithm>
#include <cstdint>

#include "tensorflow_plugin/backends/cpu/arrays/order_keys.h"
#include "tensorflow_plugin/backends/cpu/kernels.h"

namespace xpu::cpu {
namespace {

// Rows so short that their elements are counted.
constexpr int64_t kShortRow = 16;
// Values looked at together.
constexpr int64_t kBlock = 256;

// 1 if an element of a sorted row comes before the place for the value.
template <bool upper, typename C>
int64_t IsBefore(C element, C value) {
  return upper ? !(value < element) : element < value;
}

// How many elements do. The number of steps depends on n alone and none branches, so that the processor searches for
// several values at a time.
template <typename T, bool upper>
int64_t Before(const T* row, int64_t n, ComputeTypeT<T> value) {
  using C = ComputeTypeT<T>;
  const T* first = row;
  for (; n > 1; n -= n / 2) first += -IsBefore<upper>(static_cast<C>(first[n / 2 - 1]), value) & (n / 2);
  return first - row + (n == 1 && IsBefore<upper>(static_cast<C>(*first), value) != 0);
}

template <typename T, bool upper, typename I>
void Count(const T* row, int64_t n, const T* values, int64_t m, I* out) {
  using C = ComputeTypeT<T>;
  C x[kBlock];
  for (int64_t i = 0; i < m; ++i) {
    x[i] = static_cast<C>(values[i]);
    out[i] = 0;
  }
  for (int64_t j = 0; j < n; ++j) {
    const C element = static_cast<C>(row[j]);
    for (int64_t i = 0; i < m; ++i) out[i] = static_cast<I>(out[i] + IsBefore<upper>(element, x[i]));
  }
}

template <typename T, bool upper, typename I>
void Search(const SearchDesc& desc, const Args& args, int64_t grain, const host_runtime::ThreadTeam& team) {
  const T *sorted = static_cast<const T*>(args.in[0]), *values = static_cast<const T*>(args.in[1]);
  I* out = static_cast<I*>(args.out[0]);
  team.ParallelFor(desc.rows * desc.m, grain, [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t r = begin / desc.m, row_end = std::min(end, (r + 1) * desc.m);
      const T* row = sorted + r * desc.n;
      for (; desc.n <= kShortRow && begin < row_end; begin = std::min(begin + kBlock, row_end)) {
        Count<T, upper>(row, desc.n, values + begin, std::min(kBlock, row_end - begin), out + begin);
      }
      for (; begin < row_end; ++begin) out[begin] = static_cast<I>(Before<T, upper>(row, desc.n, values[begin]));
    }
  });
}

}  // namespace

Status CpuKernels::Run(const SearchDesc& desc, const Args& args, const host_runtime::ThreadTeam& team) const {
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

}  // namespace xpu::cpu

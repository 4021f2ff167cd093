#include <algorithm>
#include <cstdint>
#include <vector>

#include "tensorflow_plugin/backends/cpu/kernels.h"

namespace xpu::cpu {
namespace {

// Elements that one thread counts, and later writes, at a time.
constexpr int64_t kBlock = 16 << 10;

template <typename T>
bool NotZero(T v) {
  return v != T(0);
}
// By their bits: converting costs more than the rest.
bool NotZero(Half v) { return (v.bits & 0x7fff) != 0; }
bool NotZero(BFloat16 v) { return (v.bits & 0x7fff) != 0; }

template <typename T>
int64_t CountRange(const T* x, int64_t begin, int64_t end) {
  int64_t count = 0;
  for (int64_t i = begin; i < end; ++i) count += NotZero(x[i]);
  return count;
}

// Writes the coordinates of the elements [begin, end) that are not zero.
template <typename T>
void WriteRange(const Dims& shape, const T* x, int64_t begin, int64_t end, int64_t* out) {
  const int rank = shape.rank(), last = rank - 1;
  if (rank == 1) {
    for (int64_t i = begin; i < end; ++i) {
      if (NotZero(x[i])) *out++ = i;
    }
    return;
  }
  Dims at(rank, 0);
  int64_t rest = begin;
  for (int axis = last; axis >= 0; --axis) {
    at[axis] = rest % shape[axis];
    rest /= shape[axis];
  }
  for (int64_t i = begin; i < end;) {
    const int64_t row_end = std::min(end, i + shape[last] - at[last]);
    for (; i < row_end; ++i, ++at[last]) {
      if (!NotZero(x[i])) continue;
      out = std::copy_n(at.begin(), rank, out);
    }
    for (int axis = last; axis > 0 && at[axis] == shape[axis]; --axis) {
      at[axis] = 0;
      ++at[axis - 1];
    }
  }
}

template <typename T>
Status Compact(const CompactDesc& desc, const T* x, int64_t* out, const host_runtime::ThreadTeam& team) {
  const int64_t n = desc.shape.num_elements(), rank = desc.shape.rank();
  const int64_t blocks = (n + kBlock - 1) / kBlock;
  // First each block's own count, then the number of elements that the blocks before it give.
  std::vector<int64_t> before(blocks);
  team.ParallelFor(blocks, 1, [&](int64_t first, int64_t end) {
    for (int64_t b = first; b < end; ++b) before[b] = CountRange(x, b * kBlock, std::min(n, (b + 1) * kBlock));
  });
  int64_t count = 0;
  for (int64_t& b : before) {
    const int64_t own = b;
    b = count;
    count += own;
  }
  XPU_REQUIRE(count == desc.count,
              errors::InvalidArgument("Compact: ", count, " elements are not zero, expected ", desc.count));
  if (rank == 0) return OkStatus();
  team.ParallelFor(blocks, 1, [&](int64_t first, int64_t end) {
    for (int64_t b = first; b < end; ++b) {
      WriteRange(desc.shape, x, b * kBlock, std::min(n, (b + 1) * kBlock), out + before[b] * rank);
    }
  });
  return OkStatus();
}

}  // namespace

Status CpuKernels::Run(const CompactDesc& desc, const Args& args, const host_runtime::ThreadTeam& team) const {
  Status status;
  VisitType(desc.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    status = Compact(desc, static_cast<const T*>(args.in[0]), static_cast<int64_t*>(args.out[0]), team);
  });
  return status;
}

}  // namespace xpu::cpu

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "tensorflow_plugin/backends/cpu/arrays/row_list.h"
#include "tensorflow_plugin/backends/cpu/kernels.h"
#include "tensorflow_plugin/backends/host_runtime/indices.h"

namespace xpu::cpu {
namespace {

// Bytes worth one grain of the team's work.
constexpr int64_t kGrainBytes = 32 << 10;

// Copies row rows[i] of `params` (zeros for -1) to row i of `out`; size is a compile-time constant where it is small.
template <int64_t kSize>
void CopyRows(const int64_t* rows, int64_t n, const char* params, char* out) {
  for (int64_t i = 0; i < n; ++i) {
    if (rows[i] >= 0) {
      std::memcpy(out + i * kSize, params + rows[i] * kSize, kSize);
    } else {
      std::memset(out + i * kSize, 0, kSize);
    }
  }
}

void CopyRows(const int64_t* rows, int64_t n, const char* params, int64_t size, char* out) {
  switch (size) {
#define XPU_CASE(n_bytes) \
  case n_bytes:           \
    return CopyRows<n_bytes>(rows, n, params, out)
    XPU_CASE(1);
    XPU_CASE(2);
    XPU_CASE(4);
    XPU_CASE(8);
    XPU_CASE(16);
    XPU_CASE(32);
    XPU_CASE(64);
#undef XPU_CASE
  }
  for (int64_t i = 0; i < n; ++i) {
    if (rows[i] >= 0) {
      std::memcpy(out + i * size, params + rows[i] * size, size);
    } else {
      std::memset(out + i * size, 0, size);
    }
  }
}

template <typename I>
Status Gather(const GatherDesc& desc, const char* params, const I* indices, char* out,
              const host_runtime::ThreadTeam& team) {
  const int64_t row_size = desc.inner * static_cast<int64_t>(desc.element_size);
  const int64_t table = desc.dims.num_elements() * row_size;  // one [dims..., inner]
  const int64_t total = desc.batch * desc.outer * desc.num_indices;
  if (total == 0) return OkStatus();
  FirstBad bad;
  // A few long rows are cut into pieces, so that there is something to share.
  const bool whole = row_size <= kGrainBytes || total >= 8 * team.size();
  const int64_t pieces = whole ? 1 : (row_size + kGrainBytes - 1) / kGrainBytes;
  const int64_t piece_size = whole ? row_size : kGrainBytes;
  const int64_t grain = std::max<int64_t>(1, kGrainBytes / std::max<int64_t>(piece_size, 16));
  team.ParallelFor(total * pieces, grain, [&](int64_t begin, int64_t end) {
    int64_t rows[kRowBlock];
    while (begin < end) {
      const int64_t first = begin / pieces;                  // output row
      const int64_t table_index = first / desc.num_indices;  // b * outer + o
      const int64_t j = first % desc.num_indices;
      const int64_t b = table_index / desc.outer;
      const int64_t position = b * desc.num_indices + j;
      const int64_t n = whole ? std::min({end - begin, desc.num_indices - j, kRowBlock}) : 1;
      ResolveRows(indices, position, n, desc.dims, false, rows, &bad);
      const char* from = params + table_index * table;
      char* to = out + first * row_size;
      if (row_size == 0) {
        // The indices are all there is.
      } else if (whole) {
        CopyRows(rows, n, from, row_size, to);
      } else {
        const int64_t offset = begin % pieces * piece_size;
        const int64_t size = std::min(piece_size, row_size - offset);
        if (rows[0] >= 0) {
          std::memcpy(to + offset, from + rows[0] * row_size + offset, size);
        } else {
          std::memset(to + offset, 0, size);
        }
      }
      begin += n;
    }
  });
  if (!bad.any()) return OkStatus();
  return host_runtime::IndexError(host_runtime::PositionOf(bad.position(), desc.batch, desc.num_indices),
                                  indices + bad.position() * desc.dims.rank(), desc.dims);
}

}  // namespace

Status CpuKernels::Run(const GatherDesc& desc, const Args& args, const host_runtime::ThreadTeam& team) const {
  return host_runtime::VisitIndexType(desc.index_type, [&](auto tag) {
    using I = typename decltype(tag)::type;
    return Gather(desc, static_cast<const char*>(args.in[0]), static_cast<const I*>(args.in[1]),
                  static_cast<char*>(args.out[0]), team);
  });
}

}  // namespace xpu::cpu

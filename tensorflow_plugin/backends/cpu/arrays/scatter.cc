#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "tensorflow_plugin/backends/cpu/arrays/row_list.h"
#include "tensorflow_plugin/backends/cpu/kernels.h"
#include "tensorflow_plugin/backends/cpu/scratch.h"
#include "tensorflow_plugin/backends/host_runtime/indices.h"
#include "tensorflow_plugin/backends/host_runtime/scatter_op.h"

namespace xpu::cpu {
namespace {

// Elements worth one grain of the team's work.
constexpr int64_t kGrainElements = 16 << 10;

// Rows shorter than this cost less to write than to be looked at by every thread.
constexpr int64_t kShortRow = 4;

// The part of the buffer that one thread writes. Every thread walks all indices in order, so duplicates combine in
// order whatever the number of threads.
struct ScatterPart {
  int64_t row_begin, row_end;
  int64_t column_begin, column_end;
  int64_t index_begin, index_end;  // what it looks at for that
};

// out[k] op= updates[k]; `step` 0 uses one update for all.
template <ScatterKind kind, typename T>
void CombineRow(const T* __restrict updates, int64_t step, int64_t n, T* __restrict out) {
  if (step == 0) {
    const T update = updates[0];
    for (int64_t k = 0; k < n; ++k) out[k] = host_runtime::Combine<kind>(out[k], update);
  } else if constexpr (kind == ScatterKind::kUpdate) {
    std::memcpy(out, updates, n * sizeof(T));
  } else {
    for (int64_t k = 0; k < n; ++k) out[k] = host_runtime::Combine<kind>(out[k], updates[k]);
  }
}

// Combines the updates of the indices first + at[0], first + at[1], ..., whose rows are rows[at[...]].
template <ScatterKind kind, typename T>
void CombineBlock(const ScatterDesc& desc, const ScatterPart& part, const int64_t* rows, int64_t first,
                  const int32_t* at, int64_t n, const T* updates, T* buffer, FirstBad* zero_divisor) {
  const int64_t columns = part.column_end - part.column_begin;
  const int64_t step = desc.scalar_update ? 0 : 1;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t position = (first + at[i]) * desc.inner + part.column_begin;
    const T* from = updates + step * position;
    T* to = buffer + rows[at[i]] * desc.inner + part.column_begin;
    if constexpr (kind == ScatterKind::kDiv && std::is_integral_v<T>) {
      const T* end = from + (step ? columns : 1);
      const T* zero = std::find(from, end, T{0});
      if (zero != end) zero_divisor->Report(position + (zero - from));
    }
    if (columns == 1) {
      *to = host_runtime::Combine<kind>(*to, *from);
    } else {
      CombineRow<kind>(from, step, columns, to);
    }
  }
}

// Which of rows[0..n) are in [begin, end), without a branch that the processor could not predict.
int64_t Select(const int64_t* rows, int64_t n, int64_t begin, int64_t end, int32_t* at) {
  const uint64_t height = static_cast<uint64_t>(end - begin);
  int64_t count = 0;
  for (int64_t i = 0; i < n; ++i) {
    at[count] = static_cast<int32_t>(i);
    count += static_cast<uint64_t>(rows[i] - begin) < height;  // false for -1, which is before every part
  }
  return count;
}

// True if integers are added up, one by one, whose sum does not depend on the order.
bool IsCount(const ScatterDesc& desc) {
  return desc.kind == ScatterKind::kAdd && IsInteger(desc.type) && desc.inner == 1;
}

// True if one number is added for every index, and there are many more indices than rows. Each thread may then count in
// a table of its own, which costs as much as to count so many more.
bool IsHistogram(const ScatterDesc& desc, int64_t threads) {
  return IsCount(desc) && desc.scalar_update && desc.dims.rank() == 1 && desc.num_indices < (int64_t{1} << 32) &&
         desc.dims[0] * threads <= desc.num_indices / 4;
}

// The same for the indices [begin, end), with what no row is for in the first of rows + 1 counts. Two tables, so that a
// count does not wait for the one before, which may be in the same row.
template <typename I>
void CountRows(const I* indices, int64_t begin, int64_t end, int64_t rows, uint32_t* counts, uint32_t* others) {
  const auto place = [&](int64_t i) {
    const uint64_t row = static_cast<uint64_t>(indices[i]);
    return row < static_cast<uint64_t>(rows) ? row + 1 : 0;
  };
  int64_t i = begin;
  for (; i + 1 < end; i += 2) {
    ++counts[place(i)];
    ++others[place(i + 1)];
  }
  if (i < end) ++counts[place(i)];
}

template <typename I>
void Histogram(const ScatterDesc& desc, const I* indices, const void* update, void* buffer,
               const host_runtime::ThreadTeam& team, FirstBad* bad_index) {
  const int64_t rows = desc.dims[0], all = desc.num_indices;
  const int64_t threads = all < 2 * kGrainElements ? 1 : team.size();
  const int64_t table = rows + 1;
  ScratchFrame scratch;
  uint32_t* const counts = scratch.Get<uint32_t>(2 * threads * table);
  std::memset(counts, 0, 2 * threads * table * sizeof(uint32_t));
  team.ParallelFor(threads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      uint32_t* const own = counts + 2 * t * table;
      CountRows(indices, t * all / threads, (t + 1) * all / threads, rows, own, own + table);
    }
  });
  for (int64_t t = 1; t < 2 * threads; ++t) {
    for (int64_t r = 0; r < table; ++r) counts[r] += counts[t * table + r];
  }
  if (counts[0] > 0) {
    int64_t list[kRowBlock];
    for (int64_t first = 0; first < all && !bad_index->any(); first += kRowBlock) {
      ResolveRows(indices, first, std::min(kRowBlock, all - first), desc.dims, desc.skip_negative, list, bad_index);
    }
  }
  VisitType(desc.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (IsInteger(DTypeOf<T>::value)) {
      const uint64_t one = static_cast<uint64_t>(*static_cast<const T*>(update));
      T* out = static_cast<T*>(buffer);
      for (int64_t r = 0; r < rows; ++r) {
        out[r] = host_runtime::Combine<ScatterKind::kAdd>(out[r], static_cast<T>(counts[r + 1] * one));
      }
    }
  });
}

// The part that does not depend on the index type, with indices resolved by `resolve`.
using Resolve = host_runtime::FunctionRef<void(int64_t first, int64_t n, int64_t* rows)>;
void Scatter(const ScatterDesc& desc, Resolve resolve, const void* updates, void* buffer,
             const host_runtime::ThreadTeam& team, FirstBad* zero_divisor) {
  const int64_t rows = desc.dims.num_elements();
  auto run = [&](const ScatterPart& part, void* buffer) {
    int64_t list[kRowBlock];
    int32_t at[kRowBlock];
    for (int64_t first = part.index_begin; first < part.index_end; first += kRowBlock) {
      const int64_t n = std::min(kRowBlock, part.index_end - first);
      resolve(first, n, list);
      const int64_t selected = Select(list, n, part.row_begin, part.row_end, at);
      VisitType(desc.type, [&](auto tag) {
        using T = typename decltype(tag)::type;
        host_runtime::VisitScatter<T>(desc.kind, [&](auto kind) {
          CombineBlock<kind.value>(desc, part, list, first, at, selected, static_cast<const T*>(updates),
                                   static_cast<T*>(buffer), zero_divisor);
        });
      });
    }
  };
  const int64_t threads = team.size();
  const int64_t work = desc.num_indices * desc.inner;
  // A cache line per thread and row at least, or they would write to each other's lines.
  const int64_t line = std::max<int64_t>(1, 64 / static_cast<int64_t>(SizeOf(desc.type)));
  const int64_t all = desc.num_indices;
  if (threads > 1 && work >= 4 * kGrainElements && IsCount(desc) && rows * threads <= work / 4) {
    // Sums of integers are the same in any order: each thread has its own.
    ScratchFrame scratch;
    const int64_t bytes = rows * static_cast<int64_t>(SizeOf(desc.type));
    char* sums = scratch.Get<char>(threads * bytes);
    std::memset(sums, 0, threads * bytes);
    team.ParallelFor(threads, 1, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        run({0, rows, 0, 1, t * all / threads, (t + 1) * all / threads}, sums + t * bytes);
      }
    });
    VisitType(desc.type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (IsInteger(DTypeOf<T>::value)) {
        const T* sum = reinterpret_cast<const T*>(sums);
        T* out = static_cast<T*>(buffer);
        for (int64_t i = 0; i < threads * rows; ++i) {
          out[i % rows] = host_runtime::Combine<ScatterKind::kAdd>(out[i % rows], sum[i]);
        }
      }
    });
  } else if (threads == 1 || rows == 0 || work < 2 * kGrainElements || desc.inner < kShortRow) {
    run({0, rows, 0, desc.inner, 0, all}, buffer);
  } else if (desc.inner >= 4 * line * threads) {
    const int64_t lines = (desc.inner + line - 1) / line;
    team.ParallelFor(threads, 1, [&](int64_t begin, int64_t end) {
      run({0, rows, std::min(desc.inner, begin * lines / threads * line),
           std::min(desc.inner, end * lines / threads * line), 0, all},
          buffer);
    });
  } else {
    team.ParallelFor(threads, 1, [&](int64_t begin, int64_t end) {
      const ScatterPart part{begin * rows / threads, end * rows / threads, 0, desc.inner, 0, all};
      if (part.row_begin < part.row_end) run(part, buffer);
    });
  }
}

}  // namespace

Status CpuKernels::Run(const ScatterDesc& desc, const Args& args, const host_runtime::ThreadTeam& team) const {
  return host_runtime::VisitIndexType(desc.index_type, [&](auto index_tag) {
    using I = typename decltype(index_tag)::type;
    const I* indices = static_cast<const I*>(args.in[0]);
    FirstBad bad, zero_divisor;
    auto resolve = [&](int64_t first, int64_t n, int64_t* rows) {
      ResolveRows(indices, first, n, desc.dims, desc.skip_negative, rows, &bad);
    };
    if (IsHistogram(desc, team.size())) {
      Histogram(desc, indices, args.in[1], args.out[0], team, &bad);
    } else {
      Scatter(desc, resolve, args.in[1], args.out[0], team, &zero_divisor);
    }
    if (bad.any()) {
      return host_runtime::IndexError(std::to_string(bad.position()), indices + bad.position() * desc.dims.rank(),
                                      desc.dims);
    }
    if (zero_divisor.any()) {
      return host_runtime::DivisionByZero(zero_divisor.position() / desc.inner, zero_divisor.position() % desc.inner);
    }
    return OkStatus();
  });
}

}  // namespace xpu::cpu

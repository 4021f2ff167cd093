// Indices turned into row numbers, a block at a time, for Gather and Scatter.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_ARRAYS_ROW_LIST_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_ARRAYS_ROW_LIST_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>

#include "tensorflow_plugin/backends/host_runtime/indices.h"
#include "tensorflow_plugin/primitives/dims.h"

namespace xpu::cpu {

// Rows resolved at a time; they stay in the L1 cache.
inline constexpr int64_t kRowBlock = 512;

// The smallest position that was reported, whichever thread found it.
class FirstBad {
 public:
  void Report(int64_t position) {
    int64_t seen = position_.load(std::memory_order_relaxed);
    while (position < seen && !position_.compare_exchange_weak(seen, position, std::memory_order_relaxed)) {
    }
  }
  bool any() const { return position() != kNone; }
  int64_t position() const { return position_.load(std::memory_order_relaxed); }

 private:
  static constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
  std::atomic<int64_t> position_{kNone};
};

// rows[i] = the row that index first + i names, or -1 if it is out of range. That is reported, unless the index has a
// negative coordinate and skip_negative is set.
template <typename I>
void ResolveRows(const I* indices, int64_t first, int64_t n, const Dims& dims, bool skip_negative, int64_t* rows,
                 FirstBad* bad) {
  const int depth = dims.rank();
  const I* index = indices + first * depth;
  bool all_good = true;
  if (depth == 1) {
    const uint64_t limit = static_cast<uint64_t>(dims[0]);
    for (int64_t i = 0; i < n; ++i) {
      const bool good = static_cast<uint64_t>(index[i]) < limit;
      rows[i] = good ? static_cast<int64_t>(index[i]) : -1;
      all_good &= good;
    }
  } else {
    for (int64_t i = 0; i < n; ++i) {
      rows[i] = host_runtime::RowOf(index + i * depth, dims);
      all_good &= rows[i] >= 0;
    }
  }
  if (all_good) return;
  for (int64_t i = 0; i < n; ++i) {
    if (rows[i] >= 0) continue;
    const I* bad_index = index + i * depth;
    if (skip_negative && std::any_of(bad_index, bad_index + depth, [](I c) { return c < I{0}; })) continue;
    bad->Report(first + i);
    return;
  }
}

}  // namespace xpu::cpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_ARRAYS_ROW_LIST_H_

// Elements become items: a key that is an unsigned integer in the wanted order (order_keys.h), and the position. No two
// items are equal, so that any way of sorting them keeps the order of equal elements.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "tensorflow_plugin/backends/cpu/arrays/order_keys.h"
#include "tensorflow_plugin/backends/cpu/kernels.h"
#include "tensorflow_plugin/backends/cpu/scratch.h"

namespace xpu::cpu {
namespace {

constexpr int64_t kBlock = 256;         // keys looked at together
constexpr int64_t kFewItems = 200;      // up to which comparing is faster than distributing
constexpr int64_t kSegment = 32 << 10;  // elements of a row that are worth a thread
constexpr int64_t kSelectRatio = 8;     // the first n / 8 are looked for, more are sorted with all others
constexpr int kDigit = 8;               // bits of a key that are distributed by at a time
constexpr int kBuckets = 1 << kDigit;

// A key of 32 bits and a position below 2^32 in one integer.
struct Narrow {
  using Item = uint64_t;
  using Key = uint32_t;
  static Item Make(Key key, int64_t position) { return uint64_t{key} << 32 | static_cast<uint64_t>(position); }
  static Key KeyOf(Item item) { return static_cast<Key>(item >> 32); }
  static int64_t PositionOf(Item item) { return static_cast<int64_t>(item & 0xffffffff); }
};
struct Wide {
  using Key = uint64_t;
  struct Item {
    Key key;
    int64_t position;
    bool operator<(const Item& other) const { return key != other.key ? key < other.key : position < other.position; }
  };
  static Item Make(Key key, int64_t position) { return {key, position}; }
  static Key KeyOf(const Item& item) { return item.key; }
  static int64_t PositionOf(const Item& item) { return item.position; }
};

// Sorts n items, whose positions ascend, with room for as many.
template <typename F>
void SortItems(typename F::Item* items, typename F::Item* room, int64_t n) {
  using Item = typename F::Item;
  if (n <= kFewItems) {
    std::sort(items, items + n);
    return;
  }
  constexpr int kDigits = sizeof(typename F::Key) * 8 / kDigit;
  const auto digit_of = [](const Item& item, int d) { return F::KeyOf(item) >> (d * kDigit) & (kBuckets - 1); };
  int64_t counts[kDigits][kBuckets] = {};
  bool sorted = true;
  for (int64_t i = 0; i < n; ++i) {
    for (int d = 0; d < kDigits; ++d) ++counts[d][digit_of(items[i], d)];
    sorted &= i == 0 || F::KeyOf(items[i - 1]) <= F::KeyOf(items[i]);
  }
  if (sorted) return;
  Item* from = items;
  Item* to = room;
  for (int d = 0; d < kDigits; ++d) {
    if (counts[d][digit_of(from[0], d)] == n) continue;  // all have this one
    Item* next[kBuckets];
    Item* end = to;
    for (int b = 0; b < kBuckets; ++b) {
      next[b] = end;
      end += counts[d][b];
    }
    for (int64_t i = 0; i < n; ++i) *next[digit_of(from[i], d)]++ = from[i];
    std::swap(from, to);
  }
  if (from != items) std::copy_n(from, n, items);
}

// Merges sorted a and b into elements [begin, end) of what they make.
template <typename Item>
void MergePart(const Item* a, int64_t na, const Item* b, int64_t nb, int64_t begin, int64_t end, Item* out) {
  // How many of the first `count` come from a.
  const auto from_a = [&](int64_t count) {
    int64_t low = std::max<int64_t>(0, count - nb), high = std::min(count, na);
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (a[middle] < b[count - middle - 1]) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  };
  const int64_t first = from_a(begin), last = from_a(end);
  std::merge(a + first, a + last, b + (begin - first), b + (end - last), out + begin);
}

// keys[i] = that of element begin + i of a row.
template <typename Key>
using KeysFn = void (*)(const void* row, int64_t begin, int64_t n, bool descending, Key* keys);

template <typename T, typename Key>
void Keys(const void* row, int64_t begin, int64_t n, bool descending, Key* keys) {
  const T* x = static_cast<const T*>(row) + begin;
  const OrderKey<T> flip = descending ? ~OrderKey<T>{0} : OrderKey<T>{0};
  for (int64_t i = 0; i < n; ++i) keys[i] = OrderKeyOf(x[i], flip);
}

template <typename F>
class Sorter {
 public:
  using Item = typename F::Item;
  using Key = typename F::Key;

  Sorter(const SortDesc& desc, const Args& args, KeysFn<Key> keys)
      : desc_(desc), args_(args), keys_(keys), k_(desc.k), select_(desc.k * kSelectRatio <= desc.n) {}

  // Each row by one thread.
  void SortRows(double row_ns, const host_runtime::ThreadTeam& team) const {
    const int64_t grain = std::max<int64_t>(1, static_cast<int64_t>(20000 / row_ns));
    team.ParallelFor(desc_.rows, grain, [&](int64_t begin, int64_t end) {
      ScratchFrame scratch;
      const int64_t capacity = Capacity(desc_.n);
      Item* items = scratch.Get<Item>(capacity);
      Item* room = scratch.Get<Item>(capacity);
      for (int64_t r = begin; r < end; ++r) {
        SortPart(r, 0, desc_.n, items, room);
        Store(r, 0, items, k_);
      }
    });
  }

  // One row by all threads: each sorts a part, and pairs of parts are merged, each pair by all threads.
  void SortLongRow(int64_t row, const host_runtime::ThreadTeam& team) const {
    const int64_t n = desc_.n;
    const int64_t parts = std::min<int64_t>(team.size(), n / kSegment), part = (n + parts - 1) / parts;
    const int64_t stride = Capacity(part);
    ScratchFrame scratch;
    Item* items = scratch.Get<Item>(parts * stride);
    Item* room = scratch.Get<Item>(parts * stride);
    struct SortedRun {
      int64_t begin, n;
    };
    std::vector<SortedRun> runs(parts);
    team.ParallelFor(parts, 1, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        const int64_t first = std::min(p * part, n), last = std::min(first + part, n);
        SortPart(row, first, last, items + p * stride, room + p * stride);
        runs[p] = {p * stride, std::min(last - first, k_)};
      }
    });
    while (runs.size() > 1) {
      std::vector<SortedRun> merged;
      for (size_t i = 0; i < runs.size(); i += 2) {
        const SortedRun a = runs[i], b = i + 1 < runs.size() ? runs[i + 1] : SortedRun{a.begin, 0};
        merged.push_back({a.begin, std::min(a.n + b.n, k_)});
        team.ParallelFor(merged.back().n, kSegment, [&](int64_t begin, int64_t end) {
          MergePart(items + a.begin, a.n, items + b.begin, b.n, begin, end, room + a.begin);
        });
      }
      std::swap(items, room);
      runs = merged;
    }
    team.ParallelFor(k_, kSegment / 4,
                     [&](int64_t begin, int64_t end) { Store(row, begin, items + begin, end - begin); });
  }

 private:
  // How many items too many are kept before all but the first k are dropped. The sooner, the fewer come after them.
  int64_t Surplus() const { return std::max(k_, kBlock / 8); }

  // Items that a part of n elements takes room for.
  int64_t Capacity(int64_t n) const { return select_ ? std::min(n, k_ + Surplus() + kBlock) : n; }

  const char* Row(int64_t row) const {
    return static_cast<const char*>(args_.in[0]) + row * desc_.n * static_cast<int64_t>(SizeOf(desc_.type));
  }

  // The first items of elements [begin, end) of a row, in order.
  void SortPart(int64_t row, int64_t begin, int64_t end, Item* items, Item* room) const {
    if (select_) {
      const int64_t n = Select(Row(row), begin, end, items);
      std::sort(items, items + n);
      return;
    }
    Key keys[kBlock];
    for (int64_t i = begin; i < end; i += kBlock) {
      const int64_t n = std::min(kBlock, end - i);
      keys_(Row(row), i, n, desc_.descending, keys);
      for (int64_t j = 0; j < n; ++j) items[i - begin + j] = F::Make(keys[j], i + j);
    }
    SortItems<F>(items, room, end - begin);
  }

  // Keeps what may be among the first k, and at last those alone; returns how many there are.
  int64_t Select(const char* row, int64_t begin, int64_t end, Item* items) const {
    Key bar = std::numeric_limits<Key>::max();  // what is above it comes too late
    Key keys[kBlock];
    int64_t n = 0;
    for (int64_t i = begin; i < end; i += kBlock) {
      const int64_t count = std::min(kBlock, end - i);
      keys_(row, i, count, desc_.descending, keys);
      int any = 0;
      for (int64_t j = 0; j < count; ++j) any |= keys[j] <= bar;
      if (!any) continue;
      for (int64_t j = 0; j < count; ++j) {
        if (keys[j] <= bar) items[n++] = F::Make(keys[j], i + j);
      }
      if (n < k_ + Surplus() || i + kBlock >= end) continue;
      std::nth_element(items, items + k_ - 1, items + n);
      n = k_;
      if (F::KeyOf(items[k_ - 1]) == 0) break;
      bar = F::KeyOf(items[k_ - 1]) - 1;
    }
    if (n > k_) std::nth_element(items, items + k_ - 1, items + n);
    return std::min(n, k_);
  }

  // Writes the elements that n items stand for, and their positions, from place `at` of a row's results on.
  void Store(int64_t row, int64_t at, const Item* items, int64_t n) const {
    VisitType(desc_.index_type, [&](auto tag) {
      using I = typename decltype(tag)::type;
      if constexpr (IsSignedInteger(DTypeOf<I>::value)) {
        I* positions = static_cast<I*>(args_.out[1]) + row * k_ + at;
        for (int64_t i = 0; i < n; ++i) positions[i] = static_cast<I>(F::PositionOf(items[i]));
      }
    });
    const auto store = [&](auto element) {
      using E = decltype(element);
      const E* x = reinterpret_cast<const E*>(Row(row));
      E* elements = static_cast<E*>(args_.out[0]) + row * k_ + at;
      for (int64_t i = 0; i < n; ++i) elements[i] = x[F::PositionOf(items[i])];
    };
    switch (SizeOf(desc_.type)) {
      case 1:
        return store(uint8_t{});
      case 2:
        return store(uint16_t{});
      case 4:
        return store(uint32_t{});
      default:
        return store(uint64_t{});
    }
  }

  const SortDesc& desc_;
  const Args& args_;
  const KeysFn<Key> keys_;
  const int64_t k_;
  const bool select_;
};

template <typename T, typename F>
void Sort(const SortDesc& desc, const Args& args, double row_ns, const host_runtime::ThreadTeam& team) {
  const Sorter<F> sorter(desc, args, &Keys<T, typename F::Key>);
  if (desc.rows >= team.size() || desc.n < 2 * kSegment) return sorter.SortRows(row_ns, team);
  for (int64_t r = 0; r < desc.rows; ++r) sorter.SortLongRow(r, team);
}

}  // namespace

Status CpuKernels::Run(const SortDesc& desc, const Args& args, const host_runtime::ThreadTeam& team) const {
  const double row_ns = static_cast<double>(EstimateNs(desc)) / static_cast<double>(desc.rows);
  VisitType(desc.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (kHasOrder<T>) {
      if (sizeof(T) < 8 && desc.n <= int64_t{1} << 32) {
        if constexpr (sizeof(T) < 8) Sort<T, Narrow>(desc, args, row_ns, team);
      } else {
        Sort<T, Wide>(desc, args, row_ns, team);
      }
    }
  });
  return OkStatus();
}

}  // namespace xpu::cpu

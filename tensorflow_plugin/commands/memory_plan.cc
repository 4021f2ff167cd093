#include "tensorflow_plugin/commands/memory_plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "tensorflow_plugin/commands/work.h"

namespace xpu::commands {
namespace {

constexpr int64_t kAlignment = 256;

// So many buffers get the places that are best for them, each compared with all others. A smaller buffer gets its place
// when it is written, as an allocator would place it.
constexpr size_t kCompared = 2048;
// So many of the largest buffers may have a smaller one in their middle, of so many bytes at most. Caches do not hold
// larger ones until they are read.
constexpr size_t kTried = 8;
constexpr int64_t kMostCached = 4 << 20;

struct Life {
  int buffer = 0;
  int64_t bytes = 0;
  int first = -1, last = -1;  // commands that touch it
  // If one strand alone touches it: the first command of the adjacent strands, and the strand.
  int strands = -1, strand = Command::kNoStrand;

  // Strands run side by side, so what one of them is done with is not free for another one.
  bool IsAtOnceWith(const Life& other) const {
    if (strands >= 0 && strands == other.strands && strand != other.strand) return true;
    return other.last >= first && last >= other.first;
  }
};

void Touch(const BufferSlice& place, int command, std::vector<Life>* lives) {
  if (place.buffer == BufferSlice::kNowhere) return;
  Life& life = (*lives)[place.buffer];
  if (life.first < 0) life.first = command;
  life.last = command;
}

// The buffers that have their places.
class Places {
 public:
  explicit Places(MemoryPlan* plan) : plan_(plan) {}

  int64_t Lowest(const Life& life) const {
    int64_t offset = 0;
    for (const Life& other : by_offset_) {
      ++Steps();
      if (!life.IsAtOnceWith(other)) continue;
      if (offset + life.bytes <= Offset(other)) break;
      offset = std::max(offset, Offset(other) + other.bytes);
    }
    return offset;
  }

  bool IsFree(const Life& life, int64_t offset) const {
    return std::none_of(by_offset_.begin(), by_offset_.end(), [&](const Life& other) {
      ++Steps();
      return Offset(other) < offset + life.bytes && offset < Offset(other) + other.bytes && life.IsAtOnceWith(other);
    });
  }

  int64_t InMiddleOf(const Life& larger, const Life& life) const {
    return Offset(larger) + (larger.bytes - life.bytes) / 2 / kAlignment * kAlignment;
  }

  void Add(const Life& life, int64_t offset) {
    plan_->offsets[life.buffer] = offset;
    plan_->bytes = std::max(plan_->bytes, offset + life.bytes);
    const auto at =
        std::find_if(by_offset_.begin(), by_offset_.end(), [&](const Life& other) { return Offset(other) > offset; });
    by_offset_.insert(at, life);
  }

 private:
  int64_t Offset(const Life& life) const { return plan_->offsets[life.buffer]; }

  MemoryPlan* plan_;
  std::vector<Life> by_offset_;
};

// Largest first, where nothing lies that lives at the same time: in the middle of a larger one, or at the lowest place.
//
// Two threads share the rows of most buffers, and one of them has the first half. If a buffer lies in the middle of
// another one, their halves coincide. So a line of memory stays in the cache of one thread.
void PlaceLargestFirst(const std::vector<Life>& order, MemoryPlan* plan) {
  Places places(plan);
  for (size_t i = 0; i < order.size(); ++i) {
    const Life& life = order[i];
    const auto end = order.begin() + (life.bytes <= kMostCached ? std::min(i, kTried) : 0);
    const auto larger = std::find_if(
        order.begin(), end, [&](const Life& other) { return places.IsFree(life, places.InMiddleOf(other, life)); });
    places.Add(life, larger == end ? places.Lowest(life) : places.InMiddleOf(*larger, life));
  }
}

// Parts of memory that nobody has at the time.
class Gaps {
 public:
  // Behind `start` all is free.
  explicit Gaps(int64_t start) : end_(start) {}

  // The smallest gap that is large enough, or new memory at the end.
  int64_t Allocate(int64_t bytes) {
    const auto found = by_bytes_.lower_bound({bytes, 0});
    if (found == by_bytes_.end()) {
      int64_t offset = end_;
      if (const auto last = LastUntilEnd(); last != by_offset_.end()) {  // it grows
        offset = last->first;
        Remove(last);
      }
      end_ = offset + bytes;
      return offset;
    }
    const auto [size, offset] = *found;
    Remove(by_offset_.find(offset));
    if (size > bytes) Insert(offset + bytes, size - bytes);
    return offset;
  }

  void Free(int64_t offset, int64_t bytes) {
    const auto after = by_offset_.find(offset + bytes);
    if (after != by_offset_.end()) {
      bytes += after->second;
      Remove(after);
    }
    auto before = by_offset_.lower_bound(offset);
    if (before != by_offset_.begin() && std::prev(before)->first + std::prev(before)->second == offset) {
      --before;
      offset = before->first;
      bytes += before->second;
      Remove(before);
    }
    Insert(offset, bytes);
  }

  int64_t end() const { return end_; }

 private:
  using ByOffset = std::map<int64_t, int64_t>;

  ByOffset::iterator LastUntilEnd() {
    if (by_offset_.empty()) return by_offset_.end();
    const auto last = std::prev(by_offset_.end());
    return last->first + last->second == end_ ? last : by_offset_.end();
  }
  void Insert(int64_t offset, int64_t bytes) {
    by_offset_[offset] = bytes;
    by_bytes_.emplace(bytes, offset);
  }
  void Remove(ByOffset::iterator gap) {
    by_bytes_.erase({gap->second, gap->first});
    by_offset_.erase(gap);
  }

  int64_t end_;
  ByOffset by_offset_;
  std::set<std::pair<int64_t, int64_t>> by_bytes_;
};

// In the order of their lives, behind what has been placed.
void PlaceAsWritten(std::vector<Life> lives, MemoryPlan* plan) {
  std::stable_sort(lives.begin(), lives.end(), [](const Life& a, const Life& b) { return a.first < b.first; });
  Gaps gaps(plan->bytes);
  std::set<std::pair<int, size_t>> alive;  // by their ends
  for (size_t i = 0; i < lives.size(); ++i) {
    while (!alive.empty() && alive.begin()->first < lives[i].first) {
      const Life& over = lives[alive.begin()->second];
      gaps.Free(plan->offsets[over.buffer], over.bytes);
      alive.erase(alive.begin());
    }
    plan->offsets[lives[i].buffer] = gaps.Allocate(lives[i].bytes);
    alive.emplace(lives[i].last, i);
  }
  plan->bytes = gaps.end();
}

// The adjacent strands that a command belongs to: the first and the last command of all of them.
struct Strands {
  int first, last;
};
std::vector<Strands> StrandsOf(const CommandList& list) {
  std::vector<Strands> strands;
  const int count = static_cast<int>(list.commands.size());
  while (static_cast<int>(strands.size()) < count) {
    const int begin = static_cast<int>(strands.size()), end = EndOfStrands(list, begin);
    strands.insert(strands.end(), end - begin, {begin, end - 1});
  }
  return strands;
}

// A buffer that one strand alone touches is its own. All others that strands touch live as long as any strand runs.
void LiveWithStrands(const CommandList& list, const std::vector<Strands>& strands, Life* life) {
  const Strands first = strands[life->first], last = strands[life->last];
  const int strand = list.commands[life->first].strand;
  if (first.first == last.first && strand == list.commands[life->last].strand) {
    life->strands = strand == Command::kNoStrand ? -1 : first.first;
    life->strand = strand;
  } else {
    life->first = first.first;
    life->last = last.last;
  }
}

}  // namespace

MemoryPlan PlanMemory(const CommandList& list) {
  MemoryPlan plan;
  plan.offsets.assign(list.buffers.size(), MemoryPlan::kElsewhere);
  std::vector<Life> lives(list.buffers.size());
  for (size_t i = 0; i < list.commands.size(); ++i) {
    const Command& command = list.commands[i];
    for (const BufferSlice& place : command.in) Touch(place, static_cast<int>(i), &lives);
    for (const BufferSlice& place : command.out) Touch(place, static_cast<int>(i), &lives);
    Touch(command.workspace, static_cast<int>(i), &lives);
  }
  for (int live_out : list.live_out) lives[live_out].first = -1;
  const std::vector<Strands> strands = StrandsOf(list);
  std::vector<Life> order;
  for (size_t i = 0; i < lives.size(); ++i) {
    if (lives[i].first < 0 || list.buffers[i].kind != Buffer::Kind::kComputed) continue;
    lives[i].buffer = static_cast<int>(i);
    lives[i].bytes = (std::max<int64_t>(list.buffers[i].bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
    LiveWithStrands(list, strands, &lives[i]);
    order.push_back(lives[i]);
  }
  std::stable_sort(order.begin(), order.end(), [](const Life& a, const Life& b) { return a.bytes > b.bytes; });
  std::vector<Life> smaller;
  if (order.size() > kCompared) {
    // Those of one size stay together.
    const int64_t limit = order[kCompared].bytes;
    const auto first = std::find_if(order.begin(), order.end(), [&](const Life& life) { return life.bytes <= limit; });
    smaller.assign(first, order.end());
    order.erase(first, order.end());
    for (Life& life : smaller) life.last = strands[life.last].last;
  }
  PlaceLargestFirst(order, &plan);
  PlaceAsWritten(std::move(smaller), &plan);
  return plan;
}

}  // namespace xpu::commands

// Which of many ranges of bytes overlap another one, without looking at all of them.
#ifndef TENSORFLOW_PLUGIN_COMMANDS_RANGES_H_
#define TENSORFLOW_PLUGIN_COMMANDS_RANGES_H_

#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "tensorflow_plugin/commands/work.h"
#include "tensorflow_plugin/primitives/command_list.h"

namespace xpu::commands {

// Ranges of one buffer, each with a number: a command that touches it. A few ranges lie in a row. More of them are
// sorted by powers of two of their lengths, so that a search meets few that do not overlap.
class Ranges {
 public:
  void Add(const ByteRange& range, int number) {
    if (sorted_ == nullptr && few_.size() == kFew) {
      sorted_ = std::make_unique<std::map<int, OfLength>>();
      for (const Entry& entry : few_) Insert(entry);
      few_ = std::vector<Entry>();
    }
    if (sorted_ == nullptr) {
      few_.push_back({range, number});
    } else {
      Insert({range, number});
    }
  }

  // Calls function(number) for each range that overlaps this one, until that is false. Returns whether it never was.
  template <typename F>
  bool EachOverlapping(const ByteRange& range, const F& function) const {
    for (const Entry& entry : few_) {
      ++Steps();
      if (entry.range.Overlaps(range) && !function(entry.number)) return false;
    }
    if (sorted_ == nullptr) return true;
    for (const auto& [power, entries] : *sorted_) {
      for (auto it = entries.lower_bound(Before(range.begin, power)); it != entries.end(); ++it) {
        ++Steps();
        if (it->first >= range.end) break;
        if (it->second.range.Overlaps(range) && !function(it->second.number)) return false;
      }
    }
    return true;
  }

  // Takes out the ranges that lie in this one.
  void EraseWithin(const ByteRange& range) {
    size_t kept = 0;
    for (const Entry& entry : few_) {
      ++Steps();
      if (!range.Contains(entry.range)) few_[kept++] = entry;
    }
    few_.resize(kept);
    if (sorted_ == nullptr) return;
    for (auto& [power, entries] : *sorted_) {
      for (auto it = entries.lower_bound(range.begin); it != entries.end() && it->first <= range.end;) {
        ++Steps();
        it = range.Contains(it->second.range) ? entries.erase(it) : std::next(it);
      }
    }
  }

 private:
  static constexpr size_t kFew = 16;
  struct Entry {
    ByteRange range;
    int number;
  };
  using OfLength = std::multimap<int64_t, Entry>;  // by their beginnings

  // Lengths below 2^power, but not below 2^(power - 1).
  static int PowerOf(const ByteRange& range) {
    const uint64_t length = static_cast<uint64_t>(range.end) - static_cast<uint64_t>(range.begin);
    int power = 0;
    while (power < 64 && (length >> power) != 0) ++power;
    return power;
  }
  // Where a range that long begins at the earliest, if it overlaps what begins at `begin`.
  static int64_t Before(int64_t begin, int power) {
    if (power >= 63) return INT64_MIN;
    const int64_t length = int64_t{1} << power;
    return begin < INT64_MIN + length ? INT64_MIN : begin - length;
  }
  void Insert(const Entry& entry) { (*sorted_)[PowerOf(entry.range)].emplace(entry.range.begin, entry); }

  std::vector<Entry> few_;
  std::unique_ptr<std::map<int, OfLength>> sorted_;  // instead of few_
};

}  // namespace xpu::commands

#endif  // TENSORFLOW_PLUGIN_COMMANDS_RANGES_H_

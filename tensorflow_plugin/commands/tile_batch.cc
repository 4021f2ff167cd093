// Runs a stretch of commands for some images of a batch at a time, so that what they write and read stays in a cache.
//
// A convolution writes eight images, more than a cache holds, and the next one reads them from memory. Four at a time
// are still in the cache. Such a stretch becomes as many copies of its commands as there are parts of the batch. Values
// that only the stretch needs get buffers of one part, and the memory plan gives all parts the same place.
#include <algorithm>
#include <utility>
#include <vector>

#include "tensorflow_plugin/commands/batch_stretches.h"
#include "tensorflow_plugin/commands/passes.h"

namespace xpu::commands {
namespace {

// Commands on small values between two on large ones, such as squeeze and excitation.
constexpr int kFewBetween = 12;
constexpr int64_t kMostParts = 64;

class BatchTiler {
 public:
  BatchTiler(const Capabilities& can, CommandList* list, CommandList* hoisted)
      : cache_(can.CacheBytes()), list_(*list), stretches_(can, *list, hoisted) {}

  void Run() {
    wanted_.reserve(list_.commands.size());
    for (const Command& command : list_.commands) wanted_.push_back(PartsWanted(command));
    const int size = static_cast<int>(list_.commands.size());
    std::vector<Command> tiled;
    for (int i = 0; i < size;) {
      const Range candidate = LongestFrom(i);
      const BatchStretch stretch = Shortened(candidate);
      const bool pays = stretch.commands.size() > 1 && 2 * stretches_.BytesInside(stretch) > cache_;
      const int end = pays ? stretch.end() : std::max(candidate.end, i + 1);
      if (pays) stretches_.Emit(stretch, /*as_strands=*/false, &list_.buffers, &tiled);
      for (int k = i; k < end && !pays; ++k) tiled.push_back(list_.commands[k]);
      i = end;
    }
    list_.commands = std::move(tiled);
  }

 private:
  struct Range {
    int begin, end;  // commands
    int64_t parts;
  };

  // How many parts leave so little of a command's values that the next one finds them in the cache. 0: it has none.
  int64_t PartsWanted(const Command& command) const {
    const int64_t bytes = command.strand == Command::kNoStrand ? stretches_.BytesOfBatch(command) : -1;
    if (bytes < 0) return 0;
    int64_t parts = 1;
    while (parts < kMostParts && bytes > parts * cache_) parts *= 2;
    return parts;
  }

  // From a command on large values to the last one after it that wants as many parts, or half as many.
  Range LongestFrom(int begin) const {
    Range range{begin, begin, wanted_[begin]};
    if (range.parts < 2) return range;
    const int size = static_cast<int>(wanted_.size());
    for (int i = begin; i < size && wanted_[i] > 0 && i - range.end < kFewBetween; ++i) {
      range.parts = std::max(range.parts, wanted_[i]);
      if (2 * wanted_[i] >= range.parts && wanted_[i] > 1) range.end = i + 1;
    }
    return range;
  }

  // Without commands at the end that cannot be in it, or in fewer parts.
  BatchStretch Shortened(const Range& range) const {
    BatchStretch stretch{range.begin, 1, {}, {}};
    for (int64_t parts = range.parts; parts > 1 && stretch.commands.size() < 2; parts /= 2) {
      stretch = stretches_.Longest(range.begin, range.end, parts);
    }
    return stretch;
  }

  const int64_t cache_;
  CommandList& list_;
  BatchStretches stretches_;
  std::vector<int64_t> wanted_;  // parts, by command
};

}  // namespace

void TileBatch(const Capabilities& can, CommandList* list, CommandList* hoisted) {
  if (can.CacheBytes() > 0) BatchTiler(can, list, hoisted).Run();
}

}  // namespace xpu::commands

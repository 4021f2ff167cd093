#include "tensorflow_plugin/backends/gpu/tile_search.h"

#include <algorithm>

namespace xpu::gpu {
namespace {

// Another way than the first is to be that much quicker: what is measured is never quite the same.
constexpr double kMargin = 0.97;

}  // namespace

TileSearch::Choice TileSearch::Next(Compiler& notes, uint64_t key, int ways, double work,
                                    const std::function<std::string()>& name) {
  if (ways < 2 || work < limits_.least_work) return {};
  std::lock_guard<std::mutex> lock(mutex_);
  const auto [found, first] = kinds_.try_emplace(key);
  WorkKind& kind = found->second;
  if (first) {
    kind.name = name();
    kind.ways.resize(static_cast<size_t>(ways));
    const std::string note = notes.Note(kind.name);
    for (int way = 0; way < ways; ++way) {
      if (note == std::to_string(way)) kind.chosen = way;
    }
  }
  if (kind.chosen != kNone) return {kind.chosen, false};
  if (++kind.asked <= limits_.patience) return {};
  if (!kind.begun && spent_ >= limits_.seconds) return {};
  kind.begun = true;
  NoteEnded(kind);
  const int quickest = Quickest(kind);
  if (quickest != kNone) {
    kind.chosen = quickest;
    notes.WriteNote(kind.name, std::to_string(quickest));
    return {quickest, false};
  }
  // In turns, so that what slows one down slows the others down, too.
  int next = kNone;
  for (int way = 0; way < ways; ++way) {
    const Way& its = kind.ways[static_cast<size_t>(way)];
    if (!its.usable || its.started == limits_.runs) continue;
    if (next == kNone || its.started < kind.ways[static_cast<size_t>(next)].started) next = way;
  }
  return next == kNone ? Choice{} : Choice{next, true};
}

void TileSearch::Ran(uint64_t key, const Choice& run, double work, double seconds,
                     std::shared_ptr<const CommandTime> time) {
  std::lock_guard<std::mutex> lock(mutex_);
  WorkKind& kind = kinds_[key];
  Way& way = kind.ways[static_cast<size_t>(run.way)];
  if (way.started == limits_.runs) return;  // several threads may be at it
  ++way.started;
  spent_ += seconds;
  kind.running.push_back({run.way, work, std::move(time)});
}

void TileSearch::CannotRun(uint64_t key, const Choice& run) {
  std::lock_guard<std::mutex> lock(mutex_);
  WorkKind& kind = kinds_[key];
  kind.ways[static_cast<size_t>(run.way)].usable = false;
  if (kind.chosen == run.way) kind.chosen = 0;
}

int TileSearch::Settled() {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto settled = [](const auto& kind) { return kind.second.chosen != kNone; };
  return static_cast<int>(std::count_if(kinds_.begin(), kinds_.end(), settled));
}

void TileSearch::NoteEnded(WorkKind& kind) const {
  const auto ended = [&](const Timed& timed) {
    if (!timed.time->Ended()) return false;
    Way& way = kind.ways[static_cast<size_t>(timed.way)];
    const double least = timed.time->Nanoseconds() / timed.work;
    if (least == 0) way.usable = false;
    way.least = way.ended++ == 0 ? least : std::min(way.least, least);
    return true;
  };
  kind.running.erase(std::remove_if(kind.running.begin(), kind.running.end(), ended), kind.running.end());
}

int TileSearch::Quickest(const WorkKind& kind) const {
  int quickest = 0;
  for (size_t i = 0; i < kind.ways.size(); ++i) {
    const Way& way = kind.ways[i];
    if (!way.usable) continue;
    if (way.ended < limits_.runs) return kNone;
    const Way& best = kind.ways[static_cast<size_t>(quickest)];
    if (way.least < best.least * (quickest == 0 ? kMargin : 1)) quickest = static_cast<int>(i);
  }
  return quickest;
}

}  // namespace xpu::gpu

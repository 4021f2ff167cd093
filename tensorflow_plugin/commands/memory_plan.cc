#include "tensorflow_plugin/commands/memory_plan.h"

#include <algorithm>

namespace xpu::commands {
namespace {

constexpr int64_t kAlignment = 256;

struct Life {
  int buffer = 0;
  int64_t bytes = 0;
  int first = -1, last = -1;  // commands that touch it
};

void Touch(const Place& place, int command, std::vector<Life>* lives) {
  if (place.buffer == Place::kNowhere) return;
  Life& life = (*lives)[place.buffer];
  if (life.first < 0) life.first = command;
  life.last = command;
}

}  // namespace

// Largest first, each at the lowest place where nothing lies that lives at the same time.
MemoryPlan PlanMemory(const List& list) {
  MemoryPlan plan;
  plan.offsets.assign(list.buffers.size(), MemoryPlan::kElsewhere);
  std::vector<Life> lives(list.buffers.size());
  for (size_t i = 0; i < list.commands.size(); ++i) {
    const Command& command = list.commands[i];
    for (const Place& place : command.in) Touch(place, static_cast<int>(i), &lives);
    for (const Place& place : command.out) Touch(place, static_cast<int>(i), &lives);
    Touch(command.workspace, static_cast<int>(i), &lives);
  }
  for (int wanted : list.wanted) lives[wanted].first = -1;
  std::vector<Life> order;
  for (size_t i = 0; i < lives.size(); ++i) {
    if (lives[i].first < 0 || list.buffers[i].kind != Buffer::Kind::kComputed) continue;
    lives[i].buffer = static_cast<int>(i);
    lives[i].bytes = (std::max<int64_t>(list.buffers[i].bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
    order.push_back(lives[i]);
  }
  std::stable_sort(order.begin(), order.end(), [](const Life& a, const Life& b) { return a.bytes > b.bytes; });
  std::vector<Life> placed;  // by offset
  for (const Life& life : order) {
    int64_t offset = 0;
    size_t at = 0;
    for (size_t i = 0; i < placed.size(); ++i) {
      const Life& other = placed[i];
      if (other.last < life.first || life.last < other.first) continue;
      const int64_t there = plan.offsets[other.buffer];
      if (offset + life.bytes <= there) break;
      offset = std::max(offset, there + other.bytes);
    }
    plan.offsets[life.buffer] = offset;
    plan.bytes = std::max(plan.bytes, offset + life.bytes);
    while (at < placed.size() && plan.offsets[placed[at].buffer] <= offset) ++at;
    placed.insert(placed.begin() + at, life);
  }
  return plan;
}

}  // namespace xpu::commands

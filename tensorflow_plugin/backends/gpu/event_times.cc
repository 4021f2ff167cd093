#include "tensorflow_plugin/backends/gpu/event_times.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

namespace xpu::gpu {
namespace {

// After so many commands those that have run are recorded.
constexpr size_t kDrainEvery = 1024;

// One for all devices: a source is one for as long as the process lives, and devices come and go.
class AllEventTimes final : public trace::EventSource {
 public:
  static AllEventTimes& Get() {
    static auto* const all = [] {
      auto* const made = new AllEventTimes;
      trace::AddSource(made);
      return made;
    }();
    return *all;
  }
  void Add(EventTimes* times) {
    std::lock_guard<std::mutex> lock(mutex_);
    all_.insert(times);
  }
  void Remove(EventTimes* times) {
    std::lock_guard<std::mutex> lock(mutex_);
    all_.erase(times);
  }
  void Begin() override {
    std::lock_guard<std::mutex> lock(mutex_);
    for (EventTimes* times : all_) times->Clear();
  }
  void End() override {
    std::lock_guard<std::mutex> lock(mutex_);
    for (EventTimes* times : all_) times->Drain();
  }

 private:
  std::mutex mutex_;
  std::set<EventTimes*> all_;
};

}  // namespace

EventTimes::EventTimes(std::function<bool(uint64_t* ns)> read_clock) : read_clock_(std::move(read_clock)) {
  AllEventTimes::Get().Add(this);
}

EventTimes::~EventTimes() { AllEventTimes::Get().Remove(this); }

void EventTimes::Add(const trace::Label& label, uint32_t line, std::shared_ptr<const CommandTime> first,
                     std::shared_ptr<const CommandTime> last) {
  std::lock_guard<std::mutex> lock(mutex_);
  commands_.push_back({label, line, std::move(first), std::move(last)});
  if (commands_.size() % kDrainEvery == 0) DrainLocked();
}

void EventTimes::Clear() {
  std::lock_guard<std::mutex> lock(mutex_);
  commands_.clear();
  has_clock_ = false;
}

void EventTimes::Drain() {
  std::lock_guard<std::mutex> lock(mutex_);
  DrainLocked();
}

// The least of several differences has the least of the time in it that passes until the host sees the end of a
// command.
bool EventTimes::FindClock() {
  constexpr int kTries = 5;
  for (int i = 0; i < kTries; ++i) {
    uint64_t end = 0;
    if (!read_clock_(&end)) return false;
    const int64_t ahead = static_cast<int64_t>(trace::NowNs() - end);
    ahead_ns_ = i == 0 ? ahead : std::min(ahead_ns_, ahead);
  }
  return true;
}

void EventTimes::DrainLocked() {
  if (commands_.empty()) return;
  if (!has_clock_ && !FindClock()) return commands_.clear();
  has_clock_ = true;
  std::deque<TimedCommand> left;
  for (TimedCommand& command : commands_) {
    if (!command.last->Ended()) {
      left.push_back(std::move(command));
      continue;
    }
    uint64_t begin = 0, end = 0, unused = 0;
    if (command.first->Read(&begin, &unused) && command.last->Read(&unused, &end)) {
      const uint64_t ahead = static_cast<uint64_t>(ahead_ns_);
      trace::Record({command.label, command.line, begin + ahead, std::max(begin, end) + ahead});
    }
  }
  commands_ = std::move(left);
}

std::function<Status()> QueueTrace::Shown(std::function<Status()> callback) {
  return [this, callback = std::move(callback), shown = On(), op = trace::ScopedOp::Current()]() mutable {
    std::optional<trace::Label> label;
    std::optional<trace::Span> span;
    if (shown) {
      label = trace::LabelOf(trace::Kind::kCallback, "callback on the host", 0);
      span.emplace(line_, *label);
    }
    Status status = callback();
    span.reset();
    callback = nullptr;  // what it holds is gone before the stream goes on
    return status.ok() ? status : trace::OfOp(std::move(status), op, line_.device());
  };
}

std::function<Status()> QueueTrace::Named(std::function<Status()> work) const {
  return [this, work = std::move(work), op = trace::ScopedOp::Current()] {
    Status status = work();
    return status.ok() ? status : trace::OfOp(std::move(status), op, line_.device());
  };
}

thread_local TracedCommand* TracedCommand::current_ = nullptr;

void TracedCommand::Begin(QueueTrace& queue, const trace::Label& label) {
  if (current_ != nullptr && current_->label_.kind != trace::Kind::kList) return;
  queue_ = &queue;
  label_ = label;
  outer_ = std::exchange(current_, this);
}

void TracedCommand::End() {
  current_ = outer_;
  if (first_ == nullptr) return;
  if (outer_ != nullptr && outer_->queue_ == queue_) {
    if (outer_->first_ == nullptr) outer_->first_ = first_;
    outer_->last_ = last_;
  }
  queue_->Add(label_, std::move(first_), std::move(last_));
}

void TracedCommand::Note(std::shared_ptr<const CommandTime> time) {
  if (current_->first_ == nullptr) current_->first_ = time;
  current_->last_ = std::move(time);
}

}  // namespace xpu::gpu

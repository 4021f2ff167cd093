#include "tensorflow_plugin/trace/trace_events.h"

#include <time.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "tensorflow_plugin/primitives/fork.h"

namespace xpu::trace {

std::atomic<bool> internal::on{false};

namespace {

// All of it lives for ever: threads may record until the process is gone.
struct Names {
  Mutex mutex;
  std::deque<std::string> texts{""};  // by name; they stay where they are
  std::unordered_map<std::string_view, NameId> names;
};
Names& TheNames() {
  static auto* const names = new Names;
  return *names;
}

// The events of one thread: its lock is free but while they are collected.
struct ThreadEvents {
  Mutex mutex;
  std::deque<Event> events;
};

struct TraceState {
  Mutex session;  // guards who starts and stops; locked before all others
  Mutex mutex;    // guards what follows
  std::vector<std::shared_ptr<ThreadEvents>> buffers;
  std::vector<Trace::LineName> lines;
  std::vector<EventSource*> sources;
  uint64_t begin_ns = 0;
  std::atomic<int64_t> num_events{0};  // that were to be kept
};
TraceState& TheState() {
  static auto* const state = new TraceState;
  return *state;
}

ThreadEvents& ThreadBuffer() {
  thread_local const std::shared_ptr<ThreadEvents> buffer = [] {
    auto made = std::make_shared<ThreadEvents>();
    TraceState& state = TheState();
    std::lock_guard<std::mutex> lock(state.mutex);
    state.buffers.push_back(made);
    return made;
  }();
  return *buffer;
}

}  // namespace

uint64_t NowNs() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

NameId Intern(std::string_view text) {
  if (text.empty()) return 0;
  thread_local std::unordered_map<std::string_view, NameId> seen;  // views of what is kept
  const auto found = seen.find(text);
  if (found != seen.end()) return found->second;
  Names& all = TheNames();
  std::lock_guard<std::mutex> lock(all.mutex);
  auto known = all.names.find(text);
  if (known == all.names.end()) {
    const std::string& kept = all.texts.emplace_back(text);
    known = all.names.emplace(kept, static_cast<NameId>(all.texts.size() - 1)).first;
  }
  seen.emplace(known->first, known->second);
  return known->second;
}

std::string TextOf(NameId name) {
  Names& all = TheNames();
  std::lock_guard<std::mutex> lock(all.mutex);
  return name < all.texts.size() ? all.texts[name] : "";
}

const char* NameOf(Kind kind) {
  switch (kind) {
    case Kind::kCommand:
      return "command";
    case Kind::kCopy:
      return "copy";
    case Kind::kFill:
      return "fill";
    case Kind::kWait:
      return "wait";
    case Kind::kCallback:
      return "callback";
    case Kind::kList:
      return "cluster";
    case Kind::kAllocate:
      return "allocate";
    case Kind::kFree:
      return "free";
  }
  return "";
}

thread_local const ScopedLines* ScopedLines::current_ = nullptr;
ScopedLines::ScopedLines(std::string device, std::string what)
    : device_(std::move(device)), what_(std::move(what)), outer_(std::exchange(current_, this)) {}
ScopedLines::~ScopedLines() { current_ = outer_; }

Line::Line()
    : device_(ScopedLines::current_ != nullptr ? ScopedLines::current_->device_ : "XPU"),
      what_(ScopedLines::current_ != nullptr ? ScopedLines::current_->what_ : "a stream") {}

uint32_t Line::Number() {
  uint32_t number = number_.load(std::memory_order_acquire);
  if (number != 0) return number;
  TraceState& state = TheState();
  std::lock_guard<std::mutex> lock(state.mutex);
  number = number_.load(std::memory_order_relaxed);
  if (number == 0) {
    state.lines.push_back({device_, what_});
    number = static_cast<uint32_t>(state.lines.size());
    number_.store(number, std::memory_order_release);
  }
  return number;
}

void Record(const Event& event) {
  if (!On()) return;
  if (TheState().num_events.fetch_add(1, std::memory_order_relaxed) >= kMaxEvents) return;
  ThreadEvents& buffer = ThreadBuffer();
  std::lock_guard<std::mutex> lock(buffer.mutex);
  buffer.events.push_back(event);
}

thread_local const ScopedOp* ScopedOp::current_ = nullptr;
ScopedOp::ScopedOp(std::string_view name, std::string_view type)
    : name_(name), type_(type), outer_(std::exchange(current_, this)) {}
ScopedOp::~ScopedOp() { current_ = outer_; }
void ScopedOp::Fill(Label* label) {
  if (current_ == nullptr) return;
  label->op = Intern(current_->name_);
  label->op_type = Intern(current_->type_);
}

void ScopedOp::Text::Append(std::string_view text) {
  const size_t n = std::min(text.size(), kMost - size_);
  std::memcpy(bytes_ + size_, text.data(), n);
  size_ = static_cast<uint8_t>(size_ + n);
}

ScopedOp::Text ScopedOp::Current() {
  Text text;
  if (current_ == nullptr) return text;
  text.Append(current_->type_);
  if (current_->name_.empty() || current_->name_ == current_->type_) return text;
  text.Append(" ");
  text.Append(current_->name_);
  return text;
}

thread_local const ListOps* ListOps::current_ = nullptr;
ListOps::ListOps(Ops ops) : ops_(std::move(ops)), outer_(std::exchange(current_, this)) {}
ListOps::~ListOps() { current_ = outer_; }
ListOps::Ops ListOps::Current() { return current_ == nullptr ? nullptr : current_->ops_; }

Status OfOp(Status failure, const ScopedOp::Text& op, const std::string& device) {
  if (failure.ok() || op.view().empty()) return failure;
  return Status(failure.code(), errors::Concat(failure.message(), " (", op.view(), " on ", device, ")"));
}

thread_local const ScopedListLabels* ScopedListLabels::current_ = nullptr;
ScopedListLabels::ScopedListLabels(Labels labels) : labels_(std::move(labels)), outer_(std::exchange(current_, this)) {}
ScopedListLabels::~ScopedListLabels() { current_ = outer_; }
ScopedListLabels::Labels ScopedListLabels::Current(size_t num_commands) {
  if (current_ == nullptr || current_->labels_->size() != num_commands) return nullptr;
  return current_->labels_;
}

void AddSource(EventSource* source) {
  TraceState& state = TheState();
  std::lock_guard<std::mutex> lock(state.mutex);
  state.sources.push_back(source);
}

bool Start() {
  TraceState& state = TheState();
  std::lock_guard<std::mutex> session(state.session);
  if (internal::on) return false;
  std::vector<EventSource*> sources;
  {
    std::lock_guard<std::mutex> lock(state.mutex);
    for (const auto& buffer : state.buffers) {  // what ended after the last time
      std::lock_guard<std::mutex> events_lock(buffer->mutex);
      buffer->events.clear();
    }
    state.num_events = 0;
    state.begin_ns = NowNs();
    sources = state.sources;
  }
  // Not under the lock: a source that records in another thread holds its own and waits for this one.
  for (EventSource* source : sources) source->Begin();
  internal::on = true;
  return true;
}

Trace Stop() {
  TraceState& state = TheState();
  std::lock_guard<std::mutex> session(state.session);
  std::vector<EventSource*> sources;
  {
    std::lock_guard<std::mutex> lock(state.mutex);
    if (internal::on) sources = state.sources;
  }
  for (EventSource* source : sources) source->End();  // they record, and may need new lines
  std::lock_guard<std::mutex> lock(state.mutex);
  Trace recorded;
  if (!internal::on.exchange(false)) return recorded;
  recorded.begin_ns = state.begin_ns;
  recorded.end_ns = NowNs();
  recorded.lines = state.lines;
  recorded.dropped = std::max<int64_t>(state.num_events - kMaxEvents, 0);
  for (auto& buffer : state.buffers) {
    std::lock_guard<std::mutex> events_lock(buffer->mutex);
    recorded.events.insert(recorded.events.end(), buffer->events.begin(), buffer->events.end());
    buffer->events = {};
  }
  // Those of threads that are gone.
  state.buffers.erase(std::remove_if(state.buffers.begin(), state.buffers.end(),
                                     [](const auto& buffer) { return buffer.use_count() == 1; }),
                      state.buffers.end());
  std::sort(recorded.events.begin(), recorded.events.end(), [](const Event& a, const Event& b) {
    return a.begin_ns != b.begin_ns ? a.begin_ns < b.begin_ns : a.end_ns > b.end_ns;
  });
  return recorded;
}

}  // namespace xpu::trace

#include "tensorflow_plugin/backends/opencl/records.h"

#include <algorithm>
#include <set>
#include <utility>

#include "tensorflow_plugin/backends/opencl/queue.h"

namespace xpu::opencl {
namespace {

// How many commands are kept before those that have run are recorded.
constexpr size_t kKept = 1024;

// Of all devices: a source is one for as long as the process lives, and devices come and go.
class AllRecords final : public trace::EventSource {
 public:
  static AllRecords& Get() {
    static auto* const all = [] {
      auto* const made = new AllRecords;
      trace::AddSource(made);
      return made;
    }();
    return *all;
  }
  void Add(Records* records) {
    std::lock_guard<std::mutex> lock(mutex_);
    records_.insert(records);
  }
  void Remove(Records* records) {
    std::lock_guard<std::mutex> lock(mutex_);
    records_.erase(records);
  }
  void Begin() override {
    std::lock_guard<std::mutex> lock(mutex_);
    for (Records* records : records_) records->Clear();
  }
  void End() override {
    std::lock_guard<std::mutex> lock(mutex_);
    for (Records* records : records_) records->Drain();
  }

 private:
  std::mutex mutex_;
  std::set<Records*> records_;
};

bool TimeOf(cl_event event, cl_profiling_info which, uint64_t* ns) {
  cl_ulong time = 0;
  if (Cl().GetEventProfilingInfo(event, which, sizeof(time), &time, nullptr) != CL_SUCCESS) return false;
  *ns = time;
  return true;
}

// By how much the profiler's clock is ahead of the driver's; false: the driver does not tell. The least of several
// differences has the least of the time in it that passes until the host sees the end of a command.
bool FindClock(const Hardware& hardware, cl_context context, int64_t* ahead_ns) {
  constexpr int kTries = 5;
  cl_int error = CL_SUCCESS;
  const Handle<cl_command_queue> queue(
      Cl().CreateCommandQueue(context, hardware.id, CL_QUEUE_PROFILING_ENABLE, &error));
  if (error != CL_SUCCESS) return false;
  bool found = false;
  for (int i = 0; i < kTries; ++i) {
    cl_event marker = nullptr;
    if (Cl().EnqueueMarkerWithWaitList(queue.get(), 0, nullptr, &marker) != CL_SUCCESS) return false;
    const Handle<cl_event> kept(marker);
    if (Cl().Flush(queue.get()) != CL_SUCCESS || Cl().WaitForEvents(1, &marker) != CL_SUCCESS) return false;
    uint64_t end = 0;
    if (!TimeOf(marker, CL_PROFILING_COMMAND_END, &end)) return false;
    const int64_t ahead = static_cast<int64_t>(trace::NowNs() - end);
    *ahead_ns = found ? std::min(*ahead_ns, ahead) : ahead;
    found = true;
  }
  return found;
}

}  // namespace

Records::Records(const Hardware& hardware, cl_context context) : hardware_(hardware), context_(context) {
  AllRecords::Get().Add(this);
}

Records::~Records() { AllRecords::Get().Remove(this); }

void Records::Add(const trace::Label& label, uint32_t line, Handle<cl_event> first, Handle<cl_event> last) {
  std::lock_guard<std::mutex> lock(mutex_);
  commands_.push_back({label, line, std::move(first), std::move(last)});
  if (commands_.size() % kKept == 0) DrainLocked();
}

void Records::Clear() {
  std::lock_guard<std::mutex> lock(mutex_);
  commands_.clear();
  has_clock_ = false;
}

void Records::Drain() {
  std::lock_guard<std::mutex> lock(mutex_);
  DrainLocked();
}

void Records::DrainLocked() {
  if (commands_.empty()) return;
  if (!has_clock_ && !FindClock(hardware_, context_, &ahead_ns_)) return commands_.clear();
  has_clock_ = true;
  std::deque<TimedCommand> left;
  for (TimedCommand& command : commands_) {
    if (!IsDone(command.last)) {
      left.push_back(std::move(command));
      continue;
    }
    uint64_t begin = 0, end = 0;
    if (TimeOf(command.first.get(), CL_PROFILING_COMMAND_START, &begin) &&
        TimeOf(command.last.get(), CL_PROFILING_COMMAND_END, &end)) {
      const uint64_t ahead = static_cast<uint64_t>(ahead_ns_);
      trace::Record({command.label, command.line, begin + ahead, std::max(begin, end) + ahead});
    }
  }
  commands_ = std::move(left);
}

thread_local RecordedCommand* RecordedCommand::current_ = nullptr;

void RecordedCommand::Begin(Queue& queue, const trace::Label& label) {
  if (current_ != nullptr && current_->label_.kind != trace::Kind::kList) return;
  queue_ = &queue;
  label_ = label;
  outer_ = std::exchange(current_, this);
}

void RecordedCommand::End() {
  current_ = outer_;
  if (!first_) return;
  if (outer_ != nullptr && outer_->queue_ == queue_) {
    if (!outer_->first_) outer_->first_ = Share(first_);
    outer_->last_ = Share(last_);
  }
  queue_->Tell(label_, std::move(first_), std::move(last_));
}

void RecordedCommand::Note(const Queue& queue, const Handle<cl_event>& event) {
  if (current_ == nullptr || current_->queue_ != &queue) return;
  if (!current_->first_) current_->first_ = Share(event);
  current_->last_ = Share(event);
}

}  // namespace xpu::opencl

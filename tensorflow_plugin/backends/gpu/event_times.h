// When commands ran, by the device's clock, for a profiler that listens. The times are known only when they have run.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_GPU_EVENT_TIMES_H_
#define TENSORFLOW_PLUGIN_BACKENDS_GPU_EVENT_TIMES_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

#include "tensorflow_plugin/primitives/status.h"
#include "tensorflow_plugin/trace/labels.h"
#include "tensorflow_plugin/trace/trace_events.h"

namespace xpu::gpu {

// When a command ran, by the device's clock; each runtime has a class of its own.
class CommandTime {
 public:
  virtual ~CommandTime() = default;
  // True if it has run, or failed to.
  virtual bool Ended() const = 0;
  // The time of a command that has run; 0 if the device does not tell.
  virtual double Nanoseconds() const = 0;
  // The same as two times; false: the device does not tell.
  virtual bool Read(uint64_t* begin_ns, uint64_t* end_ns) const = 0;
};

// The commands of a device's queues whose times are not known yet.
class EventTimes {
 public:
  // `read_clock` runs a command that does nothing, waits for it, and tells when it ended; false: the device does not
  // tell.
  explicit EventTimes(std::function<bool(uint64_t* ns)> read_clock);
  ~EventTimes();

  // A command that lasts from the beginning of `first` to the end of `last`.
  void Add(const trace::Label& label, uint32_t line, std::shared_ptr<const CommandTime> first,
           std::shared_ptr<const CommandTime> last);

  // Forgets the commands; and the clock, which may have gone astray.
  void Clear();
  // Records the commands that have run.
  void Drain();

 private:
  struct TimedCommand {
    trace::Label label;
    uint32_t line;
    std::shared_ptr<const CommandTime> first, last;
  };
  void DrainLocked();
  bool FindClock();

  const std::function<bool(uint64_t* ns)> read_clock_;
  std::mutex mutex_;
  std::deque<TimedCommand> commands_;
  bool has_clock_ = false;
  int64_t ahead_ns_ = 0;  // of the device's clock: the profiler's
};

// The events that a queue shows to a profiler.
class QueueTrace {
 public:
  // `times` may be null: nothing is shown then.
  explicit QueueTrace(EventTimes* times) : times_(times) {}

  bool On() const { return trace::On() && times_ != nullptr; }
  void Add(const trace::Label& label, std::shared_ptr<const CommandTime> first,
           std::shared_ptr<const CommandTime> last) {
    times_->Add(label, line_.Number(), std::move(first), std::move(last));
  }
  // A callback that is shown while it runs. Its failure names the op that this thread enqueues now.
  std::function<Status()> Shown(std::function<Status()> callback);
  // Work of the host's whose failure does so, too.
  std::function<Status()> Named(std::function<Status()> work) const;

 private:
  EventTimes* const times_;
  trace::Line line_;
};

// While one lives, the driver's commands that this thread enqueues on the queue are one command of the profile. Within
// a command none begins; within a list its commands do. Nothing happens unless a profiler listens.
class TracedCommand {
 public:
  // `label()` makes the label.
  template <typename F>
  TracedCommand(QueueTrace& queue, const F& label) {
    if (queue.On()) Begin(queue, label());
  }
  TracedCommand(QueueTrace& queue, trace::Kind kind, const char* what, size_t bytes = 0)
      : TracedCommand(queue, [&] { return trace::LabelOf(kind, what, static_cast<int64_t>(bytes)); }) {}
  ~TracedCommand() {
    if (queue_ != nullptr) End();
  }
  TracedCommand(const TracedCommand&) = delete;
  TracedCommand& operator=(const TracedCommand&) = delete;

  // True if the times of commands that this thread enqueues on the queue are asked for. The second function takes the
  // time of one such command.
  static bool IsOpen(const QueueTrace& queue) {
    return trace::On() && current_ != nullptr && current_->queue_ == &queue;
  }
  static void Note(std::shared_ptr<const CommandTime> time);

 private:
  void Begin(QueueTrace& queue, const trace::Label& label);
  void End();

  static thread_local TracedCommand* current_;
  QueueTrace* queue_ = nullptr;  // null: nothing is recorded
  trace::Label label_;
  TracedCommand* outer_ = nullptr;
  std::shared_ptr<const CommandTime> first_, last_;
};

}  // namespace xpu::gpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_GPU_EVENT_TIMES_H_

// What a profiler that listens is told: when commands ran, by the driver's clock, which is known only when they have.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_OPENCL_RECORDS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_OPENCL_RECORDS_H_

#include <cstdint>
#include <deque>
#include <mutex>

#include "tensorflow_plugin/backends/opencl/driver.h"
#include "tensorflow_plugin/backends/opencl/hardware.h"
#include "tensorflow_plugin/trace/labels.h"
#include "tensorflow_plugin/trace/trace_events.h"

namespace xpu::opencl {

// Of the commands of a context's queues, those whose times are not known yet.
class Records {
 public:
  // The hardware and the context outlive it.
  Records(const Hardware& hardware, cl_context context);
  ~Records();

  // A command that lasts from the beginning of `first` to the end of `last`.
  void Add(const trace::Label& label, uint32_t line, Handle<cl_event> first, Handle<cl_event> last);

  // Forgets what there is; and the clock, which may have gone astray.
  void Clear();
  // Records the commands that have run.
  void Drain();

 private:
  struct TimedCommand {
    trace::Label label;
    uint32_t line;
    Handle<cl_event> first, last;
  };
  void DrainLocked();

  const Hardware& hardware_;
  const cl_context context_;
  std::mutex mutex_;
  std::deque<TimedCommand> commands_;
  bool has_clock_ = false;
  int64_t ahead_ns_ = 0;  // of the driver's clock: the profiler's
};

class Queue;

// While one lives, what this thread enqueues on the queue is one command, for people; within a command's nothing is
// another one, within a list's are its commands. Nothing unless a profiler listens.
class RecordedCommand {
 public:
  // `label()` makes the label.
  template <typename F>
  RecordedCommand(Queue& queue, const F& label) {
    if (trace::On()) Begin(queue, label());
  }
  RecordedCommand(Queue& queue, trace::Kind kind, const char* what, size_t bytes = 0)
      : RecordedCommand(queue, [&] { return trace::LabelOf(kind, what, static_cast<int64_t>(bytes)); }) {}
  ~RecordedCommand() {
    if (queue_ != nullptr) End();
  }
  RecordedCommand(const RecordedCommand&) = delete;
  RecordedCommand& operator=(const RecordedCommand&) = delete;

  // The event of what this thread has enqueued.
  static void Note(const Queue& queue, const Handle<cl_event>& event);

 private:
  void Begin(Queue& queue, const trace::Label& label);
  void End();

  static thread_local RecordedCommand* current_;
  Queue* queue_ = nullptr;  // null: nothing is recorded
  trace::Label label_;
  RecordedCommand* outer_ = nullptr;
  Handle<cl_event> first_, last_;
};

}  // namespace xpu::opencl

#endif  // TENSORFLOW_PLUGIN_BACKENDS_OPENCL_RECORDS_H_

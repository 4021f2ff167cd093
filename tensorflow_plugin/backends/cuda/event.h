// Events. A record may come late, when the stream has commands that wait for the host (queue.h).
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CUDA_EVENT_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CUDA_EVENT_H_

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "tensorflow_plugin/backends/cuda/driver.h"
#include "tensorflow_plugin/backends/gpu/event_times.h"
#include "tensorflow_plugin/primitives/backend.h"

namespace xpu::cuda {

// One event of the driver's.
class EventObject {
 public:
  EventObject(ContextHandle context, unsigned flags);
  ~EventObject();
  EventObject(const EventObject&) = delete;
  EventObject& operator=(const EventObject&) = delete;
  EventHandle get() const { return event_; }

 private:
  EventHandle event_ = nullptr;
};

// An event and how often somebody asked to record it. Thread-safe.
class EventState {
 public:
  EventState(ContextHandle context, unsigned flags) : event_(context, flags) {}

  // The number of a record to come, and that of the last one.
  uint64_t Request();
  uint64_t last() const;
  // Makes that record.
  Status Record(uint64_t number, StreamHandle stream);
  // The greatest number of a record that was made.
  uint64_t recorded() const;
  // Says whether that record was made, and waits for it.
  bool IsRecorded(uint64_t number) const;
  void AwaitRecord(uint64_t number) const;

  // True if all before the last record has run, or failed to.
  bool Done() const { return IsRecorded(last()) && Cu().EventQuery(event_.get()) != kNotReady; }
  void Wait() const;
  EventHandle get() const { return event_.get(); }

 private:
  const EventObject event_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  uint64_t requested_ = 0, recorded_ = 0;
};

class QueueEvent final : public Event {
 public:
  explicit QueueEvent(ContextHandle context) : state_(std::make_shared<EventState>(context, kEventDisableTiming)) {}
  bool Done() const override { return state_->Done(); }
  void Wait() const override { state_->Wait(); }
  const std::shared_ptr<EventState>& state() const { return state_; }

 private:
  const std::shared_ptr<EventState> state_;
};

// By the device's clock.
class QueueTimer final : public Timer {
 public:
  explicit QueueTimer(ContextHandle context)
      : start_(std::make_shared<EventState>(context, 0)), stop_(std::make_shared<EventState>(context, 0)) {}
  void Start(Stream& stream) override;
  void Stop(Stream& stream) override;
  uint64_t Nanoseconds() override;

 private:
  const std::shared_ptr<EventState> start_, stop_;
};

// An event that is over, and its time by a clock (clock.h).
struct ReferenceEvent {
  explicit ReferenceEvent(ContextHandle context) : event(context, 0) {}
  // The time until an event that was recorded later, and is over; false if the driver does not tell.
  bool TimeOf(EventHandle later, double* later_ns) const;

  const EventObject event;
  double ns = 0;
};

// When a command ran.
class EventPair final : public gpu::CommandTime {
 public:
  // Without a reference it tells how long the command took, but not when it began.
  EventPair(ContextHandle context, std::shared_ptr<const ReferenceEvent> reference)
      : reference_(std::move(reference)), begin_(context, 0), end_(context, 0) {
    begin_number_ = begin_.Request();
    end_number_ = end_.Request();
  }
  Status RecordBegin(StreamHandle stream) { return begin_.Record(begin_number_, stream); }
  Status RecordEnd(StreamHandle stream) { return end_.Record(end_number_, stream); }
  bool Ended() const override { return end_.Done(); }
  double Nanoseconds() const override;
  bool Read(uint64_t* begin_ns, uint64_t* end_ns) const override;

 private:
  const std::shared_ptr<const ReferenceEvent> reference_;
  EventState begin_, end_;
  uint64_t begin_number_ = 0, end_number_ = 0;
};

}  // namespace xpu::cuda

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CUDA_EVENT_H_

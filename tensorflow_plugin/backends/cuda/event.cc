#include "tensorflow_plugin/backends/cuda/event.h"

#include <algorithm>

#include "tensorflow_plugin/backends/cuda/queue.h"

namespace xpu::cuda {
namespace {

// False: the driver does not tell.
bool FindNanosecondsBetween(EventHandle begin, EventHandle end, double* ns) {
  float milliseconds = 0;
  if (Cu().EventElapsedTime(&milliseconds, begin, end) != kSuccess) return false;
  *ns = std::max(0.0, static_cast<double>(milliseconds) * 1e6);
  return true;
}
double NanosecondsBetween(EventHandle begin, EventHandle end) {
  double ns = 0;
  return FindNanosecondsBetween(begin, end, &ns) ? ns : 0;
}

}  // namespace

EventObject::EventObject(ContextHandle context, unsigned flags) {
  // Without an event, what is recorded counts as done; the driver has none left only if its context is lost.
  if (Cu().CtxSetCurrent(context) == kSuccess) (void)Cu().EventCreate(&event_, flags);
}

EventObject::~EventObject() {
  if (event_ != nullptr) (void)Cu().EventDestroy(event_);
}

uint64_t EventState::Request() {
  std::lock_guard<std::mutex> lock(mutex_);
  return ++requested_;
}

uint64_t EventState::last() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return requested_;
}

uint64_t EventState::recorded() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return recorded_;
}

Status EventState::Record(uint64_t number, StreamHandle stream) {
  const Result error = Cu().EventRecord(event_.get(), stream);
  std::lock_guard<std::mutex> lock(mutex_);
  recorded_ = std::max(recorded_, number);
  changed_.notify_all();
  return ToStatus(error, "recording an event");
}

bool EventState::IsRecorded(uint64_t number) const {
  std::lock_guard<std::mutex> lock(mutex_);
  return recorded_ >= number;
}

void EventState::AwaitRecord(uint64_t number) const {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return recorded_ >= number; });
}

void EventState::Wait() const {
  AwaitRecord(last());
  (void)Cu().EventSynchronize(event_.get());
}

void QueueTimer::Start(Stream& stream) { static_cast<Queue&>(stream).RecordState(start_); }
void QueueTimer::Stop(Stream& stream) { static_cast<Queue&>(stream).RecordState(stop_); }

uint64_t QueueTimer::Nanoseconds() {
  if (start_->last() == 0 || stop_->last() == 0) return 0;
  stop_->Wait();
  return static_cast<uint64_t>(NanosecondsBetween(start_->get(), stop_->get()));
}

bool ReferenceEvent::TimeOf(EventHandle later, double* later_ns) const {
  double passed = 0;
  if (!FindNanosecondsBetween(event.get(), later, &passed)) return false;
  *later_ns = ns + passed;
  return true;
}

double EventPair::Nanoseconds() const { return NanosecondsBetween(begin_.get(), end_.get()); }

bool EventPair::Read(uint64_t* begin_ns, uint64_t* end_ns) const {
  double begin = 0, took = 0;
  if (reference_ == nullptr || !reference_->TimeOf(begin_.get(), &begin) ||
      !FindNanosecondsBetween(begin_.get(), end_.get(), &took)) {
    return false;
  }
  *begin_ns = static_cast<uint64_t>(begin);
  *end_ns = static_cast<uint64_t>(begin + took);
  return true;
}

}  // namespace xpu::cuda

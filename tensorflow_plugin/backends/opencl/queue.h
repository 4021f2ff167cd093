// A stream is an in-order queue of the driver's. An event behind its last command orders it with other streams and with
// the host: when that is done, so is all before it. Commands have events of their own only where somebody wants to know
// of that very one. An event takes NVIDIA's driver longer than the command (10.8 us instead of 3.6).
#ifndef TENSORFLOW_PLUGIN_BACKENDS_OPENCL_QUEUE_H_
#define TENSORFLOW_PLUGIN_BACKENDS_OPENCL_QUEUE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "tensorflow_plugin/backends/gpu/machine.h"
#include "tensorflow_plugin/backends/host_runtime/first_failure.h"
#include "tensorflow_plugin/backends/host_runtime/host_thread.h"
#include "tensorflow_plugin/backends/opencl/driver.h"
#include "tensorflow_plugin/backends/opencl/memory.h"
#include "tensorflow_plugin/primitives/backend.h"

namespace xpu::opencl {

// True if the command of an event has run, or failed to; true if there is no event.
bool IsDone(const Handle<cl_event>& event);

// Until that is so.
void WaitForOne(const Handle<cl_event>& event);

class QueueEvent final : public Event {
 public:
  bool Done() const override { return IsDone(Get()); }
  void Wait() const override;

  // The event that was recorded last, and the context that it belongs to.
  Handle<cl_event> Get(cl_context* context = nullptr) const;
  void Set(Handle<cl_event> event, cl_context context);

 private:
  mutable std::mutex mutex_;
  Handle<cl_event> event_;
  cl_context context_ = nullptr;
};

class Queue final : public gpu::Queue {
 public:
  // The memory, its device and the context outlive the queue.
  static Status Create(const Hardware& hardware, cl_context context, Memory& memory, gpu::EventTimes* times,
                       std::unique_ptr<Queue>* queue);
  ~Queue() override;

  void Record(Event& event) override;
  void WaitFor(Event& event) override;
  void WaitFor(Stream& other) override;
  void HostCallback(std::function<Status()> callback) override;

  Status CopyHostToDevice(void* device_dst, const void* host_src, size_t size) override;
  Status CopyDeviceToHost(void* host_dst, const void* device_src, size_t size) override;
  Status CopyDeviceToDevice(void* device_dst, const void* device_src, size_t size) override;
  Status Memset(void* device_dst, uint8_t value, size_t size) override;
  Status MemsetU32(void* device_dst, uint32_t value, size_t size) override;

  bool Idle() const override { return IsDone(Last()); }
  void Wait() override;
  Status TakeStatus() override {
    NoteFailureOfLast();
    return failure_.Take();
  }
  Status PeekStatus() const override {
    NoteFailureOfLast();
    return failure_.Peek();
  }

  // Enqueues by `enqueue(cl_command_queue, cl_event* of_it)`, which returns the driver's error; `what` names it then.
  // Without `event`, which gets the command's, the driver is asked for none, unless a profiler looks on.
  template <typename F>
  Status Submit(const char* what, const F& enqueue, Handle<cl_event>* event = nullptr) {
    std::lock_guard<std::mutex> lock(mutex_);
    return SubmitLocked(what, enqueue, event);
  }

  // An event that is done when all commands are, which the driver has been told to run; none if there was no command.
  Handle<cl_event> Last() const;
  // The event of a command that does nothing.
  Handle<cl_event> Mark();

  Status Run(const gpu::Launch& launch, std::shared_ptr<const gpu::CommandTime>* time) override;
  Status NewReport(uint32_t initial, size_t* report) override;
  Status ReadReport(size_t report, uint32_t* number) override;
  Status JudgeReport(size_t report, std::function<Status(uint32_t number)> judge) override;

  cl_context context() const { return context_; }

 private:
  Queue(cl_context context, Memory& memory, gpu::EventTimes* times, Handle<cl_command_queue> queue,
        Handle<cl_mem> reports)
      : gpu::Queue(times), context_(context), memory_(memory), queue_(std::move(queue)), reports_(std::move(reports)) {}
  static std::shared_ptr<const gpu::CommandTime> TimeOf(Handle<cl_event> event);

  template <typename F>
  Status SubmitLocked(const char* what, const F& enqueue, Handle<cl_event>* event = nullptr) const {
    const bool traced = gpu::TracedCommand::IsOpen(trace());
    cl_event made = nullptr;
    XPU_RETURN_IF_CL_ERROR(enqueue(queue_.get(), event != nullptr || traced ? &made : nullptr), what);
    has_last_ = made != nullptr;
    if (has_last_) last_ = Handle<cl_event>(made);
    if (traced) gpu::TracedCommand::Note(TimeOf(Share(last_)));
    if (event != nullptr) *event = Share(last_);
    // Often enough that the device need not wait, and seldom enough that it costs little.
    constexpr int kFlushEvery = 16;
    if (++unflushed_ >= kFlushEvery) FlushLocked();
    return OkStatus();
  }
  // Makes last_ the event behind the last command.
  void MarkLastLocked() const;
  void FlushLocked() const;
  // Notes once that the device could not run the last command.
  void NoteFailureOfLast() const;
  // Later commands wait for an event of this context's.
  void BarrierLocked(cl_event event);
  void WaitForEvent(const Handle<cl_event>& event, cl_context context);
  Status CopyAcross(Memory& to, void* device_dst, Memory& from, const void* device_src, size_t size);
  // `read` may be null; else it gets the event of reading.
  Status EnqueueReading(size_t report, uint32_t* number, Handle<cl_event>* read);
  Status SetArguments(const gpu::Launch& launch);
  Status Fill(const char* what, void* device_dst, uint32_t word, size_t word_size, size_t size);
  void Fail(Status status) const { failure_.Add(std::move(status)); }

  const cl_context context_;
  Memory& memory_;
  const Handle<cl_command_queue> queue_;
  // Taken in turns: several threads may be about to use one each.
  static constexpr size_t kReports = 1024;
  const Handle<cl_mem> reports_;
  std::atomic<size_t> next_report_{0};
  MemorySlice SliceOf(size_t report) const { return {reports_.get(), report * sizeof(uint32_t)}; }
  mutable std::mutex mutex_;
  mutable Handle<cl_event> last_;  // of the last command that has one
  mutable bool has_last_ = true;   // no command came after it
  mutable int unflushed_ = 0;
  mutable host_runtime::FirstFailure failure_;
  host_runtime::HostThread callbacks_;
};

// By the device's clock.
class QueueTimer final : public Timer {
 public:
  void Start(Stream& stream) override { start_ = static_cast<Queue&>(stream).Mark(); }
  void Stop(Stream& stream) override { stop_ = static_cast<Queue&>(stream).Mark(); }
  uint64_t Nanoseconds() override;

 private:
  Handle<cl_event> start_, stop_;
};

}  // namespace xpu::opencl

#endif  // TENSORFLOW_PLUGIN_BACKENDS_OPENCL_QUEUE_H_

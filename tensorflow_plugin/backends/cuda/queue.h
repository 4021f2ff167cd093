// A stream is one of the driver's. The GPU never waits for the host. The driver may wait for the GPU when it loads a
// kernel or frees memory, with locks that the host's side needs. So what comes behind a callback is not given to the
// driver before the callback has ended. Until then the queue's thread has it, in order.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CUDA_QUEUE_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CUDA_QUEUE_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "tensorflow_plugin/backends/cuda/clock.h"
#include "tensorflow_plugin/backends/cuda/driver.h"
#include "tensorflow_plugin/backends/cuda/event.h"
#include "tensorflow_plugin/backends/cuda/staging.h"
#include "tensorflow_plugin/backends/gpu/machine.h"
#include "tensorflow_plugin/backends/host_runtime/first_failure.h"
#include "tensorflow_plugin/backends/host_runtime/host_thread.h"
#include "tensorflow_plugin/primitives/backend.h"

namespace xpu::cuda {

class Machine;
class Memory;
class Queue;

// While one lives, reports that its thread asks the queue for are read together. One at a time.
class ReportBatch {
 public:
  // More reports than that are not read together.
  static constexpr size_t kMost = 256;

  explicit ReportBatch(Queue& queue) : queue_(queue) { current_ = this; }
  ~ReportBatch() { current_ = nullptr; }
  ReportBatch(const ReportBatch&) = delete;
  ReportBatch& operator=(const ReportBatch&) = delete;

  // Waits until the commands so far have run, and tells what they reported.
  Status Read();

 private:
  friend Queue;
  static thread_local ReportBatch* current_;
  Queue& queue_;
  Status status_;  // of what copies them
  std::vector<std::pair<size_t, std::function<void(uint32_t number)>>> reports_;
};

class Queue final : public gpu::Queue {
 public:
  // The machine outlives it. A capturing one takes no commands that need the host, and judges no reports.
  static Status Create(Machine& machine, int priority, std::unique_ptr<Queue>* queue, bool is_capturing = false);
  ~Queue() override;

  void Record(Event& event) override { RecordState(static_cast<QueueEvent&>(event).state()); }
  void WaitFor(Event& event) override;
  void WaitFor(Stream& other) override;
  void HostCallback(std::function<Status()> callback) override;

  // Copies to ordinary memory are made by the queue's thread, those from it are read when it is their turn.
  Status CopyHostToDevice(void* device_dst, const void* host_src, size_t size) override;
  Status CopyDeviceToHost(void* host_dst, const void* device_src, size_t size) override;
  Status CopyDeviceToDevice(void* device_dst, const void* device_src, size_t size) override;
  Status Memset(void* device_dst, uint8_t value, size_t size) override;
  Status MemsetU32(void* device_dst, uint32_t value, size_t size) override;
  Status Read(void* host_dst, const void* device_src, size_t size) override;

  bool Idle() const override;
  void Wait() override;
  Status TakeStatus() override;
  Status PeekStatus() const override;

  Status Run(const gpu::Launch& launch, std::shared_ptr<const gpu::CommandTime>* time) override;
  bool is_capturing() const override { return is_capturing_; }
  Status NewReport(uint32_t initial, size_t* report) override;
  Status ReadReport(size_t report, uint32_t* number) override;
  bool ReadReportLater(size_t report, std::function<void(uint32_t number)> seen) override;
  // The GPU goes on meanwhile. It is judged when somebody asks for the status, or before the next callback.
  Status JudgeReport(size_t report, std::function<Status(uint32_t number)> judge) override;

  // Gives a command to the driver, by `command()`, which returns a status: at once, or when it is its turn. It must own
  // what it needs, but for memory of the host that it reads (late_reads).
  template <typename F>
  Status Submit(F command, bool reads_host = false) {
    XPU_RETURN_IF_ERROR(Enter());
    std::lock_guard<std::mutex> lock(mutex_);
    if (deferred_ == 0) return command();
    if (reads_host) ++late_reads_;
    Defer(std::move(command));
    return OkStatus();
  }
  // The same for commands that compute or move data: a profiler sees when they run.
  template <typename F>
  Status SubmitCommand(F command, bool reads_host = false) {
    return Submit(Timed(std::move(command), NewTime()), reads_host);
  }
  // How many copies from the host have read its memory after they returned. The memory's owner keeps it for them.
  uint64_t late_reads() const { return late_reads_; }
  // Records an event, by a number that it has been asked for.
  void RecordState(const std::shared_ptr<EventState>& state, uint64_t number);
  void RecordState(const std::shared_ptr<EventState>& state) { RecordState(state, state->Request()); }

  StreamHandle stream() const { return stream_; }
  // True if there are commands that the driver does not have.
  bool HasDeferred() const;
  // Makes the context the calling thread's.
  Status Enter() const;
  // Scratch memory of the queue's own, for commands that come one after the other. It grows from kScratchBytes to what
  // is asked for, kMostScratchBytes at most. Several threads may enqueue. The one that has the turn enqueues commands
  // that use it, with no other thread's between them.
  static constexpr size_t kScratchBytes = size_t{32} << 20, kMostScratchBytes = size_t{256} << 20;
  Status Scratch(size_t bytes, void** address);
  std::unique_lock<std::mutex> TakeScratchTurn() { return std::unique_lock<std::mutex>(scratch_turn_); }
  // Commands from now on use another queue's, in whose order they will run.
  void BorrowScratch(Queue& lender) { lender_ = &lender; }
  // A number that no other queue of the process has.
  uint64_t number() const { return number_; }
  // Keeps it until the commands so far have run. They run on meanwhile.
  void KeepUntilRun(std::shared_ptr<const void> kept);

 private:
  friend ReportBatch;
  Queue(Machine& machine, bool is_capturing);
  static uint64_t NextNumber();
  // Under mutex_: the queue's thread runs it behind what it has.
  void Defer(std::function<Status()> command);
  // Until the thread has nothing left.
  void AwaitDeferred() const;
  // The time of a command that this thread is about to enqueue, if a profiler asks for it; else null.
  std::shared_ptr<EventPair> NewTime();
  // `command`, and the records of its time, which may be null.
  template <typename F>
  auto Timed(F command, std::shared_ptr<EventPair> time) {
    return [this, command = std::move(command), time = std::move(time)]() mutable -> Status {
      if (time == nullptr) return command();
      XPU_RETURN_IF_ERROR(time->RecordBegin(stream_));
      Status status = command();
      const Status recorded = time->RecordEnd(stream_);
      return status.ok() ? recorded : status;
    };
  }
  Status RunNow(const gpu::Launch& launch);
  // Copies it to seen_reports_, in stream order.
  Status CopyReport(size_t report);
  // Judges the reports that the host has, in order.
  void JudgeReports() const;
  void Fail(Status status) const { failure_.Add(std::move(status)); }
  void FailUnlessOk(Status status) const {
    if (!status.ok()) Fail(std::move(status));
  }
  // Notes that the device could not run a command.
  void NoteFailure() const;

  const ContextHandle context_;
  Memory& memory_;
  Clock& clock_;
  const bool is_capturing_;
  const uint64_t number_ = NextNumber();
  StreamHandle stream_ = nullptr;

  // Taken in turns: several threads may be about to use one each.
  static constexpr size_t kReports = 1024;
  void* reports_ = nullptr;           // on the device
  uint32_t* seen_reports_ = nullptr;  // what was read of them, in pinned memory
  std::atomic<size_t> next_report_{0};
  // Those that are on their way to the host, or there.
  struct UnjudgedReport {
    uint64_t copied;  // the record of `reports_copied_` behind its copy
    std::function<Status()> judge;
  };
  mutable std::mutex judging_;  // taken before mutex_
  mutable std::deque<UnjudgedReport> unjudged_;
  mutable std::atomic<bool> has_unjudged_{false};
  std::shared_ptr<EventState> reports_copied_;
  size_t reports_since_callback_ = 0;

  // Each is larger than the one before. Graphs use those that there were when they were captured.
  struct ScratchBlock {
    void* address;
    size_t bytes;
  };
  std::mutex scratch_turn_, scratch_mutex_;
  std::vector<ScratchBlock> scratch_;
  Queue* lender_ = nullptr;

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  int deferred_ = 0;  // commands that the thread has
  std::atomic<uint64_t> late_reads_{0};
  Staging staging_;  // for who has the turn

  mutable host_runtime::FirstFailure failure_;
  mutable std::atomic<bool> lost_{false};
  // Made when there is something to do: one thread for deferred commands, one that lets go of what was kept.
  std::unique_ptr<host_runtime::HostThread> thread_, keeper_;
};

}  // namespace xpu::cuda

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CUDA_QUEUE_H_

// An in-order asynchronous queue of commands: what a stream on host memory is made of.
//
// Every command has a ticket, counted from 1 in the order of submission. Commands finish in that order, so one counter
// says which are done, an event is a ticket, and recording one costs a load.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_COMMAND_QUEUE_H_
#define TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_COMMAND_QUEUE_H_

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <type_traits>
#include <utility>

#include "tensorflow_plugin/backends/host_runtime/float_mode.h"
#include "tensorflow_plugin/backends/host_runtime/thread_team.h"
#include "tensorflow_plugin/primitives/fork.h"
#include "tensorflow_plugin/primitives/status.h"
#include "tensorflow_plugin/trace/trace_events.h"

namespace xpu::host_runtime {

// Thread-safe. Always owned by a shared_ptr: events and the worker thread keep the queue alive after its stream. In a
// forked process it goes on with what is left of its commands, by a thread of that process.
class CommandQueue final : public std::enable_shared_from_this<CommandQueue>, private ForkParticipant {
 public:
  using Ticket = uint64_t;

  struct Options {
    // Shares the work of one queued command.
    ThreadTeam team{1};
    // A command estimated to take less runs at once on the submitting thread when the queue is idle: cheaper than
    // handing it to another thread. 0 queues everything that nobody waits for.
    int64_t inline_below_ns = 20000;
    // Every command runs on the submitting thread before Submit returns, in no order but that thread's own.
    bool synchronous = false;
    // Added to the niceness of the worker thread, as far as the system permits.
    int niceness = 0;
  };

  explicit CommandQueue(const Options& options) : options_(options) { Register(); }
  ~CommandQueue();
  CommandQueue(const CommandQueue&) = delete;
  CommandQueue& operator=(const CommandQueue&) = delete;

  // Runs `command`, a Status(const ThreadTeam&), at once if it is cheap and the queue idle; else returns false and
  // did nothing. Lets the caller pass references that Enqueue would have to copy.
  template <typename F>
  bool TryRun(int64_t cost_ns, F&& command) {
    return (options_.synchronous || cost_ns < options_.inline_below_ns) && TryRunOn(ThreadTeam(1), command);
  }
  // The same whatever it costs, with the full team: for what the caller most likely waits for next.
  template <typename F>
  bool TryRunWithTeam(F&& command) {
    return TryRunOn(options_.team, command);
  }

  // Runs `command` behind all that was submitted before and returns its failure, which is not the queue's. With the
  // queue idle, the submitting thread does it, with the full team unless it is cheap. It waits in any case, and to hand
  // the command to another thread and be woken by it would only cost time.
  template <typename F>
  Status RunAwaited(int64_t cost_ns, F&& command) {
    if (options_.synchronous) return Guarded(command, options_.team);
    Status result;
    auto run = [&result, &command](const ThreadTeam& team) {
      result = Guarded(command, team);
      return OkStatus();
    };
    if (BeginInlineSoon()) {
      RunInline(run, cost_ns < options_.inline_below_ns ? ThreadTeam(1) : options_.team);
    } else if (running_here_ == this) {
      return errors::Internal("a command waits for another of its own stream");
    } else {
      Wait(Enqueue(run));
    }
    return result;
  }

  // Copies `command` into the queue for the worker thread to run with the full team; returns its ticket.
  template <typename F>
  Ticket Enqueue(F&& command) {
    using Function = std::decay_t<F>;
    if (options_.synchronous) {
      NoteFailure(Guarded(command, options_.team));
      return 0;
    }
    static_assert(sizeof(CommandOf<Function>) <= kChunkBytes, "the command does not fit a chunk");
    static_assert(alignof(CommandOf<Function>) <= alignof(std::max_align_t), "over-aligned command");
    if (!EnsureWorker()) {
      while (!BeginInline()) Wait(submitted());
      RunInline(command, options_.team);
      return 0;  // done
    }
    std::unique_lock<std::mutex> lock = LockForAppend();
    EntryChunk* chunk;
    void* place = PlaceLocked(sizeof(CommandOf<Function>), &chunk);
    auto* const queued = new (place) CommandOf<Function>(std::forward<F>(command));
    queued->op = trace::ScopedOp::Current();
    return AppendLocked(queued, chunk, std::move(lock));
  }

  template <typename F>
  void Submit(int64_t cost_ns, F&& command) {
    if (!TryRun(cost_ns, command)) Enqueue(std::forward<F>(command));
  }

  // How far a command of several steps has come, for who wants no more than what one of them writes.
  class SteppedEntry {
   public:
    virtual ~SteppedEntry() = default;
    // How many have to be done until none writes to [begin, end) any more; 0: none does.
    virtual size_t UntilWritten(const char* begin, const char* end) const = 0;

   private:
    friend class CommandQueue;
    std::atomic<size_t> done_{0};
    std::atomic<size_t> wanted_{kNone};  // the fewest that a thread waits for
    static constexpr size_t kNone = ~size_t{0};
  };

  // The thread that runs a command. With kHere, if the queue is idle, it is the submitting thread with the full team,
  // unless everything is to be queued. With kHereAlone it is that thread without a team. With kElsewhere it is the
  // worker thread.
  enum class Where { kHere, kHereAlone, kElsewhere };
  // The same as Submit for a command of steps. `here` runs it on the submitting thread, and may refer to what lives
  // as long as this call. Otherwise `make` gives its steps and a command to keep, which calls Done(*steps) after each
  // of them, in order. One that fails does not call it any more.
  template <typename Here, typename Make>
  void SubmitSteps(Where where, Here&& here, Make&& make) {
    const bool may_run = options_.synchronous || (where != Where::kElsewhere && options_.inline_below_ns > 0);
    if (may_run && TryRunOn(where == Where::kHereAlone ? ThreadTeam(1) : options_.team, here)) return;
    auto [steps, command] = make();
    Know(Enqueue(std::move(command)), std::move(steps));
  }
  void Done(SteppedEntry& steps);

  // Blocks until no submitted command that has yet to run writes to [begin, end), as far as is known. Commands that
  // were submitted without steps may.
  void WaitForWriters(const char* begin, const char* end) const;

  // The line of a profile that shows its commands while a profiler listens.
  trace::Line& line() { return line_; }

  // While one lives, this thread runs code of the program in one of the queue's commands.
  class ForeignCode {
   public:
    explicit ForeignCode(CommandQueue& queue) : queue_(queue) { queue_.runs_foreign_code_ = true; }
    ~ForeignCode() { queue_.runs_foreign_code_ = false; }
    ForeignCode(const ForeignCode&) = delete;
    ForeignCode& operator=(const ForeignCode&) = delete;

   private:
    CommandQueue& queue_;
  };

  // The ticket of the last command submitted; 0 before the first.
  Ticket submitted() const { return submitted_.load(std::memory_order_acquire); }
  bool Reached(Ticket ticket) const { return completed_.load(std::memory_order_acquire) >= ticket; }
  bool Idle() const { return Reached(submitted()); }
  // Blocks until the command with this ticket has run. Called from one of this queue's own commands it returns at
  // once: waiting for oneself would never end.
  void Wait(Ticket ticket) const;
  // Later submissions run after `ticket` of `other`.
  void WaitFor(const std::shared_ptr<CommandQueue>& other, Ticket ticket);

  // The first failure since the last TakeStatus.
  Status TakeStatus();
  Status PeekStatus() const;

  // Runs a command in the mode of commands (float_mode.h). One that throws (it ran out of memory, most likely) fails;
  // nothing may unwind into TensorFlow.
  template <typename F>
  static Status Guarded(F& function, const ThreadTeam& team) {
    const ScopedFloatMode mode(FloatMode::OfCommands());
    try {
      return function(team);
    } catch (const std::bad_alloc&) {
      return errors::ResourceExhausted("out of host memory while a command ran");
    } catch (const std::exception& e) {
      return errors::Internal("a command threw: ", e.what());
    } catch (...) {
      return errors::Internal("a command threw an unknown exception");
    }
  }

  // Waits for all commands, then lets the worker thread end. Nothing may be submitted afterwards.
  void Close();

 private:
  // Commands lie behind each other in chunks, which are reused when everything in them has run: no allocation per
  // command, whatever its size.
  static constexpr size_t kChunkBytes = 64 << 10;
  // A submitter this far ahead of the worker waits: the queue may not eat the memory of the machine.
  static constexpr Ticket kMaxDepth = 1024;

  struct EntryChunk {
    EntryChunk* next = nullptr;
    size_t used = 0;
    alignas(std::max_align_t) unsigned char bytes[kChunkBytes];
  };
  struct QueueEntry {
    QueueEntry* next = nullptr;
    EntryChunk* chunk = nullptr;
    // That enqueued it.
    trace::ScopedOp::Text op;
    // Runs the command and destroys what it captured.
    Status (*run)(QueueEntry*, const ThreadTeam&);
  };
  template <typename F>
  struct CommandOf : QueueEntry {
    template <typename G>
    explicit CommandOf(G&& g) : function(std::forward<G>(g)) {
      this->run = [](QueueEntry* command, const ThreadTeam& team) {
        auto* self = static_cast<CommandOf*>(command);
        Status status = Guarded(self->function, team);
        self->function.~F();
        return status;
      };
    }
    union {
      F function;  // destroyed by `run`
    };
    ~CommandOf() {}
  };

  template <typename F>
  bool TryRunOn(const ThreadTeam& team, F& command) {
    if (options_.synchronous) {
      NoteFailure(Guarded(command, options_.team));
      return true;
    }
    if (!BeginInline()) return false;
    RunInline(command, team);
    return true;
  }

  template <typename F>
  void RunInline(F& function, const ThreadTeam& team) {
    const CommandQueue* const outer = std::exchange(running_here_, this);
    Status status = Guarded(function, team);
    running_here_ = outer;
    EndInline(std::move(status));
  }

  bool BeginInline();
  bool BeginInlineSoon();
  void EndInline(Status status);
  bool EnsureWorker();
  std::unique_lock<std::mutex> LockForAppend();
  void* PlaceLocked(size_t size, EntryChunk** chunk);
  Ticket AppendLocked(QueueEntry* command, EntryChunk* chunk, std::unique_lock<std::mutex> lock);
  void RecycleLocked(EntryChunk* last);
  void Work();
  QueueEntry* RunTaken(QueueEntry* command);
  void PutBackLocked(QueueEntry* first);
  void SpinForWork() const;
  void WaitAside(const CommandQueue& other, Ticket ticket);

  void Stop() override;
  Running WhatRuns() override;
  void Resume() override;
  void Restart() override;

  void Complete();
  void NoteFailure(Status status);
  void Know(Ticket ticket, std::shared_ptr<SteppedEntry> steps);
  // Null if nothing is known of them.
  std::shared_ptr<SteppedEntry> StepsOf(Ticket ticket) const;

  // The queue whose command this thread runs, if any.
  static thread_local const CommandQueue* running_here_;

  const Options options_;
  trace::Line line_;

  // Each is on a cache line of its own: submitting threads write one, and running threads the other.
  alignas(64) std::atomic<Ticket> submitted_{0};
  alignas(64) std::atomic<Ticket> completed_{0};
  mutable std::atomic<int> waiters_{0};

  alignas(64) std::atomic<bool> has_work_{false};  // what the worker polls: there may be commands to take
  std::atomic<bool> worker_started_{false};
  std::atomic<bool> stopped_{false};  // for a fork: no command begins; written under mutex_
  std::atomic<bool> runs_foreign_code_{false};

  alignas(64) Mutex mutex_;  // guards what follows
  std::condition_variable work_;
  int submitter_on_ = -1;  // the processor of the latest thread that enqueued a command
  QueueEntry* head_ = nullptr;
  QueueEntry* tail_ = nullptr;
  EntryChunk* first_chunk_ = nullptr;  // in the order they were filled
  EntryChunk* last_chunk_ = nullptr;
  EntryChunk* spare_chunks_ = nullptr;
  int num_spare_chunks_ = 0;
  bool inline_running_ = false;
  bool worker_sleeps_ = false;
  bool worker_runs_ = false;     // commands that it has taken
  bool worker_waits_ = false;    // in one of them, for another queue: nothing is half done
  QueueEntry* taken_ = nullptr;  // the one that it runs; its own, unless it waits
  QueueEntry* last_taken_ = nullptr;
  bool closing_ = false;

  mutable Mutex steps_mutex_;
  std::deque<std::pair<Ticket, std::shared_ptr<SteppedEntry>>> steps_;  // by ticket, of commands that may still run

  mutable Mutex wait_mutex_;
  mutable std::condition_variable progress_;

  std::atomic<bool> failed_{false};  // status_ is not OK
  mutable Mutex status_mutex_;
  Status status_;
};

}  // namespace xpu::host_runtime

#endif  // TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_COMMAND_QUEUE_H_

#include "tensorflow_plugin/backends/host_runtime/command_queue.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <system_error>
#include <thread>

#include "tensorflow_plugin/backends/host_runtime/float_mode.h"
#include "tensorflow_plugin/backends/host_runtime/log.h"
#include "tensorflow_plugin/backends/host_runtime/machine.h"
#include "tensorflow_plugin/backends/host_runtime/spin.h"
#include "tensorflow_plugin/trace/labels.h"

namespace xpu::host_runtime {
namespace {

// How long a thread looks for news before it sleeps (see spin.h).
constexpr std::chrono::microseconds kWorkerSpin{40};
constexpr std::chrono::microseconds kWaiterSpin{20};
// How often a thread that may not go on looks whether it may.
constexpr std::chrono::microseconds kWhileStopped{100};
// Enough for a full queue of large commands: memory given back would have to be faulted in again.
constexpr int kMaxSpareChunks = 48;

}  // namespace

thread_local const CommandQueue* CommandQueue::running_here_ = nullptr;

CommandQueue::~CommandQueue() {
  Unregister();
  for (EntryChunk* list : {first_chunk_, spare_chunks_}) {
    while (list != nullptr) delete std::exchange(list, list->next);
  }
}

bool CommandQueue::BeginInline() {
  const std::unique_lock<std::mutex> lock = LockSoon(mutex_);
  const Ticket last = submitted_.load(std::memory_order_relaxed);
  // The acquire makes what earlier commands wrote visible to this one.
  if (stopped_ || completed_.load(std::memory_order_acquire) != last) return false;
  inline_running_ = true;
  submitted_.store(last + 1, std::memory_order_release);
  return true;
}

// For a caller that would otherwise wait: what runs may be about to end.
bool CommandQueue::BeginInlineSoon() {
  if (running_here_ == this) return false;
  return SpinUntil(kWaiterSpin, [this] { return Idle() && BeginInline(); });
}

void CommandQueue::EndInline(Status status) {
  if (!status.ok()) NoteFailure(std::move(status));
  bool wake;
  {
    const std::unique_lock<std::mutex> lock = LockSoon(mutex_);
    inline_running_ = false;
    wake = head_ != nullptr && worker_sleeps_;
    // Still under the lock: nobody may begin between the end of this command and the end of its exclusion.
    Complete();
  }
  if (wake) work_.notify_one();
}

// Called by the one thread that ran the current command.
void CommandQueue::Complete() {
  completed_.store(completed_.load(std::memory_order_relaxed) + 1, std::memory_order_seq_cst);
  if (waiters_.load(std::memory_order_seq_cst) > 0) {
    // The empty section orders this against a waiter that has checked but does not sleep yet.
    {
      std::lock_guard<std::mutex> lock(wait_mutex_);
    }
    progress_.notify_all();
  }
}

bool CommandQueue::EnsureWorker() {
  if (worker_started_.load(std::memory_order_acquire)) return true;
  std::lock_guard<std::mutex> lock(mutex_);
  if (worker_started_.load(std::memory_order_relaxed)) return true;
  // Signals are for the threads of the program, not for this one.
  sigset_t all, saved;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &saved);
  bool started = true;
  try {
    // Detached: TensorFlow never destroys its streams, so at process exit the thread is simply still there.
    std::thread([self = shared_from_this()] { self->Work(); }).detach();
    worker_started_.store(true, std::memory_order_release);
  } catch (const std::system_error& e) {
    LogError("no thread for a stream (", e.what(), "): its commands run on the threads that submit them");
    started = false;
  }
  pthread_sigmask(SIG_SETMASK, &saved, nullptr);
  return started;
}

std::unique_lock<std::mutex> CommandQueue::LockForAppend() {
  const Ticket last = submitted();
  // A command that submits (a host callback) must not wait: it may be what keeps the queue from draining.
  if (last > kMaxDepth && !Reached(last - kMaxDepth) && running_here_ == nullptr) Wait(last - kMaxDepth / 2);
  return LockSoon(mutex_);
}

void* CommandQueue::PlaceLocked(size_t size, EntryChunk** chunk) {
  constexpr size_t kAlign = alignof(std::max_align_t);
  size = (size + kAlign - 1) / kAlign * kAlign;
  if (last_chunk_ == nullptr || last_chunk_->used + size > kChunkBytes) {
    EntryChunk* fresh = spare_chunks_;
    if (fresh != nullptr) {
      spare_chunks_ = fresh->next;
      --num_spare_chunks_;
      fresh->next = nullptr;
      fresh->used = 0;
    } else {
      fresh = new EntryChunk;
    }
    (last_chunk_ == nullptr ? first_chunk_ : last_chunk_->next) = fresh;
    last_chunk_ = fresh;
  }
  *chunk = last_chunk_;
  void* place = last_chunk_->bytes + last_chunk_->used;
  last_chunk_->used += size;
  return place;
}

CommandQueue::Ticket CommandQueue::AppendLocked(QueueEntry* command, EntryChunk* chunk,
                                                std::unique_lock<std::mutex> lock) {
  command->chunk = chunk;
  submitter_on_ = sched_getcpu();
  (tail_ == nullptr ? head_ : tail_->next) = command;
  tail_ = command;
  const Ticket ticket = submitted_.load(std::memory_order_relaxed) + 1;
  submitted_.store(ticket, std::memory_order_release);
  const bool wake = worker_sleeps_ && !inline_running_;
  lock.unlock();
  // After the lock is free, or the polling worker would run into it.
  has_work_.store(true, std::memory_order_release);
  if (wake) work_.notify_one();
  return ticket;
}

// Everything up to and including the commands in `last` that were taken has run.
void CommandQueue::RecycleLocked(EntryChunk* last) {
  while (first_chunk_ != last) {
    EntryChunk* done = std::exchange(first_chunk_, first_chunk_->next);
    if (num_spare_chunks_ == kMaxSpareChunks) {
      delete done;
      continue;
    }
    done->next = std::exchange(spare_chunks_, done);
    ++num_spare_chunks_;
  }
  if (head_ == nullptr) last->used = 0;
}

void CommandQueue::SpinForWork() const {
  (void)SpinUntil(kWorkerSpin, [this] { return has_work_.load(std::memory_order_acquire); });
}

// Returns the first that is left, if it has been stopped.
CommandQueue::QueueEntry* CommandQueue::RunTaken(QueueEntry* command) {
  while (command != nullptr && !stopped_.load(std::memory_order_relaxed)) {
    QueueEntry* const next = command->next;
    taken_ = command;
    Status status = command->run(command, options_.team);
    if (!status.ok()) NoteFailure(trace::OfOp(std::move(status), command->op, line_.device()));
    Complete();
    command = next;
  }
  return command;
}

// Commands that were taken, from `first` to the last one.
void CommandQueue::PutBackLocked(QueueEntry* first) {
  last_taken_->next = head_;
  if (head_ == nullptr) tail_ = last_taken_;
  head_ = first;
}

void CommandQueue::Work() {
  pthread_setname_np(pthread_self(), "xpu-stream");
  running_here_ = this;
  const ScopedFloatMode mode(FloatMode::OfCommands());  // which they then find
  // On Linux this concerns the thread alone. The thread goes on if the system refuses.
  if (options_.niceness != 0) {
    constexpr int kRange = 39;  // from -20 to 19
    const int change = std::clamp(options_.niceness, -kRange, kRange);
    (void)setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + change);
  }
  bool spun = false;
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    if (head_ != nullptr && !inline_running_ && !stopped_) {
      // Take all there is: one lock for a whole chain of small commands.
      QueueEntry* const first = std::exchange(head_, nullptr);
      last_taken_ = std::exchange(tail_, nullptr);
      worker_runs_ = true;
      has_work_.store(false, std::memory_order_relaxed);
      const int submitter_on = submitter_on_;
      lock.unlock();
      options_.team.MakeRoom();  // for the thread that submits
      LeaveProcessor(submitter_on);
      QueueEntry* const left = RunTaken(first);
      lock = LockSoon(mutex_);
      worker_runs_ = false;
      EntryChunk* const last = left == nullptr ? last_taken_->chunk : left->chunk;
      if (left != nullptr) PutBackLocked(left);
      RecycleLocked(last);
      spun = false;
    } else if (closing_ && head_ == nullptr) {
      return;
    } else if (!spun && head_ == nullptr) {
      // A hint may be left over from a command that was taken already. One for a command still to come cannot be
      // lost: this thread looks at the queue itself before it sleeps.
      has_work_.store(false, std::memory_order_relaxed);
      lock.unlock();
      SpinForWork();
      lock = LockSoon(mutex_);
      spun = true;
    } else {
      worker_sleeps_ = true;
      work_.wait(lock, [this] { return head_ != nullptr ? !inline_running_ && !stopped_ : closing_; });
      worker_sleeps_ = false;
    }
  }
}

void CommandQueue::Wait(Ticket ticket) const {
  if (Reached(ticket) || running_here_ == this) return;
  if (SpinUntil(kWaiterSpin, [this, ticket] { return Reached(ticket); })) return;
  std::unique_lock<std::mutex> lock(wait_mutex_);
  waiters_.fetch_add(1, std::memory_order_seq_cst);
  progress_.wait(lock, [this, ticket] { return completed_.load(std::memory_order_seq_cst) >= ticket; });
  waiters_.fetch_sub(1, std::memory_order_relaxed);
}

void CommandQueue::Know(Ticket ticket, std::shared_ptr<SteppedEntry> steps) {
  std::lock_guard<std::mutex> lock(steps_mutex_);
  while (!steps_.empty() && Reached(steps_.front().first)) steps_.pop_front();
  steps_.emplace_back(ticket, std::move(steps));
}

std::shared_ptr<CommandQueue::SteppedEntry> CommandQueue::StepsOf(Ticket ticket) const {
  std::lock_guard<std::mutex> lock(steps_mutex_);
  for (const auto& [of, steps] : steps_) {
    if (of == ticket) return steps;
  }
  return nullptr;
}

void CommandQueue::Done(SteppedEntry& steps) {
  const size_t done = steps.done_.load(std::memory_order_relaxed) + 1;
  steps.done_.store(done, std::memory_order_seq_cst);
  if (steps.wanted_.load(std::memory_order_seq_cst) > done) return;
  {
    // Orders this against a waiter that has checked but does not sleep yet. All others will say again what they want.
    std::lock_guard<std::mutex> lock(wait_mutex_);
    steps.wanted_.store(SteppedEntry::kNone, std::memory_order_seq_cst);
  }
  progress_.notify_all();
}

void CommandQueue::WaitForWriters(const char* begin, const char* end) const {
  if (running_here_ == this) return;
  // Commands run in order: the last one that writes there is the one to wait for.
  for (Ticket ticket = submitted(); !Reached(ticket); --ticket) {
    const std::shared_ptr<SteppedEntry> steps = StepsOf(ticket);
    if (steps == nullptr) return Wait(ticket);
    const size_t until = steps->UntilWritten(begin, end);
    if (until == 0) continue;
    const auto reached = [&] {
      return steps->done_.load(std::memory_order_seq_cst) >= until ||
             completed_.load(std::memory_order_seq_cst) >= ticket;
    };
    if (SpinUntil(kWaiterSpin, reached)) return;
    std::unique_lock<std::mutex> lock(wait_mutex_);
    waiters_.fetch_add(1, std::memory_order_seq_cst);
    progress_.wait(lock, [&] {
      if (steps->wanted_.load(std::memory_order_seq_cst) > until) {
        steps->wanted_.store(until, std::memory_order_seq_cst);
      }
      return reached();
    });
    waiters_.fetch_sub(1, std::memory_order_relaxed);
    return;
  }
}

void CommandQueue::WaitFor(const std::shared_ptr<CommandQueue>& other, Ticket ticket) {
  if (other.get() == this || other->Reached(ticket)) return;
  Enqueue([this, other, ticket](const ThreadTeam&) {
    if (trace::On()) {
      const trace::Label label = trace::LabelOf(trace::Kind::kWait, "wait for another stream", 0);
      const trace::Span span(line_, label);
      WaitAside(*other, ticket);
    } else {
      WaitAside(*other, ticket);
    }
    return OkStatus();
  });
}

// In a command. The other queue may have been stopped, so this one counts as stopped, too, until it goes on.
void CommandQueue::WaitAside(const CommandQueue& other, Ticket ticket) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    worker_waits_ = true;
  }
  other.Wait(ticket);
  for (;;) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (!stopped_) {
        worker_waits_ = false;
        return;
      }
    }
    std::this_thread::sleep_for(kWhileStopped);
  }
}

void CommandQueue::Stop() {
  std::lock_guard<std::mutex> lock(mutex_);
  stopped_ = true;
}

CommandQueue::Running CommandQueue::WhatRuns() {
  if (running_here_ == this) return Running::kThisThread;
  std::lock_guard<std::mutex> lock(mutex_);
  if (!inline_running_ && (!worker_runs_ || worker_waits_)) return Running::kNothing;
  return runs_foreign_code_ ? Running::kForeignCode : Running::kWork;
}

void CommandQueue::Resume() {
  bool wake;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = false;
    wake = worker_sleeps_;
  }
  if (wake) work_.notify_one();
}

// The worker thread and those that waited are not there, and nothing that they had begun is left but a wait.
void CommandQueue::Restart() {
  new (&work_) std::condition_variable;
  new (&progress_) std::condition_variable;
  waiters_ = 0;
  stopped_ = false;
  worker_started_ = worker_sleeps_ = false;
  if (worker_runs_) PutBackLocked(taken_);
  worker_runs_ = worker_waits_ = false;
  if (head_ != nullptr) EnsureWorker();
}

void CommandQueue::NoteFailure(Status status) {
  if (status.ok()) return;
  std::lock_guard<std::mutex> lock(status_mutex_);
  if (status_.ok()) status_ = std::move(status);
  failed_.store(true, std::memory_order_release);
}

Status CommandQueue::TakeStatus() {
  if (!failed_.load(std::memory_order_acquire)) return OkStatus();
  std::lock_guard<std::mutex> lock(status_mutex_);
  failed_.store(false, std::memory_order_relaxed);
  return std::exchange(status_, Status());
}

Status CommandQueue::PeekStatus() const {
  if (!failed_.load(std::memory_order_acquire)) return OkStatus();
  std::lock_guard<std::mutex> lock(status_mutex_);
  return status_;
}

void CommandQueue::Close() {
  Wait(submitted());
  {
    std::lock_guard<std::mutex> lock(mutex_);
    closing_ = true;
  }
  work_.notify_all();
}

}  // namespace xpu::host_runtime

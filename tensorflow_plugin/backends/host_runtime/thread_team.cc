#include "tensorflow_plugin/backends/host_runtime/thread_team.h"

#include <omp.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "tensorflow_plugin/backends/host_runtime/clock.h"
#include "tensorflow_plugin/backends/host_runtime/float_mode.h"
#include "tensorflow_plugin/backends/host_runtime/log.h"
#include "tensorflow_plugin/backends/host_runtime/machine.h"
#include "tensorflow_plugin/backends/host_runtime/spin.h"
#include "tensorflow_plugin/primitives/fork.h"

namespace xpu::host_runtime {
namespace {

// Asks for a cache line of one's own.
inline void FetchToWrite(const void* line) {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(line)));
#else
  __builtin_prefetch(line, /*rw=*/1);
#endif
}

constexpr std::chrono::microseconds kLeaderSpin{50};

// A helper that is woken begins when the leader has worked for some three times as long as it took to wake it.
constexpr int64_t kWorthWaking = 4;
// Until the first has been woken, and at most.
constexpr int64_t kGuessedWakeNs = 10000, kMostWakeNs = 20000;

// Leaders that have helpers at a time. Further ones work alone.
constexpr int kMostLeaders = 16;
// More threads than shares begin with the same ones.
constexpr int kMostShares = 64;
// Cache lines that a helper fetches of the frame of its leader's caller.
constexpr int kLinesOfCaller = 8;
// A thread that the machine holds up does not hold up the rest: it has at most one range at a time.
constexpr int64_t kRangesOfShare = 4;

// OpenMP keeps threads for each thread that has led some. In a forked process it would wait for them. So a thread that
// forks lets its own go before; they come again with its next loop. All other threads that have any are gone in the
// child.
class OmpThreads final : public ForkParticipant {
 public:
  OmpThreads() { Register(); }

 private:
  void Stop() override { (void)omp_pause_resource_all(omp_pause_hard); }
};

}  // namespace

// In a forked process they start again when they are wanted.
//
// A leader opens its job at a place, and helpers enter it there. Nobody takes a lock for that: a place is one word that
// all of them change, in a cache line that idle helpers look at. A line that another core has changed takes some 50 to
// 250 nanoseconds. So to open a job is one change, and a helper asks for all lines that it needs at once.
class ThreadTeam::Helpers final : private ForkParticipant {
 public:
  explicit Helpers(int count) : count_(count), sleepers_(count) { Register(); }
  ~Helpers();
  Helpers(const Helpers&) = delete;
  Helpers& operator=(const Helpers&) = delete;

  // The grains of a job that a thread begins with. Threads that have finished theirs take ranges of the others.
  struct alignas(64) Share {
    std::atomic<int64_t> next;
    int64_t end, per_range;
  };

  // One ParallelFor; lives on its leader's stack.
  struct alignas(64) Job {
    Job(int64_t n, int64_t grain, int64_t grains, int threads, bool wakes, FunctionRef<void(int64_t, int64_t)> body)
        : n(n), grain(grain), threads(threads), wakes(wakes), share_count(std::min(threads, kMostShares)), body(body) {
      for (int i = 0; i < share_count; ++i) {
        const int64_t begin = grains * i / share_count, end = grains * (i + 1) / share_count;
        shares[i].next.store(begin, std::memory_order_relaxed);
        shares[i].end = end;
        shares[i].per_range = (end - begin + kRangesOfShare - 1) / kRangesOfShare;
      }
    }

    // Begins with the share of this number. All work has begun when it returns.
    void Work(int first) noexcept {
      try {
        for (int i = 0; i < share_count; ++i) Finish(&shares[(first + i) % share_count]);
      } catch (...) {
        for (int i = 0; i < share_count; ++i) shares[i].next.store(shares[i].end, std::memory_order_relaxed);
        if (!failed.exchange(true)) failure = std::current_exception();
      }
    }

    const int64_t n, grain;
    const int threads;
    const bool wakes;  // helpers that sleep
    const int share_count;
    const FunctionRef<void(int64_t, int64_t)> body;
    const FloatMode mode = FloatMode::OfThisThread();  // the leader's
    std::atomic<bool> failed{false};
    std::exception_ptr failure;
    Share shares[kMostShares];  // `share_count` of them

   private:
    void Finish(Share* share) {
      // A look first: a share that is done is not written again.
      while (share->next.load(std::memory_order_relaxed) < share->end) {
        const int64_t begin = share->next.fetch_add(share->per_range, std::memory_order_relaxed);
        if (begin >= share->end) return;
        body(begin * grain, std::min(n, std::min(share->end, begin + share->per_range) * grain));
      }
    }
  };

  void Run(Job* job);

  void MakeRoom() { rooms_.fetch_add(1, std::memory_order_relaxed); }

  // The leader spends so much on waking a helper, lately.
  int64_t wake_ns() const { return wake_ns_.load(std::memory_order_relaxed); }

 private:
  // Where helpers enter a job. Its state is 0, or the address of the job, with two counts: the helpers that are inside
  // and those that the job still wants. While a helper is inside, the leader keeps the job. So a helper that enters by
  // an exchange of the state finds a job that is open, whatever happened since it looked.
  struct Place {
    static constexpr uint64_t kOneInside = 1, kInside = (1 << 10) - 1;
    static constexpr uint64_t kOneWanted = 1 << 10, kWanted = kInside << 10;
    static constexpr uint64_t kLeaderSleeps = 1 << 20;
    // Jobs begin at multiples of 64, below 2^48.
    static constexpr int kAddressShift = 16;
    static constexpr uint64_t kAddress = ~uint64_t{0} << (kAddressShift + 6);

    static Job* JobOf(uint64_t state) { return reinterpret_cast<Job*>((state & kAddress) >> kAddressShift); }
    Job* job() const { return JobOf(state.load(std::memory_order_relaxed)); }
    bool IsOpen() const { return (state.load() & kWanted) != 0; }
    bool IsEmpty() const { return (state.load(std::memory_order_acquire) & kInside) == 0; }
    bool Open(Job* job, int wanted);
    bool Enter(int number);
    // No helper enters the job any more: all its work has begun. True if the leader sleeps until all have left.
    bool Leave();

    std::atomic<uint64_t> state{0};
  };
  static constexpr int kMostHelpers = static_cast<int>(Place::kInside);

  void Start();
  Place* Open(Job* job);
  void Close(Place* place);
  void Wake(int wanted);
  void KeepSleepersOff(int processor);
  Place* EnterAny(int number);
  // A single helper asks for the line that it will write. Several would take it from each other.
  bool IsAnyOpen() const {
    if (count_ == 1) FetchToWrite(places_);
    return std::any_of(places_, places_ + kMostLeaders, [](const Place& place) { return place.IsOpen(); });
  }
  void Help(int number);
  void Sleep(int number);
  void Restart() override;

  const int count_;
  std::once_flag started_;
  std::vector<std::thread> threads_;

  alignas(64) Place places_[kMostLeaders];
  // The helpers that sleep and that nobody has woken. One that goes to sleep is counted before its last look at the
  // places. A leader looks here after it has opened one. So one of the two sees the other.
  alignas(64) std::atomic<int> sleeping_{0};
  std::atomic<bool> stop_{false};
  std::atomic<unsigned> rooms_{0};  // calls of MakeRoom
  std::atomic<int> leader_on_{-1};  // the processor of the latest one
  std::atomic<int64_t> wake_ns_{kGuessedWakeNs};
  Mutex mutex_;  // of those who sleep, and of those who wake them
  std::condition_variable work_;
  std::condition_variable left_;
  // Guarded by mutex_:
  int woken_ = 0;  // helpers that have yet to notice
  struct Sleeper {
    int processor = -1;        // that the helper fell asleep on; -1: it is awake
    bool is_kept_off = false;  // from that one until it is awake
    cpu_set_t usable;          // for it then
  };
  std::vector<Sleeper> sleepers_;  // by helper
};

// False if it is taken.
bool ThreadTeam::Helpers::Place::Open(Job* job, int wanted) {
  const uint64_t open = (reinterpret_cast<uint64_t>(job) << kAddressShift) + static_cast<uint64_t>(wanted) * kOneWanted;
  uint64_t free = 0;
  return state.compare_exchange_strong(free, open);
}

bool ThreadTeam::Helpers::Place::Enter(int number) {
  uint64_t now = state.load(std::memory_order_relaxed);
  while ((now & kWanted) != 0) {
    Job* const job = JobOf(now);
    __builtin_prefetch(job);
    FetchToWrite(&job->shares[(number + 1) % kMostShares]);
    // Behind the job lies the frame of the leader's caller, which has what the body reads first.
    for (int line = 0; line < kLinesOfCaller; ++line) __builtin_prefetch(reinterpret_cast<char*>(job + 1) + 64 * line);
    if (state.compare_exchange_weak(now, now - kOneWanted + kOneInside, std::memory_order_acquire)) return true;
  }
  return false;
}

bool ThreadTeam::Helpers::Place::Leave() {
  uint64_t now = state.load(std::memory_order_relaxed);
  while (!state.compare_exchange_weak(now, (now & ~kWanted) - kOneInside, std::memory_order_release)) {
  }
  return (now & kLeaderSleeps) != 0;
}

void ThreadTeam::Helpers::Start() {
  // Signals are for the threads of the program, not for these.
  sigset_t all, saved;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &saved);
  try {
    for (int i = 0; i < count_; ++i) threads_.emplace_back([this, i] { Help(i); });
  } catch (const std::system_error& e) {
    LogError("no more threads (", e.what(), "): a device works with ", threads_.size() + 1, " instead of ", count_ + 1);
  }
  pthread_sigmask(SIG_SETMASK, &saved, nullptr);
}

// The leader of a job is not there, nor are the threads, which nobody can join.
void ThreadTeam::Helpers::Restart() {
  new (&started_) std::once_flag;
  new (&threads_) std::vector<std::thread>;
  new (&work_) std::condition_variable;
  new (&left_) std::condition_variable;
  for (Place& place : places_) place.state = 0;
  sleeping_ = 0;
  woken_ = 0;
  sleepers_.assign(count_, {});
}

ThreadTeam::Helpers::~Helpers() {
  Unregister();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  work_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

// Null if too many others lead.
ThreadTeam::Helpers::Place* ThreadTeam::Helpers::Open(Job* job) {
  const int wanted = std::min({job->threads - 1, count_, kMostHelpers}), processor = sched_getcpu();
  if (leader_on_.load(std::memory_order_relaxed) != processor) leader_on_.store(processor, std::memory_order_relaxed);
  Place* const place = std::find_if(places_, places_ + kMostLeaders, [=](Place& p) { return p.Open(job, wanted); });
  if (place == places_ + kMostLeaders) return nullptr;
  if (job->wakes && sleeping_.load() > 0) Wake(wanted);
  return place;
}

// At most so many helpers.
void ThreadTeam::Helpers::Wake(int wanted) {
  const int64_t begin = NowNs();
  int helpers;
  {
    const std::unique_lock<std::mutex> lock = LockSoon(mutex_);
    helpers = std::min(sleeping_.load(), wanted);
    if (helpers == 0) return;
    sleeping_ -= helpers;
    woken_ += helpers;
    KeepSleepersOff(sched_getcpu());
  }
  for (int i = 0; i < helpers; ++i) work_.notify_one();
  // Up quickly: one that had not slept yet took no time.
  const int64_t change = std::min((NowNs() - begin) / helpers, kMostWakeNs) - wake_ns();
  wake_ns_.store(wake_ns() + change / (change > 0 ? 2 : 8), std::memory_order_relaxed);
}

// See LeaveProcessor.
void ThreadTeam::Helpers::KeepSleepersOff(int processor) {
  for (int i = 0; i < static_cast<int>(threads_.size()); ++i) {
    Sleeper& sleeper = sleepers_[i];
    if (sleeper.processor != processor) continue;
    cpu_set_t others;
    if (!FindOthers(processor, &sleeper.usable, &others)) return;
    sleeper.is_kept_off = pthread_setaffinity_np(threads_[i].native_handle(), sizeof(others), &others) == 0;
  }
}

// Returns when all helpers have left.
void ThreadTeam::Helpers::Close(Place* place) {
  if (place->IsOpen()) place->state.fetch_and(~Place::kWanted, std::memory_order_relaxed);
  const auto is_empty = [place] { return place->IsEmpty(); };
  if (!SpinUntil(kLeaderSpin, is_empty)) {
    std::unique_lock<std::mutex> lock(mutex_);
    place->state.fetch_or(Place::kLeaderSleeps, std::memory_order_relaxed);
    left_.wait(lock, is_empty);
  }
  place->state.store(0, std::memory_order_release);
}

void ThreadTeam::Helpers::Run(Job* job) {
  std::call_once(started_, [this] { Start(); });
  Place* const place = Open(job);
  job->Work(0);
  if (place != nullptr) Close(place);
  if (job->failure != nullptr) std::rethrow_exception(job->failure);
}

ThreadTeam::Helpers::Place* ThreadTeam::Helpers::EnterAny(int number) {
  Place* const place = std::find_if(places_, places_ + kMostLeaders, [=](Place& p) { return p.Enter(number); });
  return place == places_ + kMostLeaders ? nullptr : place;
}

void ThreadTeam::Helpers::Sleep(int number) {
  std::unique_lock<std::mutex> lock(mutex_);
  Sleeper& sleeper = sleepers_[number];
  sleeper.processor = sched_getcpu();
  ++sleeping_;
  work_.wait(lock, [this] { return stop_ || woken_ > 0 || IsAnyOpen(); });
  if (woken_ > 0) {
    --woken_;
  } else {
    --sleeping_;
  }
  sleeper.processor = -1;
  if (std::exchange(sleeper.is_kept_off, false)) {
    (void)sched_setaffinity(0, sizeof(sleeper.usable), &sleeper.usable);
  }
}

// `number` counts helpers from 0.
void ThreadTeam::Helpers::Help(int number) {
  pthread_setname_np(pthread_self(), "xpu-team");
  const ScopedFloatMode mode(FloatMode::OfCommands());  // that of most jobs
  Patience patience;
  unsigned rooms = 0;
  while (!stop_) {
    bool has_left = false;  // once is enough: there may be leaders on all processors
    const auto has_news = [&] {
      if (!has_left) has_left = LeaveProcessor(leader_on_.load(std::memory_order_relaxed));
      return stop_ || IsAnyOpen();
    };
    if (Place* const place = EnterAny(number)) {
      {
        Job* const job = place->job();
        const ScopedFloatMode of_leader(job->mode);
        job->Work(number + 1);
      }
      if (place->Leave()) {
        LockSoon(mutex_).unlock();  // the leader waits by now
        left_.notify_all();
      }
      continue;
    }
    const int64_t begin = NowNs();
    if (!SpinUntil(patience.look(), has_news)) Sleep(number);
    const std::chrono::nanoseconds waited(NowNs() - begin);
    const unsigned now = rooms_.load(std::memory_order_relaxed);
    patience.Note(waited, std::exchange(rooms, now) != now);
  }
}

ThreadTeam::ThreadTeam(int size) : size_(std::max(size, 1)) {
  static auto* const omp_threads = new OmpThreads;
  (void)omp_threads;
  if (size_ > 1) helpers_ = std::make_shared<Helpers>(size_ - 1);
}

ThreadTeam ThreadTeam::OfThoseAwake() const {
  ThreadTeam team = *this;
  team.wakes_ = false;
  return team;
}

void ThreadTeam::MakeRoom() const {
  if (helpers_ != nullptr) helpers_->MakeRoom();
}

int64_t ThreadTeam::WorthWakingNs() const { return helpers_ == nullptr ? 0 : kWorthWaking * helpers_->wake_ns(); }

void ThreadTeam::ParallelFor(int64_t n, int64_t grain, FunctionRef<void(int64_t, int64_t)> body) const {
  if (n <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  const int64_t grains = (n + grain - 1) / grain;
  const int threads = static_cast<int>(std::min<int64_t>(size_, grains));
  if (threads <= 1) {
    body(0, n);
    return;
  }
  Helpers::Job job(n, grain, grains, threads, wakes_, body);
  helpers_->Run(&job);
}

ScopedOmpThreads::ScopedOmpThreads(int n) : saved_(omp_get_max_threads()) {
  if (saved_ != n) omp_set_num_threads(n);
}

ScopedOmpThreads::~ScopedOmpThreads() {
  if (omp_get_max_threads() != saved_) omp_set_num_threads(saved_);
}

}  // namespace xpu::host_runtime

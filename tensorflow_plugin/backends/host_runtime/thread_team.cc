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

#include "tensorflow_plugin/backends/host_runtime/float_mode.h"
#include "tensorflow_plugin/backends/host_runtime/log.h"
#include "tensorflow_plugin/backends/host_runtime/spin.h"
#include "tensorflow_plugin/primitives/fork.h"

namespace xpu::host_runtime {
namespace {

constexpr std::chrono::microseconds kHelperSpin{30};
constexpr std::chrono::microseconds kLeaderSpin{50};

// More threads than shares begin with the same ones.
constexpr int kMostShares = 64;
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
class ThreadTeam::Helpers final : private ForkParticipant {
 public:
  explicit Helpers(int count) : count_(count) { Register(); }
  ~Helpers();
  Helpers(const Helpers&) = delete;
  Helpers& operator=(const Helpers&) = delete;

  // The grains of a job that a thread begins with. Threads that have finished theirs take ranges of the others.
  struct alignas(64) Share {
    std::atomic<int64_t> next;
    int64_t end, per_range;
  };

  // One ParallelFor; lives on its leader's stack. A helper that has begun is counted in `inside`. Nobody touches the
  // job after the leader has seen it at 0 with the job no longer in the list.
  struct Job {
    Job(int64_t n, int64_t grain, int64_t grains, int threads, FunctionRef<void(int64_t, int64_t)> body)
        : n(n), grain(grain), helpers_wanted(threads - 1), share_count(std::min(threads, kMostShares)), body(body) {
      for (int i = 0; i < share_count; ++i) {
        const int64_t begin = grains * i / share_count, end = grains * (i + 1) / share_count;
        shares[i].next.store(begin, std::memory_order_relaxed);
        shares[i].end = end;
        shares[i].per_range = (end - begin + kRangesOfShare - 1) / kRangesOfShare;
      }
    }

    bool HasWork() const {
      return std::any_of(shares, shares + share_count,
                         [](const Share& share) { return share.next.load(std::memory_order_relaxed) < share.end; });
    }

    // Begins with the share of this number.
    void Work(int first) noexcept {
      try {
        for (int i = 0; i < share_count; ++i) Finish(&shares[(first + i) % share_count]);
      } catch (...) {
        for (int i = 0; i < share_count; ++i) shares[i].next.store(shares[i].end, std::memory_order_relaxed);
        if (!failed.exchange(true)) failure = std::current_exception();
      }
    }

    const int64_t n, grain;
    int helpers_wanted;  // guarded by the mutex, as are `following` and `leader_sleeps`
    const int share_count;
    const FunctionRef<void(int64_t, int64_t)> body;
    const FloatMode mode = FloatMode::OfThisThread();  // the leader's
    Job* following = nullptr;
    bool leader_sleeps = false;
    std::atomic<int> inside{0};
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

 private:
  void Start();
  void Help(int number);
  void Restart() override;
  Job* Joinable() const {
    Job* job = jobs_;
    while (job != nullptr && (job->helpers_wanted == 0 || !job->HasWork())) job = job->following;
    return job;
  }

  const int count_;
  std::once_flag started_;
  std::vector<std::thread> threads_;

  std::atomic<uint64_t> published_{0};  // what idle helpers poll: counts the jobs
  Mutex mutex_;                         // guards what follows
  std::condition_variable work_;
  std::condition_variable left_;
  Job* jobs_ = nullptr;
  int sleeping_ = 0;
  bool stop_ = false;
};

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
  jobs_ = nullptr;
  sleeping_ = 0;
}

ThreadTeam::Helpers::~Helpers() {
  Unregister();
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  published_.fetch_add(1, std::memory_order_release);
  work_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadTeam::Helpers::Run(Job* job) {
  std::call_once(started_, [this] { Start(); });
  int wake;
  {
    const std::unique_lock<std::mutex> lock = LockSoon(mutex_);
    wake = std::min(sleeping_, job->helpers_wanted);
    job->following = std::exchange(jobs_, job);
  }
  published_.fetch_add(1, std::memory_order_release);
  for (; wake > 0; --wake) work_.notify_one();

  job->Work(0);

  {
    const std::unique_lock<std::mutex> lock = LockSoon(mutex_);
    Job** link = &jobs_;
    while (*link != job) link = &(*link)->following;
    *link = job->following;
  }
  const auto all_left = [job] { return job->inside.load(std::memory_order_acquire) == 0; };
  if (!SpinUntil(kLeaderSpin, all_left)) {
    std::unique_lock<std::mutex> lock(mutex_);
    job->leader_sleeps = true;
    left_.wait(lock, all_left);
  }
  if (job->failure != nullptr) std::rethrow_exception(job->failure);
}

// `number` counts helpers from 0.
void ThreadTeam::Helpers::Help(int number) {
  pthread_setname_np(pthread_self(), "xpu-team");
  const ScopedFloatMode mode(FloatMode::OfCommands());  // that of most jobs
  std::unique_lock<std::mutex> lock(mutex_);
  bool spun = false;
  for (;;) {
    if (Job* const job = Joinable()) {
      --job->helpers_wanted;
      job->inside.fetch_add(1, std::memory_order_relaxed);
      lock.unlock();
      {
        const ScopedFloatMode of_leader(job->mode);
        job->Work(number + 1);
      }
      lock = LockSoon(mutex_);
      const bool leader_sleeps = job->leader_sleeps;
      job->inside.fetch_sub(1, std::memory_order_release);  // the job may be gone now
      if (leader_sleeps) left_.notify_all();
      spun = false;
    } else if (stop_) {
      return;
    } else if (!spun) {
      const uint64_t seen = published_.load(std::memory_order_relaxed);
      lock.unlock();
      spun = !SpinUntil(kHelperSpin, [&] { return published_.load(std::memory_order_acquire) != seen; });
      lock = LockSoon(mutex_);
    } else {
      ++sleeping_;
      work_.wait(lock, [this] { return stop_ || Joinable() != nullptr; });
      --sleeping_;
      spun = false;
    }
  }
}

ThreadTeam::ThreadTeam(int size) : size_(std::max(size, 1)) {
  static auto* const omp_threads = new OmpThreads;
  (void)omp_threads;
  if (size_ > 1) helpers_ = std::make_shared<Helpers>(size_ - 1);
}

void ThreadTeam::ParallelFor(int64_t n, int64_t grain, FunctionRef<void(int64_t, int64_t)> body) const {
  if (n <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  const int64_t grains = (n + grain - 1) / grain;
  const int threads = static_cast<int>(std::min<int64_t>(size_, grains));
  if (threads <= 1) {
    body(0, n);
    return;
  }
  Helpers::Job job(n, grain, grains, threads, body);
  helpers_->Run(&job);
}

ScopedOmpThreads::ScopedOmpThreads(int n) : saved_(omp_get_max_threads()) {
  if (saved_ != n) omp_set_num_threads(n);
}

ScopedOmpThreads::~ScopedOmpThreads() {
  if (omp_get_max_threads() != saved_) omp_set_num_threads(saved_);
}

}  // namespace xpu::host_runtime

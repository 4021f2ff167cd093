// The threads that share one command's work. One team per device; the thread that runs a command leads it.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_THREAD_TEAM_H_
#define TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_THREAD_TEAM_H_

#include <cstdint>
#include <memory>
#include <type_traits>

namespace xpu::host_runtime {

// A borrowed callable: no allocation, valid during the call it is passed to.
template <typename Function>
class FunctionRef;
template <typename R, typename... A>
class FunctionRef<R(A...)> {
 public:
  template <typename F, typename = std::enable_if_t<!std::is_same_v<std::decay_t<F>, FunctionRef>>>
  FunctionRef(F&& f)  // NOLINT: implicit on purpose
      : object_(const_cast<void*>(static_cast<const void*>(&f))),
        call_([](void* o, A... a) -> R { return (*static_cast<std::remove_reference_t<F>*>(o))(a...); }) {}
  R operator()(A... a) const { return call_(object_, a...); }

 private:
  void* object_;
  R (*call_)(void*, A...);
};

// A helper that looks for work takes it in about half a microsecond. So a command is shared from kWorthSharingNs of
// work on, and a grain is worth kGrainNs. To wake one that sleeps costs more (ThreadTeam::WorthWakingNs).
inline constexpr int64_t kWorthSharingNs = 4000;
inline constexpr double kGrainNs = 2500;

// Splits index ranges over `size` threads: the one that calls and size - 1 helpers. Copies share the helpers, which
// start at the first call that wants them; several threads may lead at once.
//
// A leader never waits for a helper that has not begun: one that sleeps, or that the machine holds up, costs nothing
// but its help. (OpenMP's teams wait for all their threads at the end of each region; oneDNN's loops are OpenMP's.)
class ThreadTeam {
 public:
  explicit ThreadTeam(int size);
  int size() const { return size_; }

  // Says that threads outside of the team work, too. For a while helpers then look for work only briefly before they
  // sleep.
  void MakeRoom() const;

  // The same team, whose helpers stay asleep if they are.
  ThreadTeam OfThoseAwake() const;
  // Nanoseconds of one thread's work that are worth waking helpers for. Measured: a processor of a virtual machine
  // wakes in 40 microseconds, and 14 of them are the leader's.
  int64_t WorthWakingNs() const;

  // Calls body(begin, end) over disjoint ranges that cover [0, n), each a multiple of `grain` long but the last;
  // returns when all are done. Runs on the calling thread alone when n <= grain or the team has one thread.
  // `grain` is in indices: choose it so that one grain is worth kGrainNs. An exception of a body is thrown to the
  // caller once all threads have left; the ranges that had not begun are not run then.
  //
  // Each thread begins with its own share of adjacent indices, the same in all calls. So commands over the same rows
  // find them in the thread's own cache.
  void ParallelFor(int64_t n, int64_t grain, FunctionRef<void(int64_t begin, int64_t end)> body) const;

 private:
  class Helpers;

  int size_;
  bool wakes_ = true;
  std::shared_ptr<Helpers> helpers_;  // null in a team of one
};

// While alive, OpenMP regions started by this thread (oneDNN's) use `n` threads.
class ScopedOmpThreads {
 public:
  explicit ScopedOmpThreads(int n);
  ~ScopedOmpThreads();

 private:
  int saved_;
};

}  // namespace xpu::host_runtime

#endif  // TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_THREAD_TEAM_H_

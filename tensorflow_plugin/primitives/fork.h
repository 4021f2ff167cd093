// How the plugin comes through a fork.
//
// A child has only one of the threads: the one that forked. So before a fork all work here comes to a point where its
// data is whole, and stops. No lock is held then, since nobody would give it back in the child. There all of it begins
// anew, with threads of its own, and with what was queued. In the parent it goes on.
#ifndef TENSORFLOW_PLUGIN_PRIMITIVES_FORK_H_
#define TENSORFLOW_PLUGIN_PRIMITIVES_FORK_H_

#include <chrono>
#include <mutex>

namespace xpu {

// A lock that the forking thread takes before.
class ForkLock {
 public:
  virtual bool TryToTake() = 0;
  virtual void GiveBack() = 0;
  // In the child: nobody has it, and nobody waits for it.
  virtual void Renew() = 0;

 protected:
  ~ForkLock() = default;
  void Register();
  void Unregister();
};

// For whatever outlives a call. Where the fork comes while another thread is inside, the child would wait for ever at a
// std::mutex.
class Mutex final : public std::mutex, private ForkLock {
 public:
  Mutex() { Register(); }
  ~Mutex() { Unregister(); }

 private:
  bool TryToTake() override { return try_lock(); }
  void GiveBack() override { unlock(); }
  void Renew() override;
};

// An object that runs threads of its own.
class ForkParticipant {
 public:
  // Before a fork; perhaps several times. From now on nothing begins.
  virtual void Stop() {}
  enum class Running {
    kNothing,
    kWork,         // which ends
    kForeignCode,  // which may wait for the thread that forks
    kThisThread    // the fork is part of what runs
  };
  // Asked again and again after Stop.
  virtual Running WhatRuns() { return Running::kNothing; }
  // After Stop, in the parent, or because there is no fork now.
  virtual void Resume() {}
  // After Stop, in the child. This thread registers nothing meanwhile.
  virtual void Restart() {}

 protected:
  ~ForkParticipant() = default;
  // To be called as soon as, and as long as, the object is whole.
  void Register();
  void Unregister();
};

// True if all participants had stopped at the last fork that this process comes from. If not, none was restarted.
bool AllStoppedForFork();

// How long a fork waits for what holds it up.
struct ForkPatience {
  // The time until the threads that TensorFlow and the program run all sleep. One that always runs would hold up every
  // fork: each time in vain halves the patience, down to the least.
  std::chrono::nanoseconds with_threads = std::chrono::milliseconds(500);
  std::chrono::nanoseconds least_with_threads = std::chrono::milliseconds(10);
  // The time for which a fork is tried while foreign code runs, which may wait for the thread that forks.
  std::chrono::nanoseconds with_code = std::chrono::seconds(5);
  // The time for the case that nothing runs and some lock is never free.
  std::chrono::nanoseconds with_locks = std::chrono::seconds(60);
};
// From now on. For tests, which no clock decides then.
void SetForkPatience(const ForkPatience& patience);

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_PRIMITIVES_FORK_H_

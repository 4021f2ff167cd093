#include "tensorflow_plugin/primitives/fork.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <thread>
#include <unordered_set>

#include "tensorflow_plugin/primitives/other_threads.h"

namespace xpu {
namespace {

using Clock = std::chrono::steady_clock;

// The time for which a fork is tried while foreign code runs, which may wait for the thread that forks. Then the time
// for the case that nothing runs and some lock is never free.
constexpr std::chrono::seconds kPatienceWithCode{5}, kPatienceWithLocks{60};
// How long everything may have stopped before it goes on for a moment: what is still to end may need what has stopped.
constexpr std::chrono::milliseconds kStopped{50};
constexpr std::chrono::microseconds kBetweenLooks{20};
constexpr std::chrono::milliseconds kBetweenTries{1};
constexpr int kTriesPerLock = 50;
// How long the threads that TensorFlow and the program run may take until all of them sleep. One that always runs
// would hold up every fork: each time in vain halves the patience.
constexpr std::chrono::milliseconds kPatienceWithThreads{500}, kLeastPatienceWithThreads{10};

// Lives for ever.
struct State {
  std::mutex mutex;  // guards both sets, and is held from before a fork to after it
  std::unordered_set<ForkLock*> locks;
  std::unordered_set<ForkParticipant*> participants;
  bool all_stopped = true;
  std::chrono::milliseconds patience_with_threads = kPatienceWithThreads;
};
void BeforeFork();
void AfterForkInParent();
void AfterForkInChild();
State& TheState() {
  static auto* const state = [] {
    auto* const made = new State;
    (void)pthread_atfork(BeforeFork, AfterForkInParent, AfterForkInChild);  // fails without memory alone
    return made;
  }();
  return *state;
}

bool Take(ForkLock& lock) {
  for (int i = 0; i < kTriesPerLock; ++i) {
    if (lock.TryToTake()) return true;
    sched_yield();
  }
  return false;
}

bool TakeAll(State& state) {
  for (auto lock = state.locks.begin(); lock != state.locks.end(); ++lock) {
    if (Take(**lock)) continue;
    for (auto taken = state.locks.begin(); taken != lock; ++taken) (*taken)->GiveBack();
    return false;
  }
  return true;
}

ForkParticipant::Running WhatRuns(State& state) {
  ForkParticipant::Running most = ForkParticipant::Running::kNothing;
  for (ForkParticipant* p : state.participants) most = std::max(most, p->WhatRuns());
  return most;
}

void Resume(State& state) {
  for (ForkParticipant* p : state.participants) p->Resume();
}

// Other threads may be inside TensorFlow and hold its locks, which nobody would give back in the child. They hold none
// for long: a thread that sleeps has come to where it waits for work, for Python, or for a device.
void AwaitThreads(State& state) {
  state.mutex.lock();
  const auto patience = state.participants.empty() ? std::chrono::milliseconds(0) : state.patience_with_threads;
  state.mutex.unlock();
  if (patience.count() == 0) return;
  const bool asleep = AwaitOtherThreadsAsleep(patience);
  state.mutex.lock();
  state.patience_with_threads = asleep ? kPatienceWithThreads : std::max(patience / 2, kLeastPatienceWithThreads);
  state.mutex.unlock();
}

void BeforeFork() {
  using Running = ForkParticipant::Running;
  State& state = TheState();
  AwaitThreads(state);
  const auto begin = Clock::now();
  for (;;) {
    state.mutex.lock();
    for (ForkParticipant* p : state.participants) p->Stop();
    Running running;
    const auto stopped_until = Clock::now() + kStopped;
    while ((running = WhatRuns(state)) != Running::kNothing && running != Running::kThisThread &&
           Clock::now() < stopped_until) {
      std::this_thread::sleep_for(kBetweenLooks);
    }
    state.all_stopped = running == Running::kNothing && TakeAll(state);
    if (state.all_stopped) return;
    Resume(state);
    const auto tried = Clock::now() - begin;
    if (running == Running::kThisThread || (running == Running::kForeignCode && tried >= kPatienceWithCode) ||
        (running == Running::kNothing && tried >= kPatienceWithLocks)) {
      return;
    }
    state.mutex.unlock();
    std::this_thread::sleep_for(kBetweenTries);
  }
}

void AfterForkInParent() {
  State& state = TheState();
  if (state.all_stopped) {
    for (ForkLock* lock : state.locks) lock->GiveBack();
    Resume(state);
  }
  state.mutex.unlock();
}

void AfterForkInChild() {
  State& state = TheState();
  for (ForkLock* lock : state.locks) lock->Renew();
  new (&state.mutex) std::mutex;
  if (!state.all_stopped) return;
  std::lock_guard<std::mutex> lock(state.mutex);  // those that have restarted may register more
  for (ForkParticipant* p : state.participants) p->Restart();
}

}  // namespace

void ForkLock::Register() {
  State& state = TheState();
  std::lock_guard<std::mutex> lock(state.mutex);
  state.locks.insert(this);
}

void ForkLock::Unregister() {
  State& state = TheState();
  std::lock_guard<std::mutex> lock(state.mutex);
  state.locks.erase(this);
}

void Mutex::Renew() { new (static_cast<std::mutex*>(this)) std::mutex; }

void ForkParticipant::Register() {
  State& state = TheState();
  std::lock_guard<std::mutex> lock(state.mutex);
  state.participants.insert(this);
}

void ForkParticipant::Unregister() {
  State& state = TheState();
  std::lock_guard<std::mutex> lock(state.mutex);
  state.participants.erase(this);
}

bool AllStoppedForFork() { return TheState().all_stopped; }

}  // namespace xpu

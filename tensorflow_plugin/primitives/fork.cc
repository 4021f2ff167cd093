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

// How long everything may have stopped before it goes on for a moment: what is still to end may need what has stopped.
constexpr std::chrono::milliseconds kStopped{50};
constexpr std::chrono::microseconds kBetweenLooks{20};
constexpr std::chrono::milliseconds kBetweenTries{1};
constexpr int kTriesPerLock = 50;

// Lives for ever.
struct State {
  std::mutex mutex;  // guards both sets, and is held from before a fork to after it
  std::unordered_set<ForkLock*> locks;
  std::unordered_set<ForkParticipant*> participants;
  bool all_stopped = true;
  ForkPatience patience;
  std::chrono::nanoseconds with_threads_now = patience.with_threads;
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
  const auto at_most = state.participants.empty() ? std::chrono::nanoseconds(0) : state.with_threads_now;
  state.mutex.unlock();
  if (at_most.count() == 0) return;
  const bool asleep = AwaitOtherThreadsAsleep(at_most);
  state.mutex.lock();
  const ForkPatience& patience = state.patience;
  state.with_threads_now = asleep ? patience.with_threads : std::max(at_most / 2, patience.least_with_threads);
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
    if (running == Running::kThisThread || (running == Running::kForeignCode && tried >= state.patience.with_code) ||
        (running == Running::kNothing && tried >= state.patience.with_locks)) {
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

void SetForkPatience(const ForkPatience& patience) {
  State& state = TheState();
  std::lock_guard<std::mutex> lock(state.mutex);
  state.patience = patience;
  state.with_threads_now = patience.with_threads;
}

}  // namespace xpu

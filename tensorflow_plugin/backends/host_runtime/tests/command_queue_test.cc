// The command queue under many threads: order, exclusion, dependencies, failures. Clean under the thread sanitizer.
#include "tensorflow_plugin/backends/host_runtime/command_queue.h"

#include <signal.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace xpu::host_runtime {
namespace {

void Sleep(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

std::shared_ptr<CommandQueue> NewQueue(int64_t inline_below_ns = 20000) {
  CommandQueue::Options options;
  options.inline_below_ns = inline_below_ns;
  return std::make_shared<CommandQueue>(options);
}

TEST(CommandQueue, OrderPerThreadAndExclusionUnderManySubmitters) {
  auto queue = NewQueue();
  constexpr int kThreads = 4, kCommands = 3000;
  std::vector<int> last(kThreads, -1);  // not atomic on purpose: the queue must exclude and publish
  int running = 0;
  bool ordered = true, exclusive = true;
  std::atomic<bool> awaited{true};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kCommands; ++i) {
        const int64_t cost = (i * 7 + t) % 3 == 0 ? 1000000 : 10;
        auto command = [&, t, i](const ThreadTeam&) {
          if (running++ != 0) exclusive = false;
          if (last[t] != i - 1) ordered = false;
          last[t] = i;
          --running;
          return OkStatus();
        };
        if (i % 5 == 0) {
          (void)queue->RunAwaited(cost, command);
          if (last[t] != i) awaited = false;
        } else {
          queue->Submit(cost, command);
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  queue->Wait(queue->submitted());
  EXPECT_TRUE(queue->Idle());
  EXPECT_TRUE(ordered);
  EXPECT_TRUE(exclusive);
  EXPECT_TRUE(awaited);
  for (int t = 0; t < kThreads; ++t) EXPECT_EQ(last[t], kCommands - 1);
  EXPECT_EQ(queue->submitted(), static_cast<uint64_t>(kThreads) * kCommands);
  queue->Close();
}

TEST(CommandQueue, CheapCommandsRunAtOnceOnlyWhenIdle) {
  auto queue = NewQueue();
  std::thread::id ran_on;
  auto note = [&](const ThreadTeam& team) {
    ran_on = std::this_thread::get_id();
    EXPECT_EQ(team.size(), 1);
    return OkStatus();
  };
  queue->Submit(10, note);
  EXPECT_EQ(ran_on, std::this_thread::get_id());
  queue->Submit(1000000, note);
  queue->Wait(queue->submitted());
  EXPECT_NE(ran_on, std::this_thread::get_id());
  std::atomic<bool> go{false};
  queue->Enqueue([&](const ThreadTeam&) {
    while (!go) Sleep(1);
    return OkStatus();
  });
  ran_on = {};
  queue->Submit(10, note);
  EXPECT_FALSE(queue->Idle());
  go = true;
  queue->Wait(queue->submitted());
  EXPECT_NE(ran_on, std::thread::id());
  EXPECT_NE(ran_on, std::this_thread::get_id());
  queue->Close();
}

// A command that blocks its queue until it is told to go.
struct Gate {
  void Block(CommandQueue& queue) {
    queue.Enqueue([this](const ThreadTeam&) {
      while (!open) Sleep(1);
      return OkStatus();
    });
  }
  std::atomic<bool> open{false};
};

TEST(CommandQueue, AwaitedCommandsRunAtOnceWithTheTeamWhenIdle) {
  CommandQueue::Options options;
  options.team = ThreadTeam(3);
  auto queue = std::make_shared<CommandQueue>(options);
  std::thread::id ran_on;
  int team_size = 0;
  auto note = [&](const ThreadTeam& team) {
    ran_on = std::this_thread::get_id();
    team_size = team.size();
    return OkStatus();
  };
  EXPECT_TRUE(queue->RunAwaited(1000000, note).ok());
  EXPECT_EQ(ran_on, std::this_thread::get_id());
  EXPECT_EQ(team_size, 3);
  EXPECT_TRUE(queue->RunAwaited(10, note).ok());
  EXPECT_EQ(team_size, 1);
  EXPECT_EQ(queue->submitted(), 2u);
  EXPECT_TRUE(queue->Idle());
  queue->Close();
}

TEST(CommandQueue, AwaitedCommandsRunBehindQueuedOnes) {
  auto queue = NewQueue();
  Gate gate;
  gate.Block(*queue);
  int value = 0;  // not atomic on purpose
  queue->Enqueue([&](const ThreadTeam&) {
    value = 1;
    return OkStatus();
  });
  std::thread::id ran_on;
  std::thread waiter([&] {
    EXPECT_TRUE(queue
                    ->RunAwaited(10,
                                 [&](const ThreadTeam&) {
                                   ran_on = std::this_thread::get_id();
                                   value = value * 10 + 2;
                                   return OkStatus();
                                 })
                    .ok());
    EXPECT_EQ(value, 12);
    EXPECT_NE(ran_on, std::this_thread::get_id());
  });
  while (queue->submitted() < 3) Sleep(1);
  gate.open = true;
  waiter.join();
  queue->Close();
}

TEST(CommandQueue, FailuresOfAwaitedCommandsAreTheirCallers) {
  auto queue = NewQueue();
  auto fail = [](const ThreadTeam&) -> Status { throw std::runtime_error("thrown"); };
  EXPECT_EQ(queue->RunAwaited(1000000, fail).message(), "a command threw: thrown");
  Gate gate;
  gate.Block(*queue);
  std::thread waiter([&] { EXPECT_EQ(queue->RunAwaited(10, fail).message(), "a command threw: thrown"); });
  while (queue->submitted() < 3) Sleep(1);
  gate.open = true;
  waiter.join();
  EXPECT_TRUE(queue->TakeStatus().ok());
  queue->Enqueue([&](const ThreadTeam&) { return queue->RunAwaited(10, fail); });
  queue->Wait(queue->submitted());
  EXPECT_EQ(queue->TakeStatus().message(), "a command waits for another of its own stream");
  queue->Close();
}

TEST(CommandQueue, WaitForHoldsBackUntilTheOtherHasRun) {
  auto first = NewQueue(), second = NewQueue();
  int value = 0;
  first->Enqueue([&](const ThreadTeam&) {
    Sleep(30);
    value = 1;
    return OkStatus();
  });
  int seen = -1;
  second->WaitFor(first, first->submitted());
  // Enqueued on `first` after the dependency was made: not waited for.
  std::atomic<bool> release{false};
  first->Enqueue([&](const ThreadTeam&) {
    while (!release) Sleep(1);
    return OkStatus();
  });
  second->Submit(1, [&](const ThreadTeam&) {
    seen = value;
    return OkStatus();
  });
  second->Wait(second->submitted());
  EXPECT_EQ(seen, 1);
  EXPECT_FALSE(first->Idle());
  release = true;
  first->Close();
  second->Close();
}

TEST(CommandQueue, WaitForAnIdleQueueCostsNoCommand) {
  auto first = NewQueue(), second = NewQueue();
  first->Submit(1, [](const ThreadTeam&) { return OkStatus(); });
  second->WaitFor(first, first->submitted());
  EXPECT_EQ(second->submitted(), 0u);
}

TEST(CommandQueue, DependenciesAmongManyQueuesAndThreads) {
  // Each thread passes a token around three queues; the counter is only protected by the dependencies.
  std::shared_ptr<CommandQueue> queues[3] = {NewQueue(), NewQueue(), NewQueue()};
  int64_t counter = 0;
  for (int i = 0; i < 3000; ++i) {
    auto& from = queues[i % 3];
    auto& to = queues[(i + 1) % 3];
    from->Submit(i % 5 == 0 ? 100000 : 10, [&](const ThreadTeam&) {
      ++counter;
      return OkStatus();
    });
    to->WaitFor(from, from->submitted());
  }
  for (auto& queue : queues) queue->Wait(queue->submitted());
  EXPECT_EQ(counter, 3000);
  for (auto& queue : queues) queue->Close();
}

TEST(CommandQueue, KeepsTheFirstFailureAndGoesOn) {
  auto queue = NewQueue();
  int ran = 0;
  for (int i = 0; i < 4; ++i) {
    queue->Enqueue([&, i](const ThreadTeam&) {
      ++ran;
      return i == 1 || i == 2 ? errors::Internal("failure ", i) : OkStatus();
    });
  }
  queue->Enqueue([](const ThreadTeam&) -> Status { throw std::runtime_error("thrown"); });
  queue->Wait(queue->submitted());
  EXPECT_EQ(ran, 4);
  EXPECT_EQ(queue->PeekStatus().message(), "failure 1");
  EXPECT_EQ(queue->TakeStatus().message(), "failure 1");
  EXPECT_TRUE(queue->TakeStatus().ok());
  queue->Submit(1, [](const ThreadTeam&) -> Status { throw std::bad_alloc(); });
  EXPECT_EQ(queue->TakeStatus().code(), Code::kResourceExhausted);
  queue->Submit(1, [](const ThreadTeam&) -> Status { throw std::runtime_error("thrown"); });
  EXPECT_EQ(queue->TakeStatus().message(), "a command threw: thrown");
  queue->Close();
}

TEST(CommandQueue, DestroysWhatCommandsCaptured) {
  auto queue = NewQueue(0);
  auto token = std::make_shared<int>(0);
  for (int i = 0; i < 1000; ++i) queue->Submit(1, [token](const ThreadTeam&) { return OkStatus(); });
  queue->Wait(queue->submitted());
  queue->Close();
  EXPECT_EQ(token.use_count(), 1);
}

TEST(CommandQueue, SubmittersFarAheadWait) {
  auto queue = NewQueue(0);
  std::atomic<bool> go{false};
  std::atomic<int> submitted{0};
  queue->Enqueue([&](const ThreadTeam&) {
    while (!go) Sleep(1);
    return OkStatus();
  });
  std::thread submitter([&] {
    for (int i = 0; i < 20000; ++i) {
      queue->Enqueue([](const ThreadTeam&) { return OkStatus(); });
      ++submitted;
    }
  });
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (submitted < 1024 && std::chrono::steady_clock::now() < deadline) Sleep(1);
  Sleep(50);
  EXPECT_EQ(submitted, 1024);
  go = true;
  submitter.join();
  queue->Wait(queue->submitted());
  EXPECT_EQ(queue->submitted(), 20001u);
  queue->Close();
}

// Three steps, of which each writes a byte of its own when it is told to go on.
class ThreeSteps final : public CommandQueue::SteppedEntry {
 public:
  size_t UntilWritten(const char* begin, const char* end) const override {
    for (size_t i = 3; i > 0; --i) {
      if (begin < bytes + i && bytes + i - 1 < end) return i;
    }
    return 0;
  }
  Status Run(CommandQueue& queue) {
    for (int i = 0; i < 3; ++i) {
      while (may_run <= i) Sleep(1);
      bytes[i] = 'x';  // not atomic on purpose: who waits for it must see it
      if (i >= fails_at) continue;
      queue.Done(*this);
    }
    return fails_at < 3 ? errors::Internal("a step failed") : OkStatus();
  }

  char bytes[4] = {};
  std::atomic<int> may_run{0};
  int fails_at = 3;
};

class CommandQueueSteps : public ::testing::Test {
 protected:
  ~CommandQueueSteps() override {
    for (const auto& steps : all_) steps->may_run = 3;
    queue_->Close();
  }
  ThreeSteps& Submit(int fails_at = 3) {
    const auto steps = std::make_shared<ThreeSteps>();
    steps->fails_at = fails_at;
    const auto run = [this, steps](const ThreadTeam&) { return steps->Run(*queue_); };
    queue_->SubmitSteps(CommandQueue::Where::kElsewhere, run,
                        [&] { return std::pair(std::shared_ptr<CommandQueue::SteppedEntry>(steps), run); });
    all_.push_back(steps);
    return *steps;
  }
  // A thread that waits for a byte, and then says what it is.
  struct Reader {
    std::atomic<char> found{'?'};
    std::thread thread;
    ~Reader() { thread.join(); }
    bool is_waiting() const {
      Sleep(50);
      return found == '?';
    }
    char Found() const {
      for (int i = 0; i < 5000 && found == '?'; ++i) Sleep(1);
      return found;
    }
  };
  std::unique_ptr<Reader> Read(const char* byte) {
    auto reader = std::make_unique<Reader>();
    reader->thread = std::thread([this, byte, &found = reader->found] {
      queue_->WaitForWriters(byte, byte + 1);
      found = *byte;
    });
    return reader;
  }

  std::shared_ptr<CommandQueue> queue_ = NewQueue(0);
  std::vector<std::shared_ptr<ThreeSteps>> all_;
};

TEST_F(CommandQueueSteps, ReadersWaitForTheLastStepThatWritesThere) {
  ThreeSteps& steps = Submit();
  queue_->WaitForWriters(steps.bytes + 3, steps.bytes + 4);  // which none writes
  const auto second = Read(steps.bytes + 1), third = Read(steps.bytes + 2), first = Read(steps.bytes);
  EXPECT_TRUE(first->is_waiting());
  steps.may_run = 1;
  EXPECT_EQ(first->Found(), 'x');
  EXPECT_TRUE(second->is_waiting());
  steps.may_run = 2;
  EXPECT_EQ(second->Found(), 'x');
  EXPECT_TRUE(third->is_waiting());
  EXPECT_FALSE(queue_->Idle());
  steps.may_run = 3;
  EXPECT_EQ(third->Found(), 'x');
}

TEST_F(CommandQueueSteps, AndForTheLastCommandThatWritesThere) {
  ThreeSteps& first = Submit();
  ThreeSteps& second = Submit();
  const auto of_first = Read(first.bytes), of_second = Read(second.bytes);
  first.may_run = 1;
  EXPECT_EQ(of_first->Found(), 'x');
  EXPECT_TRUE(of_second->is_waiting());
  second.may_run = 1;  // but its turn has not come
  EXPECT_TRUE(of_second->is_waiting());
  first.may_run = 3;
  EXPECT_EQ(of_second->Found(), 'x');
}

TEST_F(CommandQueueSteps, CommandsOfWhichNothingIsKnownMayWriteAnywhere) {
  ThreeSteps& steps = Submit();
  steps.may_run = 3;
  std::atomic<bool> go{false};
  queue_->Enqueue([&](const ThreadTeam&) {
    while (!go) Sleep(1);
    return OkStatus();
  });
  const auto reader = Read(steps.bytes);
  EXPECT_TRUE(reader->is_waiting());
  go = true;
  EXPECT_EQ(reader->Found(), 'x');
}

TEST_F(CommandQueueSteps, BehindAFailureReadersWaitUntilItIsKnown) {
  ThreeSteps& steps = Submit(/*fails_at=*/1);
  const auto second = Read(steps.bytes + 1);
  steps.may_run = 2;
  EXPECT_TRUE(second->is_waiting());
  steps.may_run = 3;
  EXPECT_EQ(second->Found(), 'x');
  EXPECT_FALSE(queue_->PeekStatus().ok());
}

// Whatever the thread that first submits lets through.
TEST(CommandQueue, LeavesSignalsToTheProgramsThreads) {
  auto queue = NewQueue();
  int blocked = 0;
  queue->Enqueue([&](const ThreadTeam&) {
    sigset_t set;
    pthread_sigmask(SIG_SETMASK, nullptr, &set);
    for (int signal : {SIGINT, SIGTERM, SIGUSR1, SIGCHLD}) blocked += sigismember(&set, signal);
    return OkStatus();
  });
  queue->Wait(queue->submitted());
  EXPECT_EQ(blocked, 4);
  sigset_t here;
  pthread_sigmask(SIG_SETMASK, nullptr, &here);
  EXPECT_FALSE(sigismember(&here, SIGINT));
  queue->Close();
}

#if defined(__x86_64__)
// True if this thread computes as commands do, or, with `zero_arguments`, as products of matrices. Hidden from the
// compiler.
bool ComputesRight(bool zero_arguments) {
  volatile float least = 0x1p-126f, below = 0x1p-130f, half = 0.5f, large = 0x1p100f, one = 1, tiny = 0x1p-60f;
  return least * half == 0 && below * large == (zero_arguments ? 0.0f : 0x1p-30f) && one + tiny == 1;
}

// The thread that submits a command runs some, the queue's thread and the team others; the team's threads begin with
// their maker's mode.
TEST(CommandQueue, CommandsHaveAModeOfTheirOwn) {
  const unsigned before = _mm_getcsr();
  for (unsigned mode : {0x1f80u, 0x1f80u | _MM_FLUSH_ZERO_ON | 0x40u, 0x1f80u | _MM_ROUND_UP}) {
    _mm_setcsr(mode);
    CommandQueue::Options options;
    options.team = ThreadTeam(3);
    auto queue = std::make_shared<CommandQueue>(options);
    std::atomic<int> ranges{0}, wrong{0};
    auto command = [&](const ThreadTeam& team) {
      for (const bool zero_arguments : {false, true, false}) {
        const ScopedFloatMode mode(zero_arguments ? FloatMode::OfProducts() : FloatMode::OfCommands());
        team.ParallelFor(64, 1, [&](int64_t, int64_t) {
          wrong += !ComputesRight(zero_arguments);
          ++ranges;
          if (team.size() > 1) Sleep(1);  // or one of them does all
        });
      }
      wrong += !ComputesRight(false);
      return OkStatus();
    };
    for (int64_t cost : {10, 1000000}) queue->Submit(cost, command);
    (void)queue->RunAwaited(1000000, command);
    queue->Enqueue(command);
    queue->Close();
    const unsigned after = _mm_getcsr();
    _mm_setcsr(before);
    EXPECT_GT(ranges, 12);
    EXPECT_EQ(wrong, 0) << "of " << ranges << " in mode " << mode;
    EXPECT_EQ(after & ~_MM_EXCEPT_MASK, mode) << "the submitter's";
  }
}
#endif

TEST(CommandQueue, WaitingInsideAnOwnCommandReturns) {
  auto queue = NewQueue();
  queue->Enqueue([&](const ThreadTeam&) {
    queue->Enqueue([](const ThreadTeam&) { return OkStatus(); });
    queue->Wait(queue->submitted());
    return OkStatus();
  });
  queue->Wait(1);
  queue->Close();
}

}  // namespace
}  // namespace xpu::host_runtime

// Processes forked from one with a device.
#include "tensorflow_plugin/primitives/fork.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "tensorflow_plugin/device/tests/core.h"

namespace xpu {
namespace {

#if !defined(__SANITIZE_THREAD__)  // it cannot follow a fork into a process of threads
// Gives the result of `body` in a forked process, which is the number of failed checks; -1 if a signal ends the
// process.
int InChild(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = -1;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// No fork gives up because the machine is busy: all that holds one up here comes to an end.
constexpr ForkPatience kForEver = {std::chrono::hours(1000), std::chrono::hours(1000), std::chrono::hours(1000),
                                   std::chrono::hours(1000)};

constexpr uint64_t kBytes = 1 << 20;

// How many of the bytes on the device are not `value`, by a copy that waits; all if it fails.
int64_t NumOther(Core& core, SP_DeviceMemoryBase memory, char value) {
  std::vector<char> host(kBytes, 99);
  TF_Status* const status = TF_NewStatus();
  core.se.sync_memcpy_dtoh(&core.device, host.data(), &memory, kBytes, status);
  const bool ok = TF_GetCode(status) == TF_OK;
  TF_DeleteStatus(status);
  int64_t others = 0;
  for (char byte : host) others += !ok || byte != value;
  return others;
}

// For threads that never sleep.
ForkPatience LittleWithThreads() {
  ForkPatience patience = kForEver;
  patience.with_threads = std::chrono::milliseconds(40);
  patience.least_with_threads = std::chrono::milliseconds(10);
  return patience;
}

class Fork : public testing::Test {
 protected:
  void SetUp() override { SetForkPatience(kForEver); }
  void TearDown() override { SetForkPatience(ForkPatience()); }
  void Fill(SP_Stream stream, SP_DeviceMemoryBase memory, uint8_t value) {
    core_.se.memset(&core_.device, stream, &memory, value, kBytes, Checked());
  }
  // Uses every stream in both ways: with the stream idle, and behind something.
  int UseAll(SP_DeviceMemoryBase memory, uint8_t value) {
    int wrong = 0;
    for (SP_Stream stream : {core_.compute, core_.h2d, core_.d2h}) {
      Fill(stream, memory, value);
      wrong += NumOther(core_, memory, static_cast<char>(value)) != 0;
      std::atomic<bool> called{false};
      core_.Enqueue(stream, [&called] {
        Sleep(5);
        called = true;
      });
      Fill(stream, memory, ++value);
      core_.se.block_host_until_done(&core_.device, stream, Checked());
      wrong += !called || NumOther(core_, memory, static_cast<char>(value)) != 0;
    }
    core_.se.synchronize_all_activity(&core_.device, Checked());
    SP_DeviceMemoryBase more = core_.Allocate(kBytes);
    Fill(core_.compute, more, 3);
    wrong += NumOther(core_, more, 3) != 0;
    core_.se.deallocate(&core_.device, &more);
    SP_Stream created = nullptr;
    core_.se.create_stream(&core_.device, &created, Checked());
    core_.se.create_stream_dependency(&core_.device, created, core_.compute, Checked());
    Fill(created, memory, 77);
    core_.se.destroy_stream(&core_.device, created);
    wrong += NumOther(core_, memory, 77) != 0;
    return wrong;
  }

  Core core_;
  SP_DeviceMemoryBase memory_ = core_.Allocate(kBytes);
};

TEST_F(Fork, BothUseTheDevice) {
  EXPECT_EQ(UseAll(memory_, 10), 0);
  EXPECT_EQ(InChild([this] { return UseAll(memory_, 20) + (InChild([this] { return UseAll(memory_, 40); }) != 0); }),
            0);
  EXPECT_EQ(NumOther(core_, memory_, 77), 0) << "the child's memory is its own";
  EXPECT_EQ(UseAll(memory_, 30), 0);
}

// One of two streams waits for the other, and both have more to do.
TEST_F(Fork, BothGoOnWithWhatIsQueued) {
  SP_DeviceMemoryBase other = core_.Allocate(kBytes);
  for (int round = 0; round < 10; ++round) {
    Fill(core_.compute, memory_, 0);
    core_.Enqueue(core_.compute, [] { Sleep(20); });
    for (int i = 0; i < 20; ++i) {
      core_.Enqueue(core_.compute, [] { Sleep(2); });
      Fill(core_.compute, memory_, static_cast<uint8_t>(i));
    }
    core_.se.create_stream_dependency(&core_.device, core_.h2d, core_.compute, Checked());
    core_.se.memcpy_dtod(&core_.device, core_.h2d, &other, &memory_, kBytes, Checked());
    Sleep(round);
    const auto ends_well = [&] { return (NumOther(core_, other, 19) != 0) + (NumOther(core_, memory_, 19) != 0); };
    EXPECT_EQ(InChild(ends_well), 0);
    EXPECT_EQ(ends_well(), 0);
    Fill(core_.h2d, other, 5);
  }
  core_.se.deallocate(&core_.device, &other);
}

TEST_F(Fork, WhileOthersUseTheDevice) {
  SetForkPatience(LittleWithThreads());
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  std::atomic<int64_t> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      SP_DeviceMemoryBase memory = core_.Allocate(kBytes);
      SP_Stream stream = nullptr;
      core_.se.create_stream(&core_.device, &stream, Checked());
      for (uint8_t value = 0; !stop; ++value) {
        Fill(stream, memory, value);
        if (t % 2 == 0) core_.Enqueue(stream, [] {});
        core_.se.block_host_until_done(&core_.device, stream, Checked());
        wrong += NumOther(core_, memory, static_cast<char>(value));
        SP_DeviceMemoryBase more = core_.Allocate(100);
        core_.se.deallocate(&core_.device, &more);
      }
      core_.se.destroy_stream(&core_.device, stream);
      core_.se.deallocate(&core_.device, &memory);
    });
  }
  for (int i = 0; i < 40; ++i) EXPECT_EQ(InChild([this] { return UseAll(memory_, 20); }), 0) << i;
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(UseAll(memory_, 30), 0);
}

// Such as TensorFlow's, of which nobody here knows: a thread that holds one runs, and sleeps when it has given it back.
TEST_F(Fork, NobodyHoldsALockOfOthers) {
  constexpr int kRounds = 20;
  std::mutex of_others;
  std::mutex mutex;
  std::condition_variable next;
  int round = 0;  // which the thread may begin
  std::atomic<int> held{0};
  std::thread thread([&] {
    for (int i = 1; i <= kRounds; ++i) {
      {
        std::unique_lock<std::mutex> lock(mutex);
        next.wait(lock, [&] { return round >= i; });
      }
      const std::lock_guard<std::mutex> lock(of_others);
      held = i;
      for (volatile int step = 0; step < 10000000; step = step + 1) {  // some ten milliseconds
      }
    }
  });
  for (int i = 1; i <= kRounds; ++i) {
    {
      const std::lock_guard<std::mutex> lock(mutex);
      round = i;
    }
    next.notify_one();
    while (held < i) Sleep(1);
    EXPECT_EQ(InChild([&] { return of_others.try_lock() ? 0 : 1; }), 0) << i;
  }
  thread.join();
}

// A thread that never sleeps holds up forks, but less and less.
TEST_F(Fork, DoesNotWaitForEverForAThreadThatRuns) {
  SetForkPatience(LittleWithThreads());
  std::atomic<bool> stop{false};
  std::thread thread([&] {
    while (!stop) {
    }
  });
  for (int i = 0; i < 10; ++i) EXPECT_EQ(InChild([this] { return UseAll(memory_, 40); }), 0) << i;
  stop = true;
  thread.join();
}

// The fork does not wait for ever for what may wait for it: the child is told (exit_test.cc), and the parent goes on.
TEST_F(Fork, InACallback) {
  std::atomic<int> seen{-2};
  core_.Enqueue(core_.compute, [&] {
    seen = InChild([this] {
      const Failure failure = StatusOf([this](TF_Status* t) {
        char byte;
        core_.se.memcpy_dtoh(&core_.device, core_.d2h, &byte, &memory_, 1, t);
      });
      return failure.code == TF_FAILED_PRECONDITION ? 0 : 1;
    });
  });
  Fill(core_.compute, memory_, 8);
  EXPECT_EQ(NumOther(core_, memory_, 8), 0);
  EXPECT_EQ(seen, 0);
}
#endif

}  // namespace
}  // namespace xpu

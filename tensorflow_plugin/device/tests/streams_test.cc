// Streams: order within and between them, many threads, host callbacks, failures.
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tensorflow_plugin/device/stream_executor.h"
#include "tensorflow_plugin/device/tests/core.h"

namespace xpu {
namespace {

TEST(Order, DependencyHoldsBackTheDependentOnly) {
  Core one, other(OneThread(), 1);
  for (Core* dependent : {&one, &other}) {  // a stream of the same device, and of another
    std::vector<int> order;                 // only safe if the dependency works
    Gate gate;
    one.Enqueue(one.compute, [&] {
      Sleep(20);
      order.push_back(1);
    });
    one.se.create_stream_dependency(&one.device, dependent->d2h, one.compute, Checked());
    one.Enqueue(one.compute, gate.Wait());  // later work: not waited for
    dependent->Enqueue(dependent->d2h, [&] { order.push_back(2); });
    dependent->se.block_host_until_done(&dependent->device, dependent->d2h, Checked());
    EXPECT_EQ(order, (std::vector<int>{1, 2}));
    EXPECT_FALSE(one.compute->stream->Idle());
    gate.Open();
    one.se.synchronize_all_activity(&one.device, Checked());
  }
}

TEST(Order, DependenciesInBothDirectionsDoNotLockUp) {
  Core one, other(OneThread(), 1);
  int64_t count = 0;  // only safe if the dependencies work
  for (int i = 0; i < 500; ++i) {
    one.Enqueue(one.compute, [&] { ++count; });
    one.se.create_stream_dependency(&one.device, other.compute, one.compute, Checked());
    other.Enqueue(other.compute, [&] { ++count; });
    other.se.create_stream_dependency(&other.device, one.compute, other.compute, Checked());
  }
  one.se.create_stream_dependency(&one.device, one.compute, one.compute, Checked());  // on itself: nothing to wait for
  one.se.synchronize_all_activity(&one.device, Checked());
  EXPECT_EQ(count, 1000);
}

TEST(Order, ManyThreadsShareTheStreams) {
  Core core;
  constexpr int kThreads = 4, kRounds = 200;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      SP_Event event = core.NewEvent();
      SP_DeviceMemoryBase memory = core.Allocate(256 << 10), copy = core.Allocate(256 << 10);
      std::vector<int32_t> from(t % 2 == 0 ? 64 << 10 : 16), to(from.size());
      const uint64_t size = from.size() * 4;
      for (int i = 0; i < kRounds; ++i) {
        for (int32_t& v : from) v = t * kRounds + i;
        core.se.memcpy_htod(&core.device, core.h2d, &memory, from.data(), size, Checked());
        core.se.create_stream_dependency(&core.device, core.compute, core.h2d, Checked());
        core.se.memcpy_dtod(&core.device, core.compute, &copy, &memory, size, Checked());
        core.se.create_stream_dependency(&core.device, core.d2h, core.compute, Checked());
        core.se.memcpy_dtoh(&core.device, core.d2h, to.data(), &copy, size, Checked());
        core.se.record_event(&core.device, core.d2h, event, Checked());
        core.se.block_host_for_event(&core.device, event, Checked());
        wrong += to != from;
      }
      core.se.destroy_event(&core.device, event);
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// Each thread's commands in its order, one command at a time, whatever is enqueued between them.
TEST(Order, ManyThreadsEnqueueOnOneStream) {
  Core core;
  constexpr int kThreads = 6, kCommands = 500;
  SP_DeviceMemoryBase memory = core.Allocate(64);
  std::vector<int> last(kThreads, -1);  // not atomic: the stream excludes
  int wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kCommands; ++i) {
        core.Enqueue(core.compute, [&, t, i] { wrong += std::exchange(last[t], i) != i - 1; });
        if (i % 3 == 0) core.se.memset(&core.device, core.compute, &memory, 1, 64, Checked());
        if (i % 7 == 0) core.se.create_stream_dependency(&core.device, core.d2h, core.compute, Checked());
        if (i % 100 == 0) {  // streams come and go meanwhile
          SP_Stream stream = nullptr;
          core.se.create_stream(&core.device, &stream, Checked());
          core.se.create_stream_dependency(&core.device, stream, core.compute, Checked());
          core.se.destroy_stream(&core.device, stream);
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  core.se.block_host_until_done(&core.device, core.compute, Checked());
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(last, std::vector<int>(kThreads, kCommands - 1));
}

TEST(Streams, BlockingWaitsForWhatItNames) {
  Core core;
  Gate other_gate;
  std::atomic<int> ran{0};
  core.Enqueue(core.h2d, other_gate.Wait());
  core.Enqueue(core.h2d, [&] { ran += 10; });
  core.Enqueue(core.compute, [&] {
    Sleep(10);
    ran += 1;
  });
  core.se.get_stream_status(&core.device, core.compute, Checked());  // does not wait
  EXPECT_EQ(ran, 0);
  core.se.block_host_until_done(&core.device, core.compute, Checked());
  EXPECT_EQ(ran, 1);  // one stream
  other_gate.Open();
  core.se.synchronize_all_activity(&core.device, Checked());
  EXPECT_EQ(ran, 11);  // all of them
}

// With the work of every stream held back, whatever does not say that it blocks returns.
TEST(Streams, NothingElseBlocks) {
  Core core;
  const SP_Device* d = &core.device;
  SP_DeviceMemoryBase memory = core.Allocate(1 << 20), other = core.Allocate(1 << 20);
  std::vector<char> host(1 << 20);
  SP_Event event = core.NewEvent(), gone = core.NewEvent();
  Gate gate;
  for (SP_Stream stream : {core.compute, core.h2d, core.d2h}) core.Enqueue(stream, gate.Wait());
  auto calls = std::async(std::launch::async, [&] {
    for (SP_Stream stream : {core.compute, core.h2d, core.d2h}) {
      SP_Timer timer = nullptr;
      core.se.create_timer(d, &timer, Checked());
      core.se.start_timer(d, stream, timer, Checked());
      for (uint64_t size : {uint64_t{4}, uint64_t{1} << 20}) {
        core.se.memcpy_htod(d, stream, &memory, host.data(), size, Checked());
        core.se.memcpy_dtod(d, stream, &other, &memory, size, Checked());
        core.se.memcpy_dtoh(d, stream, host.data(), &other, size, Checked());
        core.se.mem_zero(d, stream, &memory, size, Checked());
        core.se.memset(d, stream, &memory, 1, size, Checked());
        core.se.memset32(d, stream, &memory, 1, size, Checked());
      }
      core.Enqueue(stream, [] {});
      core.se.stop_timer(d, stream, timer, Checked());
      core.se.destroy_timer(d, timer);
      core.se.record_event(d, stream, event, Checked());
      core.se.record_event(d, stream, gone, Checked());
      EXPECT_EQ(core.se.get_event_status(d, event), SE_EVENT_PENDING);
      for (SP_Stream dependent : {core.compute, core.h2d, core.d2h}) {
        core.se.wait_for_event(d, dependent, event, Checked());
        core.se.create_stream_dependency(d, dependent, stream, Checked());
      }
      core.se.get_stream_status(d, stream, Checked());
    }
    core.se.destroy_event(d, gone);
    SP_Stream idle = nullptr;
    core.se.create_stream(d, &idle, Checked());
    core.se.block_host_until_done(d, idle, Checked());  // has no work to wait for
    core.se.destroy_stream(d, idle);
    SP_DeviceMemoryBase more = core.Allocate(64), none{SP_DEVICE_MEMORY_BASE_STRUCT_SIZE};
    EXPECT_NE(more.opaque, nullptr);
    core.se.deallocate(d, &none);
    core.se.host_memory_deallocate(d, core.se.host_memory_allocate(d, 64));
    SP_AllocatorStats stats{SP_ALLOCATORSTATS_STRUCT_SIZE};
    int64_t free_bytes, total_bytes;
    EXPECT_TRUE(core.se.get_allocator_stats(d, &stats));
    EXPECT_TRUE(core.se.device_memory_usage(d, &free_bytes, &total_bytes));
  });
  EXPECT_EQ(calls.wait_for(std::chrono::seconds(10)), std::future_status::ready);
  for (SP_Stream stream : {core.compute, core.h2d, core.d2h}) EXPECT_FALSE(stream->stream->Idle());
  gate.Open();
  calls.get();
  core.se.synchronize_all_activity(d, Checked());
  core.se.destroy_event(d, event);
}

TEST(Streams, DestroyingOneWaitsForItsWork) {
  Core core;
  SP_Stream stream = nullptr;
  core.se.create_stream(&core.device, &stream, Checked());
  bool ran = false;
  core.Enqueue(stream, [&] {
    Sleep(20);
    ran = true;
  });
  core.se.destroy_stream(&core.device, stream);
  EXPECT_TRUE(ran);
  // Nobody asks it any more: what fails in the stream that takes its place is told once.
  int32_t value = 0;
  SP_DeviceMemoryBase memory = core.Allocate(4);
  core.se.sync_memcpy_htod(&core.device, &memory, &value, 4, Checked());
  core.se.memcpy_dtoh(&core.device, core.d2h, &value, &memory, 4, Checked());
  core.se.block_host_until_done(&core.device, core.d2h, Checked());
}

// The tail of a newer TensorFlow's table, in the shape that 2.22 gave it.
struct NewerOptions {
  bool has_priority;
  int priority;
};
struct NewerTable {
  void (*create_stream_with_options)(const SP_Device*, const NewerOptions*, SP_Stream*, TF_Status*);
};
TEST(Streams, PriorityIsThatOfTheThread) {
  // In a thread of its own, one step nicer than the process: a priority adds to what the creator has.
  std::thread([] {
    ASSERT_EQ(setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + 1), 0);
    Core core;
    NewerTable table{};
    StreamOptions<NewerTable>::Set(&table);
    ASSERT_TRUE(table.create_stream_with_options);
    const int usual = getpriority(PRIO_PROCESS, 0);
    const NewerOptions low{true, 4}, none{false, 4}, lowest{true, 1 << 30};
    const std::pair<const NewerOptions*, int> cases[] = {
        {&low, std::min(usual + 4, 19)}, {&none, usual}, {nullptr, usual}, {&lowest, 19}};
    for (const auto& [options, expected] : cases) {
      SP_Stream stream = nullptr;
      table.create_stream_with_options(&core.device, options, &stream, Checked());
      ASSERT_NE(stream, nullptr);
      int niceness = -100;
      core.Enqueue(stream, [&] { niceness = getpriority(PRIO_PROCESS, 0); });
      core.se.block_host_until_done(&core.device, stream, Checked());
      EXPECT_EQ(niceness, expected);
      core.se.destroy_stream(&core.device, stream);
    }
    EXPECT_EQ(getpriority(PRIO_PROCESS, 0), usual);
    // To go before all others takes a privilege: granted or not, the stream works.
    const NewerOptions first{true, -30};
    SP_Stream stream = nullptr;
    table.create_stream_with_options(&core.device, &first, &stream, Checked());
    int niceness = 100;
    core.Enqueue(stream, [&] { niceness = getpriority(PRIO_PROCESS, 0); });
    core.se.block_host_until_done(&core.device, stream, Checked());
    EXPECT_TRUE(niceness == usual || niceness == std::max(usual - 30, -20)) << niceness;
    core.se.destroy_stream(&core.device, stream);
  }).join();
}

TEST(Callbacks, RunInOrderOnAnotherThread) {
  Core core;
  std::vector<int> order;
  std::set<std::thread::id> threads;
  for (int i = 0; i < 5; ++i) {
    core.Enqueue(core.compute, [&, i] {
      order.push_back(i);
      threads.insert(std::this_thread::get_id());
    });
  }
  // A callback may use the stream that it runs on, and get further ahead of it than a thread might.
  core.Enqueue(core.compute, [&] {
    for (int i = 0; i < 3000; ++i) core.Enqueue(core.compute, [&] { order.push_back(6); });
    core.se.block_host_until_done(&core.device, core.compute, Checked());  // for what lies before itself
    order.push_back(5);
  });
  core.se.synchronize_all_activity(&core.device, Checked());
  core.se.synchronize_all_activity(&core.device, Checked());  // what the callback enqueued
  // Nor is it held up by another stream, which may be waiting for it.
  Gate gate;
  int ran = 0;
  core.Enqueue(core.compute, gate.Wait());
  core.Enqueue(core.compute, [&] {
    for (int i = 0; i < 3000; ++i) core.Enqueue(core.d2h, [&] { ++ran; });
  });
  core.se.create_stream_dependency(&core.device, core.d2h, core.compute, Checked());
  gate.Open();
  core.se.block_host_until_done(&core.device, core.compute, Checked());
  core.se.block_host_until_done(&core.device, core.d2h, Checked());
  EXPECT_EQ(ran, 3000);
  std::vector<int> expected{0, 1, 2, 3, 4, 5};
  expected.resize(expected.size() + 3000, 6);
  EXPECT_EQ(order, expected);
  EXPECT_EQ(threads.count(std::this_thread::get_id()), 0u);
}

// The status of a failed kernel or copy. The tests' device has no kernels: the stream stands for one.
void EnqueueFailedCommand(SP_Stream stream) {
  stream->stream->HostCallback([] { return errors::Internal("out of scratch memory"); });
}

TEST(Callbacks, FailuresAreTheStreamsOnceAndLaterWorkRuns) {
  Core core;
  bool ran = false;
  core.EnqueueFailure(core.compute);
  EnqueueFailedCommand(core.compute);  // the second: not told
  core.Enqueue(core.compute, [&] { ran = true; });
  while (!core.compute->stream->Idle()) Sleep(1);
  EXPECT_TRUE(ran);
  for (int i = 0; i < 2; ++i) {  // looking does not take it
    const Failure seen = StatusOf([&](TF_Status* s) { core.se.get_stream_status(&core.device, core.compute, s); });
    EXPECT_EQ(seen.code, TF_INVALID_ARGUMENT);
    EXPECT_EQ(seen.message, "bad index 7");
  }
  core.se.get_stream_status(&core.device, core.d2h, Checked());
  core.se.block_host_until_done(&core.device, core.d2h, Checked());
  Failure failure = StatusOf([&](TF_Status* s) { core.se.block_host_until_done(&core.device, core.compute, s); });
  EXPECT_EQ(failure.code, TF_INVALID_ARGUMENT);
  EXPECT_EQ(failure.message, "bad index 7");
  core.se.block_host_until_done(&core.device, core.compute, Checked());
  core.se.get_stream_status(&core.device, core.compute, Checked());

  core.EnqueueFailure(core.h2d);
  ::testing::internal::CaptureStderr();
  failure = StatusOf([&](TF_Status* s) { core.se.synchronize_all_activity(&core.device, s); });
  EXPECT_EQ(failure.code, TF_INVALID_ARGUMENT);
  const std::string line = ::testing::internal::GetCapturedStderr();  // TensorFlow drops the message
  EXPECT_NE(line.find("an operation enqueued on the XPU before this one failed: bad index 7\n"), std::string::npos);
  core.se.synchronize_all_activity(&core.device, Checked());
}

// TensorFlow synchronises before it copies a tensor to the host, and drops the message of that call: the copy tells.
TEST(CommandFailures, AreToldByTheNextCopyOffTheDevice) {
  Core core;
  SP_DeviceMemoryBase memory = core.Allocate(4), other = core.Allocate(4);
  int32_t value = 0;
  const auto read = [&](TF_Status* s) { core.se.memcpy_dtoh(&core.device, core.d2h, &value, &memory, 4, s); };
  const auto copy = [&](TF_Status* s) { core.se.memcpy_dtod(&core.device, core.d2h, &other, &memory, 4, s); };
  for (const std::function<void(TF_Status*)>& leave : {std::function<void(TF_Status*)>(read), {copy}}) {
    EnqueueFailedCommand(core.compute);
    core.se.synchronize_all_activity(&core.device, Checked());
    core.se.memcpy_htod(&core.device, core.h2d, &memory, &value, 4, Checked());  // takes nothing off the device
    const Failure failure = StatusOf(leave);
    EXPECT_EQ(failure.code, TF_INTERNAL);
    EXPECT_EQ(failure.message, "an operation enqueued on the XPU before this one failed: out of scratch memory");
    EXPECT_EQ(StatusOf(leave).code, TF_OK) << "told once";
    core.se.synchronize_all_activity(&core.device, Checked());
  }
}

// Where the copy was enqueued before the failure was known, synchronising is the last chance to tell.
TEST(CommandFailures, AreToldBySynchronisingAfterACopy) {
  for (bool waits : {true, false}) {  // the copy for the command that fails
    Core core;
    SP_DeviceMemoryBase memory = core.Allocate(4);
    int32_t value = 0;
    Gate gate;
    core.Enqueue(core.compute, gate.Wait());
    EnqueueFailedCommand(core.compute);
    core.Enqueue(core.compute, [] {});
    if (waits) core.se.create_stream_dependency(&core.device, core.d2h, core.compute, Checked());
    core.se.memcpy_dtoh(&core.device, core.d2h, &value, &memory, 4, Checked());
    gate.Open();
    ::testing::internal::CaptureStderr();
    const Failure failure = StatusOf([&](TF_Status* s) { core.se.synchronize_all_activity(&core.device, s); });
    EXPECT_EQ(failure.code, TF_INTERNAL);
    EXPECT_EQ(failure.message, "an operation on the XPU failed, as the line above says");  // which TensorFlow drops
    core.se.synchronize_all_activity(&core.device, Checked());
    EXPECT_EQ(::testing::internal::GetCapturedStderr(),
              "tensorflow_xpu: TensorFlow's error \"PluggableDevice SyncAll failed\" leaves out: an operation enqueued "
              "on the XPU before this one failed: out of scratch memory\n");
    core.se.memcpy_dtoh(&core.device, core.d2h, &value, &memory, 4, Checked());
  }
}

// A copy to the host, or to memory as another device may have it.
auto CopyOff(Core& core, SP_Stream stream, const SP_DeviceMemoryBase& memory, bool to_host) {
  return [=, &core](TF_Status* status) {
    static int32_t value;
    SP_DeviceMemoryBase other = core.Allocate(4);
    if (to_host) core.se.memcpy_dtoh(&core.device, stream, &value, &memory, 4, status);
    if (!to_host) core.se.memcpy_dtod(&core.device, stream, &other, &memory, 4, status);
  };
}

// The callback after the copy can carry the message: synchronising leaves it to that.
TEST(CopiesThatTell, DoSoThoughTheFailureWasNotKnown) {
  // Also with a copy beside it that does not tell.
  for (auto [to_host, reads_again] : {std::pair(true, false), std::pair(true, true), std::pair(false, false)}) {
    Core core;
    SP_DeviceMemoryBase memory = core.Allocate(4);
    int32_t value = 0;
    Gate gate;
    core.Enqueue(core.compute, gate.Wait());
    EnqueueFailedCommand(core.compute);
    const CopyThatTells copy(*core.compute);
    {
      const CopyThatTells::Enqueuing enqueuing;
      CopyOff(core, core.d2h, memory, to_host)(Checked());
    }
    if (reads_again) core.se.memcpy_dtoh(&core.device, core.d2h, &value, &memory, 4, Checked());
    gate.Open();
    ::testing::internal::CaptureStderr();
    core.se.synchronize_all_activity(&core.device, Checked());
    EXPECT_EQ(copy.Told().message(), "an operation enqueued on the XPU before this one failed: out of scratch memory");
    core.se.synchronize_all_activity(&core.device, Checked());
    core.se.memcpy_dtoh(&core.device, core.d2h, &value, &memory, 4, Checked());
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  }
}

// Without an object for copies nothing tells at their end: they wait, and then know what to tell.
TEST(CopiesThatWait, TellOfFailuresThatWereNotKnown) {
  copies_wait = true;
  // Also without waiting for the command that fails.
  for (auto [to_host, waits] : {std::pair(true, true), std::pair(true, false), std::pair(false, true)}) {
    Core core;
    SP_DeviceMemoryBase memory = core.Allocate(4);
    Gate gate;
    const SP_Stream stream = waits ? core.d2h : core.compute;
    core.Enqueue(core.compute, gate.Wait());
    EnqueueFailedCommand(core.compute);
    if (waits) core.se.create_stream_dependency(&core.device, core.d2h, core.compute, Checked());
    std::thread opens([&gate] {
      Sleep(50);
      gate.Open();
    });
    ::testing::internal::CaptureStderr();
    const CopyThatTells::Enqueuing enqueuing;
    const auto read = CopyOff(core, stream, memory, to_host);
    EXPECT_EQ(StatusOf(read).message, "an operation enqueued on the XPU before this one failed: out of scratch memory");
    opens.join();
    core.se.synchronize_all_activity(&core.device, Checked());
    EXPECT_EQ(StatusOf(read).code, TF_OK);
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  }
  copies_wait = false;
}

}  // namespace
}  // namespace xpu

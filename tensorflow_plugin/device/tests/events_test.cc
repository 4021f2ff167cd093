// Events and timers.
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "tensorflow_plugin/device/tests/core.h"

namespace xpu {
namespace {

TEST(Events, PendingUntilTheWorkBeforeTheRecordHasRun) {
  Core core;
  SP_Event event = core.NewEvent();
  EXPECT_EQ(core.se.get_event_status(&core.device, event), SE_EVENT_COMPLETE) << "never recorded";
  Gate before, after;
  core.Enqueue(core.compute, before.Wait());
  core.se.record_event(&core.device, core.compute, event, Checked());
  core.Enqueue(core.compute, after.Wait());
  EXPECT_EQ(core.se.get_event_status(&core.device, event), SE_EVENT_PENDING);
  before.Open();
  core.se.block_host_for_event(&core.device, event, Checked());  // later work of the stream is not waited for
  EXPECT_EQ(core.se.get_event_status(&core.device, event), SE_EVENT_COMPLETE);
  EXPECT_FALSE(core.compute->stream->Idle());
  after.Open();
  core.se.destroy_event(&core.device, event);
}

// TensorFlow keeps a pool of events and records each many times.
TEST(Events, RecordedAgainStandForTheLastRecord) {
  Core core;
  SP_Event event = core.NewEvent();
  Gate first, second;
  core.Enqueue(core.compute, first.Wait());
  core.se.record_event(&core.device, core.compute, event, Checked());
  bool early = false;
  // Waits for the first record, whatever happens to the event afterwards.
  core.se.wait_for_event(&core.device, core.d2h, event, Checked());
  core.Enqueue(core.d2h, [&] { early = true; });
  core.Enqueue(core.h2d, second.Wait());
  core.se.record_event(&core.device, core.h2d, event, Checked());
  first.Open();
  core.se.block_host_until_done(&core.device, core.d2h, Checked());
  EXPECT_TRUE(early);
  EXPECT_EQ(core.se.get_event_status(&core.device, event), SE_EVENT_PENDING);
  second.Open();
  core.se.block_host_for_event(&core.device, event, Checked());
  EXPECT_EQ(core.se.get_event_status(&core.device, event), SE_EVENT_COMPLETE);
  core.se.destroy_event(&core.device, event);
}

TEST(Events, HoldBackOtherStreamsAndOtherDevices) {
  Core one, other(OneThread(), 1);
  for (Core* waiting : {&one, &other}) {
    SP_Event event = one.NewEvent();
    int value = 0, seen = -1;  // only safe if the event holds back
    one.Enqueue(one.compute, [&] {
      Sleep(10);
      value = 1;
    });
    one.se.record_event(&one.device, one.compute, event, Checked());
    waiting->se.wait_for_event(&waiting->device, waiting->d2h, event, Checked());
    waiting->Enqueue(waiting->d2h, [&] { seen = value; });
    // Once waited for, an event may go.
    one.se.destroy_event(&one.device, event);
    waiting->se.block_host_until_done(&waiting->device, waiting->d2h, Checked());
    EXPECT_EQ(seen, 1);
  }
}

TEST(Events, AreNeverErrors) {
  Core core;
  SP_Event event = core.NewEvent();
  for (int i = 0; i < 3; ++i) {
    core.EnqueueFailure(core.compute);
    core.se.record_event(&core.device, core.compute, event, Checked());
    core.se.block_host_for_event(&core.device, event, Checked());
    EXPECT_EQ(core.se.get_event_status(&core.device, event), SE_EVENT_COMPLETE);
    core.se.wait_for_event(&core.device, core.d2h, event, Checked());
  }
  core.se.destroy_event(&core.device, event);
}

TEST(Events, ManyThreadsRecordPollAndWait) {
  Core core;
  constexpr int kThreads = 4, kRounds = 300;
  SP_Event shared = core.NewEvent();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      SP_Stream stream = t % 2 == 0 ? core.compute : core.d2h;
      SP_Event own = core.NewEvent();
      for (int i = 0; i < kRounds; ++i) {
        auto ran = std::make_shared<std::atomic<bool>>(false);
        core.Enqueue(stream, [ran] { *ran = true; });
        core.se.record_event(&core.device, stream, own, Checked());
        core.se.record_event(&core.device, stream, shared, Checked());
        core.se.wait_for_event(&core.device, core.h2d, shared, Checked());
        wrong += core.se.get_event_status(&core.device, shared) == SE_EVENT_ERROR;
        core.se.block_host_for_event(&core.device, own, Checked());
        wrong += !*ran || core.se.get_event_status(&core.device, own) != SE_EVENT_COMPLETE;
      }
      core.se.destroy_event(&core.device, own);
    });
  }
  for (auto& thread : threads) thread.join();
  core.se.synchronize_all_activity(&core.device, Checked());
  core.se.destroy_event(&core.device, shared);
  EXPECT_EQ(wrong, 0);
}

class Timer {
 public:
  explicit Timer(Core& core) : core_(core) { core.se.create_timer(&core.device, &timer_, Checked()); }
  ~Timer() { core_.se.destroy_timer(&core_.device, timer_); }
  void Start(SP_Stream stream) { core_.se.start_timer(&core_.device, stream, timer_, Checked()); }
  void Stop(SP_Stream stream) { core_.se.stop_timer(&core_.device, stream, timer_, Checked()); }
  double Milliseconds() { return static_cast<double>(core_.timer_fns.nanoseconds(timer_)) * 1e-6; }

 private:
  Core& core_;
  SP_Timer timer_ = nullptr;
};

// Against the clock of the commands themselves: the timer includes them, and is included in what the test sees.
TEST(Timers, MeasureTheWorkBetweenStartAndStop) {
  Core core;
  Timer whole(core), part(core);
  EXPECT_EQ(whole.Milliseconds(), 0) << "never started";
  for (int ms : {1, 5, 25}) {  // the same timers again
    const auto begin = std::chrono::steady_clock::now();
    double inside = 0;
    const auto work = [&inside, ms] {
      const auto start = std::chrono::steady_clock::now();
      Sleep(ms);
      inside += std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    };
    whole.Start(core.compute);
    core.Enqueue(core.compute, work);
    part.Start(core.compute);
    core.Enqueue(core.compute, work);
    part.Stop(core.compute);
    whole.Stop(core.compute);
    Gate gate;
    core.Enqueue(core.compute, gate.Wait());  // after the stop: not measured, not waited for
    const double measured = whole.Milliseconds();
    const double outside = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    EXPECT_GE(measured, inside - 0.001);
    EXPECT_LE(measured, outside);
    EXPECT_GE(part.Milliseconds(), ms);
    EXPECT_LE(part.Milliseconds(), measured - ms);
    gate.Open();
    core.se.synchronize_all_activity(&core.device, Checked());
  }
}

TEST(Timers, WithoutStopOrWorkMeasureNothing) {
  Core core;
  Timer timer(core);
  timer.Stop(core.compute);
  EXPECT_EQ(timer.Milliseconds(), 0) << "never started";
  timer.Start(core.compute);
  EXPECT_EQ(timer.Milliseconds(), 0) << "not stopped";
  timer.Stop(core.compute);
  EXPECT_LT(timer.Milliseconds(), 20);
  timer.Start(core.compute);
  EXPECT_EQ(timer.Milliseconds(), 0) << "not stopped again";
  core.Enqueue(core.compute, [] { Sleep(1); });
  timer.Stop(core.compute);
  EXPECT_GE(timer.Milliseconds(), 1);
  Gate gate;
  core.Enqueue(core.compute, gate.Wait());
  timer.Start(core.compute);
  EXPECT_EQ(timer.Milliseconds(), 0) << "not reached again";
  // A timer may go while its stream still works.
  Timer early(core);
  early.Start(core.compute);
  early.Stop(core.compute);
}

}  // namespace
}  // namespace xpu

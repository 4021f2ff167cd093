// Streams: order within and between them, many threads, failures.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "tensorflow_plugin/device/tests/core.h"

namespace xpu {
namespace {

TEST(Order, DependencyHoldsBackTheDependentOnly) {
  Core core;
  std::vector<int> order;  // only safe if the dependency works
  std::atomic<bool> release{false};
  core.Enqueue(core.compute, [&] {
    Sleep(20);
    order.push_back(1);
  });
  core.se.create_stream_dependency(&core.device, core.d2h, core.compute, Checked());
  core.Enqueue(core.compute, [&] {
    while (!release) Sleep(1);
  });
  core.Enqueue(core.d2h, [&] { order.push_back(2); });
  core.se.block_host_until_done(&core.device, core.d2h, Checked());
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
  release = true;
  core.se.synchronize_all_activity(&core.device, Checked());
}

TEST(Order, ManyThreadsShareTheStreams) {
  Core core;
  constexpr int kThreads = 4, kRounds = 200;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      SP_Event event = nullptr;
      core.se.create_event(&core.device, &event, Checked());
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

TEST(Failures, AreTheStreamsOnceAndNeverTheEvents) {
  Core core;
  const SE_StatusCallbackFn fail = [](void* const, TF_Status* const status) {
    TF_SetStatus(status, TF_INVALID_ARGUMENT, "bad index 7");
  };
  SP_Event event = nullptr;
  core.se.create_event(&core.device, &event, Checked());
  auto enqueue_failure = [&] {
    EXPECT_TRUE(core.se.host_callback(&core.device, core.compute, fail, nullptr));
    core.se.record_event(&core.device, core.compute, event, Checked());
    core.se.block_host_for_event(&core.device, event, Checked());
    EXPECT_EQ(core.se.get_event_status(&core.device, event), SE_EVENT_COMPLETE);
  };
  enqueue_failure();
  Failure failure = StatusOf([&](TF_Status* s) { core.se.get_stream_status(&core.device, core.compute, s); });
  EXPECT_EQ(failure.code, TF_INVALID_ARGUMENT);
  failure = StatusOf([&](TF_Status* s) { core.se.block_host_until_done(&core.device, core.compute, s); });
  EXPECT_EQ(failure.code, TF_INVALID_ARGUMENT);
  EXPECT_EQ(failure.message, "bad index 7");
  core.se.block_host_until_done(&core.device, core.compute, Checked());
  enqueue_failure();
  failure = StatusOf([&](TF_Status* s) { core.se.synchronize_all_activity(&core.device, s); });
  EXPECT_EQ(failure.message, "bad index 7");
  core.se.synchronize_all_activity(&core.device, Checked());
  core.se.destroy_event(&core.device, event);
}

}  // namespace
}  // namespace xpu

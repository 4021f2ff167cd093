// Device and host memory, its limit and statistics.
#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tensorflow_plugin/device/memory_report.h"
#include "tensorflow_plugin/device/tests/core.h"

namespace xpu {
namespace {

TEST(Memory, AllocationsLimitAndUsage) {
  Core core;
  int64_t free_bytes = 0, total_bytes = 0;
  EXPECT_TRUE(core.se.device_memory_usage(&core.device, &free_bytes, &total_bytes));
  EXPECT_EQ(free_bytes, kLimit);
  EXPECT_EQ(total_bytes, kLimit);
  SP_DeviceMemoryBase a = core.Allocate(kLimit / 2);
  ASSERT_NE(a.opaque, nullptr);
  EXPECT_EQ(a.size, static_cast<uint64_t>(kLimit / 2));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(a.opaque) % 256, 0u);
  SP_DeviceMemoryBase b = core.Allocate(kLimit);
  EXPECT_EQ(b.opaque, nullptr);
  EXPECT_EQ(b.size, 0u);
  core.se.deallocate(&core.device, &b);  // a null allocation may be given back
  EXPECT_TRUE(core.se.device_memory_usage(&core.device, &free_bytes, &total_bytes));
  EXPECT_EQ(free_bytes, kLimit / 2);
  SP_AllocatorStats stats{};
  stats.struct_size = SP_ALLOCATORSTATS_STRUCT_SIZE;
  EXPECT_TRUE(core.se.get_allocator_stats(&core.device, &stats));
  EXPECT_EQ(stats.num_allocs, 1);
  EXPECT_EQ(stats.bytes_in_use, kLimit / 2);
  EXPECT_EQ(stats.largest_alloc_size, kLimit / 2);
  EXPECT_TRUE(stats.has_bytes_limit);
  EXPECT_EQ(stats.bytes_limit, kLimit);
  EXPECT_EQ(stats.bytes_reserved, kLimit / 2);
  EXPECT_TRUE(stats.has_bytes_reservable_limit);
  EXPECT_EQ(stats.bytes_reservable_limit, kLimit);
  EXPECT_EQ(stats.largest_free_block_bytes, kLimit / 2);
  core.se.deallocate(&core.device, &a);
  EXPECT_EQ(a.opaque, nullptr);
  EXPECT_TRUE(core.se.get_allocator_stats(&core.device, &stats));
  EXPECT_EQ(stats.bytes_in_use, 0);
  EXPECT_EQ(stats.peak_bytes_in_use, kLimit / 2);
  EXPECT_EQ(stats.bytes_reserved, 0);
  EXPECT_EQ(stats.peak_bytes_reserved, kLimit / 2);
  std::vector<void*> host;
  for (int i = 0; i < 16; ++i) {  // several: one may be aligned by luck
    host.push_back(core.se.host_memory_allocate(&core.device, 100));
    ASSERT_NE(host.back(), nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(host.back()) % 256, 0u);
    std::memset(host.back(), 1, 100);
  }
  for (void* memory : host) core.se.host_memory_deallocate(&core.device, memory);
}

// Rule 3, for memory: what is freed at host time stays until the commands that use it have run.
TEST(Order, DeallocateWaitsForQueuedWork) {
  Core core;
  SP_DeviceMemoryBase memory = core.Allocate(4 << 20);
  bool ran = false;
  core.Enqueue(core.compute, [] { Sleep(30); });
  core.se.memset(&core.device, core.compute, &memory, 1, 4 << 20, Checked());
  core.Enqueue(core.compute, [&] { ran = true; });
  core.se.deallocate(&core.device, &memory);
  EXPECT_TRUE(ran);
  core.se.synchronize_all_activity(&core.device, Checked());
}

// With the pool, deallocate does not wait, and the memory is used again in the order of the streams. The next user is a
// kernel, or a copy to the device, whether TensorFlow asked it to wait or not.
class PoolOrder : public ::testing::TestWithParam<bool> {};
TEST_P(PoolOrder, MemoryInQueuedCommandsIsReusedWithoutHarm) {
  BackendOptions options = OneThread();
  options.pool_memory = true;
  options.isolate_memory = GetParam();
  Core core(options);
  EXPECT_FALSE(core.platform.use_bfc_allocator);
  const int32_t old_value = 10, new_value = 777;
  SP_DeviceMemoryBase results[3] = {core.Allocate(4), core.Allocate(4), core.Allocate(4)};
  for (int way = 0; way < 3; ++way) {
    SP_DeviceMemoryBase memory = core.Allocate(1 << 20);
    void* const address = memory.opaque;
    core.se.sync_memcpy_htod(&core.device, &memory, &old_value, 4, Checked());
    std::atomic<bool> release{false}, freed{false};
    core.Enqueue(core.compute, [&] {
      while (!release) Sleep(1);
      EXPECT_TRUE(freed);
    });
    core.se.memcpy_dtod(&core.device, core.compute, &results[way], &memory, 4, Checked());
    core.se.deallocate(&core.device, &memory);  // returns, though the command before has yet to run
    freed = true;
    memory = core.Allocate(1 << 20);
    EXPECT_EQ(memory.opaque, address);
    std::thread later([&] {
      Sleep(20);
      release = true;
    });
    if (way == 0) core.se.memset32(&core.device, core.compute, &memory, new_value, 4, Checked());
    if (way == 1) core.se.memcpy_htod(&core.device, core.h2d, &memory, &new_value, 4, Checked());
    if (way == 2) core.se.sync_memcpy_htod(&core.device, &memory, &new_value, 4, Checked());
    core.se.synchronize_all_activity(&core.device, Checked());
    later.join();
    int32_t seen = 0;
    core.se.sync_memcpy_dtoh(&core.device, &seen, &results[way], 4, Checked());
    EXPECT_EQ(seen, old_value) << way;
    core.se.sync_memcpy_dtoh(&core.device, &seen, &memory, 4, Checked());
    EXPECT_EQ(seen, new_value) << way;
    core.se.deallocate(&core.device, &memory);
  }
}
INSTANTIATE_TEST_SUITE_P(Memory, PoolOrder, ::testing::Bool());

// Memory that goes back to the system under pressure is waited for: a queued command may be using it.
TEST(Order, ThePoolWaitsBeforeTheSystemTakesMemory) {
  BackendOptions options = OneThread();
  options.pool_memory = true;
  Core core(options);
  SP_DeviceMemoryBase memory = core.Allocate(kLimit / 2);
  bool ran = false;
  core.Enqueue(core.compute, [] { Sleep(30); });
  core.se.memset(&core.device, core.compute, &memory, 1, kLimit / 2, Checked());
  core.Enqueue(core.compute, [&] { ran = true; });
  core.se.deallocate(&core.device, &memory);
  SP_DeviceMemoryBase all = core.Allocate(kLimit);
  EXPECT_NE(all.opaque, nullptr);
  EXPECT_TRUE(ran);
  core.se.deallocate(&core.device, &all);
}

TEST(MemoryReport, SaysWhatTheDeviceHas) {
  EXPECT_EQ(MemoryReport(0), "null");
  auto earlier = std::make_unique<Core>();
  Core core;  // in its place, which it keeps when the earlier goes
  earlier.reset();
  SP_DeviceMemoryBase a = core.Allocate(1 << 20), b = core.Allocate(4096), c = core.Allocate(8192);
  core.se.deallocate(&core.device, &c);
  EXPECT_EQ(MemoryReport(0),
            "{\"allocator\": \"bfc\", \"bytes_in_use\": 1052672, \"peak_bytes_in_use\": 1060864, "
            "\"bytes_reserved\": 1052672, \"peak_bytes_reserved\": 1060864, \"bytes_limit\": 67108864, "
            "\"num_allocs\": 3, \"largest_alloc_size\": 1048576}");
  core.se.deallocate(&core.device, &a);
  ResetMemoryReport(0);
  EXPECT_NE(MemoryReport(0).find("\"peak_bytes_in_use\": 4096"), std::string::npos) << MemoryReport(0);
  EXPECT_NE(MemoryReport(0).find("\"num_allocs\": 0"), std::string::npos) << MemoryReport(0);
  core.se.deallocate(&core.device, &b);
  EXPECT_EQ(MemoryReport(1), "null");  // TensorFlow has not made it
  {
    BackendOptions options = OneThread();
    options.pool_memory = true;
    Core pool(options, 1);
    pool.Allocate(4096);
    EXPECT_EQ(MemoryReport(1).find("{\"allocator\": \"pool\", \"bytes_in_use\": 4096, \"peak_bytes_in_use\": 4096, "
                                   "\"bytes_reserved\": 65536, \"peak_bytes_reserved\": 65536, "),
              0u)
        << MemoryReport(1);
  }
  EXPECT_EQ(MemoryReport(1), "null");  // nor has it now
}

}  // namespace
}  // namespace xpu

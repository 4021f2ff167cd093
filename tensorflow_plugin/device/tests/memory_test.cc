// Device and host memory, its limit and statistics.
#include <cstring>

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
  EXPECT_EQ(stats.bytes_limit, kLimit);
  EXPECT_EQ(stats.largest_free_block_bytes, kLimit / 2);
  core.se.deallocate(&core.device, &a);
  EXPECT_EQ(a.opaque, nullptr);
  EXPECT_TRUE(core.se.get_allocator_stats(&core.device, &stats));
  EXPECT_EQ(stats.bytes_in_use, 0);
  EXPECT_EQ(stats.peak_bytes_in_use, kLimit / 2);
  void* host = core.se.host_memory_allocate(&core.device, 100);
  ASSERT_NE(host, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(host) % 256, 0u);
  std::memset(host, 1, 100);
  core.se.host_memory_deallocate(&core.device, host);
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

}  // namespace
}  // namespace xpu

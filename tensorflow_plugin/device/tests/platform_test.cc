// What the platform and its devices say of themselves, and structs that differ in size between versions.
#include <cstring>
#include <string>

#include "tensorflow_plugin/device/stream_executor.h"
#include "tensorflow_plugin/device/stream_handle.h"
#include "tensorflow_plugin/device/tests/core.h"

namespace xpu {
namespace {

TEST(Platform, SaysWhatItIs) {
  Core core;
  EXPECT_STREQ(core.platform.name, TestBackend().subdevice_type());
  EXPECT_STREQ(core.platform.type, "XPU");
  EXPECT_EQ(core.platform.struct_size, SP_PLATFORM_STRUCT_SIZE);
  EXPECT_TRUE(core.platform.use_bfc_allocator);
  EXPECT_TRUE(core.platform.force_memory_growth);
  EXPECT_FALSE(core.platform.supports_unified_memory);
  int count = 0;
  core.platform_fns.get_device_count(&core.platform, &count, Checked());
  EXPECT_EQ(count, 2);
  EXPECT_STREQ(core.device.pci_bus_id, "ffff:00:00.0");
  EXPECT_GT(std::strlen(core.device.hardware_name), 0u);
  EXPECT_GT(std::strlen(core.device.device_vendor), 0u);
  EXPECT_GE(core.device_fns.get_numa_node(&core.device), -1);
  EXPECT_GT(core.device_fns.get_memory_bandwidth(&core.device), int64_t{100} << 20);
  EXPECT_EQ(core.device_fns.get_gflops(&core.device), -1);  // there are no kernels to measure
  // A device that does not exist is an error with a name, not a crash.
  SP_Device device{};
  device.struct_size = SP_DEVICE_STRUCT_SIZE;
  SE_CreateDeviceParams params{SE_CREATE_DEVICE_PARAMS_STRUCT_SIZE, nullptr, 7, &device};
  const Failure failure = StatusOf([&](TF_Status* s) { core.platform_fns.create_device(&core.platform, &params, s); });
  EXPECT_EQ(failure.code, TF_INVALID_ARGUMENT);
  EXPECT_EQ(failure.message, "XPU_TEST has 2 devices, there is none of ordinal 7");
}

// All that TensorFlow 2.21 checks at registration, and what it calls without checking.
TEST(Platform, EveryCallbackIsSet) {
  Core core;
  const auto& f = core.platform_fns;
  EXPECT_TRUE(f.get_device_count && f.create_device && f.destroy_device && f.create_device_fns &&
              f.destroy_device_fns && f.create_stream_executor && f.destroy_stream_executor && f.create_timer_fns &&
              f.destroy_timer_fns && core.params_.destroy_platform && core.params_.destroy_platform_fns);
  EXPECT_TRUE(core.timer_fns.nanoseconds);
  // The table is nothing but function pointers behind struct_size and ext; two of them belong to unified memory.
  const auto* entries = reinterpret_cast<void* const*>(&core.se);
  int unset = 0;
  for (size_t i = 2; i < SP_STREAMEXECUTOR_STRUCT_SIZE / sizeof(void*); ++i) unset += entries[i] == nullptr;
  EXPECT_EQ(unset, 2);
  EXPECT_FALSE(core.se.unified_memory_allocate || core.se.unified_memory_deallocate);
}

// An older TensorFlow knows less of a struct: what lies behind is not ours.
TEST(Platform, NothingIsWrittenBeyondStructSize) {
  Core core;
  alignas(SP_StreamExecutor) unsigned char bytes[sizeof(SP_StreamExecutor)];
  for (size_t known = sizeof(void*) * 3; known <= sizeof(bytes); known += sizeof(void*) * 5) {
    std::memset(bytes, 0xa5, sizeof(bytes));
    auto* se = reinterpret_cast<SP_StreamExecutor*>(bytes);
    se->struct_size = known;
    SE_CreateStreamExecutorParams params{SE_CREATE_STREAM_EXECUTOR_PARAMS_STRUCT_SIZE, nullptr, se};
    core.platform_fns.create_stream_executor(&core.platform, &params, Checked());
    EXPECT_EQ(se->struct_size, SP_STREAMEXECUTOR_STRUCT_SIZE);
    EXPECT_EQ(se->allocate, core.se.allocate);
    for (size_t i = known; i < sizeof(bytes); ++i) ASSERT_EQ(bytes[i], 0xa5) << known << " " << i;
  }
}

// A newer TensorFlow's table, in the shape that 2.22 gave it.
struct NewerOptions {
  bool has_priority;
  int priority;
};
struct NewerTable {
  void (*create_stream_with_options)(const SP_Device*, SP_Stream*, const NewerOptions*, TF_Status*);
};
TEST(Platform, StreamsWithOptions) {
  Core core;
  NewerTable table{};
  StreamOptions<NewerTable>::Set(&table);
  ASSERT_TRUE(table.create_stream_with_options);
  NewerOptions options{true, 1};
  SP_Stream stream = nullptr;
  table.create_stream_with_options(&core.device, &stream, &options, Checked());
  ASSERT_NE(stream, nullptr);
  int ran = 0;
  core.Enqueue(stream, [&] { ran = 1; });
  core.se.block_host_until_done(&core.device, stream, Checked());
  EXPECT_EQ(ran, 1);
  core.se.destroy_stream(&core.device, stream);
}

TEST(Handles, LeadFromTheStreamToTheDevice) {
  Core core;
  EXPECT_EQ(core.compute->device->info().memory_bytes, kLimit);
  EXPECT_TRUE(core.compute->stream->Idle());
}

}  // namespace
}  // namespace xpu

// The platform's and devices' answers about themselves, and structs that differ in size between versions.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "tensorflow_plugin/device/glue.h"
#include "tensorflow_plugin/device/stream_executor.h"
#include "tensorflow_plugin/device/stream_handle.h"
#include "tensorflow_plugin/device/tests/core.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
using MayLeak = __lsan::ScopedDisabler;
#else
struct MayLeak {
  ~MayLeak() {}
};
#endif

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
  const DeviceInfo& info = core.compute->device->info();
  EXPECT_EQ(core.device.hardware_name, info.hardware_name);
  EXPECT_EQ(core.device.device_vendor, info.vendor);
  EXPECT_EQ(core.device_fns.get_numa_node(&core.device), info.numa_node);
  EXPECT_EQ(core.device_fns.get_memory_bandwidth(&core.device), info.bandwidth_bytes_per_s);
  EXPECT_GT(info.bandwidth_bytes_per_s, int64_t{100} << 20);
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

// Calls `fill` with a struct of which TensorFlow knows `known` bytes, and returns what it then holds.
template <typename Struct, typename F>
std::vector<unsigned char> Filled(size_t known, F&& fill) {
  alignas(Struct) static unsigned char bytes[sizeof(Struct) + 64];
  std::memset(bytes, 0xa5, sizeof(bytes));
  auto* to = reinterpret_cast<Struct*>(bytes);
  to->struct_size = known;
  fill(to);
  return std::vector<unsigned char>(bytes, bytes + sizeof(bytes));
}

// TensorFlow and the plugin may know structs of different lengths, the older one the shorter. The bytes that both know
// are filled, nothing beyond is written, and what is left in struct_size is the plugin's own.
template <typename Struct, typename F>
void ExpectFilledAsFarAsKnown(size_t own, F&& fill, bool has_padding = false) {
  const std::vector<unsigned char> full = Filled<Struct>(own, fill);
  for (size_t known = sizeof(void*) * 2; known <= sizeof(Struct) + 64; known += sizeof(void*)) {
    const std::vector<unsigned char> bytes = Filled<Struct>(known, fill);
    size_t struct_size;
    std::memcpy(&struct_size, bytes.data(), sizeof(struct_size));
    EXPECT_EQ(struct_size, own);
    const size_t both = std::min(known, own);
    ASSERT_TRUE(has_padding || std::equal(bytes.begin(), bytes.begin() + both, full.begin())) << known;
    for (size_t i = both; i < bytes.size(); ++i) ASSERT_EQ(bytes[i], 0xa5) << known << " " << i;
  }
}

TEST(StructSize, IsRespectedInBothDirections) {
  Core core;
  const auto& f = core.platform_fns;
  ExpectFilledAsFarAsKnown<SP_StreamExecutor>(SP_STREAMEXECUTOR_STRUCT_SIZE, [&](SP_StreamExecutor* se) {
    SE_CreateStreamExecutorParams params{SE_CREATE_STREAM_EXECUTOR_PARAMS_STRUCT_SIZE, nullptr, se};
    f.create_stream_executor(&core.platform, &params, Checked());
  });
  ExpectFilledAsFarAsKnown<SP_DeviceFns>(SP_DEVICE_FNS_STRUCT_SIZE, [&](SP_DeviceFns* fns) {
    SE_CreateDeviceFnsParams params{SE_CREATE_DEVICE_FNS_PARAMS_STRUCT_SIZE, nullptr, fns};
    f.create_device_fns(&core.platform, &params, Checked());
  });
  ExpectFilledAsFarAsKnown<SP_TimerFns>(SP_TIMER_FNS_STRUCT_SIZE,
                                        [&](SP_TimerFns* fns) { f.create_timer_fns(&core.platform, fns, Checked()); });
  ExpectFilledAsFarAsKnown<SP_PlatformFns>(SP_PLATFORM_FNS_STRUCT_SIZE, [&](SP_PlatformFns* fns) {
    SP_Platform platform{};
    platform.struct_size = SP_PLATFORM_STRUCT_SIZE;
    SE_PlatformRegistrationParams params{};
    params.struct_size = SE_PLATFORM_REGISTRATION_PARAMS_STRUCT_SIZE;
    params.platform = &platform;
    params.platform_fns = fns;
    InitPlatform(&params, TestBackend(), OneThread());
  });
  // Where there is padding, or an address that differs each time, what is filled in is not compared.
  ExpectFilledAsFarAsKnown<SP_Platform>(
      SP_PLATFORM_STRUCT_SIZE,
      [&](SP_Platform* platform) {
        SP_PlatformFns fns{SP_PLATFORM_FNS_STRUCT_SIZE};
        SE_PlatformRegistrationParams params{SE_PLATFORM_REGISTRATION_PARAMS_STRUCT_SIZE};
        params.platform = platform;
        params.platform_fns = &fns;
        InitPlatform(&params, TestBackend(), OneThread());
      },
      /*has_padding=*/true);
  ExpectFilledAsFarAsKnown<SP_Device>(
      SP_DEVICE_STRUCT_SIZE,
      [&](SP_Device* device) {
        SE_CreateDeviceParams params{SE_CREATE_DEVICE_PARAMS_STRUCT_SIZE, nullptr, 1, device};
        MayLeak handle_beyond_what_is_known;
        f.create_device(&core.platform, &params, Checked());
      },
      /*has_padding=*/true);
  ExpectFilledAsFarAsKnown<SP_DeviceMemoryBase>(
      SP_DEVICE_MEMORY_BASE_STRUCT_SIZE,
      [&](SP_DeviceMemoryBase* memory) { core.se.allocate(&core.device, 64, 0, memory); },
      /*has_padding=*/true);
  ExpectFilledAsFarAsKnown<SP_AllocatorStats>(
      SP_ALLOCATORSTATS_STRUCT_SIZE,
      [&](SP_AllocatorStats* stats) { EXPECT_TRUE(core.se.get_allocator_stats(&core.device, stats)); },
      /*has_padding=*/true);
}

// 2.22 appended create_stream_with_options to SP_StreamExecutor.
struct NewerOptions {
  bool has_priority;
  int priority;
};
struct NewerExecutor : SP_StreamExecutor {
  void (*create_stream_with_options)(const SP_Device*, const NewerOptions*, SP_Stream*, TF_Status*);
};
TEST(StructSize, OfTheStreamExecutorsOf2_21And2_22) {
  static_assert(SP_STREAMEXECUTOR_STRUCT_SIZE == 288 && sizeof(NewerExecutor) == 296);
  NewerExecutor newer{};
  static_cast<SP_StreamExecutor&>(newer) = StreamExecutorTable();
  StreamOptions<NewerExecutor>::Set(&newer);
  EXPECT_NE(newer.create_stream_with_options, nullptr);
  const auto from_newer = [&](auto* to) { Fill(static_cast<NewerExecutor*>(to), newer, sizeof(NewerExecutor)); };
  // A core built with 2.22 in 2.21, where writing the new field would be a write behind TensorFlow's struct.
  ExpectFilledAsFarAsKnown<NewerExecutor>(sizeof(NewerExecutor), from_newer);
  const std::vector<unsigned char> bytes = Filled<NewerExecutor>(288, from_newer);
  EXPECT_EQ(bytes[288], 0xa5);
  EXPECT_NE(std::memcmp(Filled<NewerExecutor>(296, from_newer).data() + 288, bytes.data() + 288, 8), 0);
}

// TensorFlow destroys each table when it destroys the platform, and may have made it more than once.
TEST(Platform, TablesOwnNothing) {
  Core core;
  auto& f = core.platform_fns;
  for (int i = 0; i < 2; ++i) {
    f.destroy_stream_executor(&core.platform, &core.se);
    f.destroy_device_fns(&core.platform, &core.device_fns);
    f.destroy_timer_fns(&core.platform, &core.timer_fns);
    core.params_.destroy_platform_fns(&core.platform_fns);
    core.params_.destroy_platform(&core.platform);
  }
  EXPECT_NE(core.Allocate(4).opaque, nullptr);
}

TEST(Platform, DevicesAreApart) {
  Core one, other(OneThread(), 1);
  EXPECT_EQ(other.device.ordinal, 1);
  EXPECT_STRNE(one.device.pci_bus_id, other.device.pci_bus_id);
  // All memory of the one is allocated; the other still has its own.
  EXPECT_NE(one.Allocate(kLimit).opaque, nullptr);
  EXPECT_EQ(one.Allocate(1).opaque, nullptr);
  EXPECT_NE(other.Allocate(kLimit).opaque, nullptr);
  // Synchronising one does not wait for the other.
  Gate gate;
  other.Enqueue(other.compute, gate.Wait());
  one.se.synchronize_all_activity(&one.device, Checked());
  EXPECT_FALSE(other.compute->stream->Idle());
}

TEST(Platform, DestroyingADeviceWaitsForItsWork) {
  static auto* const core = new Core;  // never deleted: its streams outlive the device
  bool ran = false;
  core->Enqueue(core->compute, [&] {
    Sleep(20);
    ran = true;
  });
  core->platform_fns.destroy_device(&core->platform, &core->device);
  EXPECT_TRUE(ran);
}

TEST(Handles, LeadFromTheStreamToTheDevice) {
  Core core;
  EXPECT_EQ(core.compute->device->info().memory_bytes, kLimit);
  EXPECT_TRUE(core.compute->stream->Idle());
}

}  // namespace
}  // namespace xpu

// A backend that throws whatever it is asked: nothing of it may unwind into TensorFlow, which is built without.
#include <functional>
#include <memory>
#include <new>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow_plugin/device/tests/core.h"

namespace xpu {
namespace {

enum class Thrown { kNothing, kBadAlloc, kError, kOther };
Thrown thrown = Thrown::kNothing;  // what every call throws

void Throw() {
  if (thrown == Thrown::kBadAlloc) throw std::bad_alloc();
  if (thrown == Thrown::kError) throw std::runtime_error("a cable came loose");
  if (thrown == Thrown::kOther) throw 7;
}

// Returns T(), or throws.
template <typename T>
T Answer() {
  Throw();
  return T();
}

struct ThrowingEvent final : Event {
  bool Done() const override { return Answer<bool>(); }
  void Wait() const override { Throw(); }
};

struct ThrowingTimer final : Timer {
  void Start(Stream&) override { Throw(); }
  void Stop(Stream&) override { Throw(); }
  uint64_t Nanoseconds() override { return Answer<uint64_t>(); }
};

struct ThrowingStream final : Stream {
  void Record(Event&) override { Throw(); }
  void WaitFor(Event&) override { Throw(); }
  void WaitFor(Stream&) override { Throw(); }
  void HostCallback(std::function<Status()>) override { Throw(); }
  Status CopyHostToDevice(void*, const void*, size_t) override { return Answer<Status>(); }
  Status CopyDeviceToHost(void*, const void*, size_t) override { return Answer<Status>(); }
  Status CopyDeviceToDevice(void*, const void*, size_t) override { return Answer<Status>(); }
  Status Memset(void*, uint8_t, size_t) override { return Answer<Status>(); }
  Status MemsetU32(void*, uint32_t, size_t) override { return Answer<Status>(); }
  bool Idle() const override { return Answer<bool>(); }
  void Wait() override { Throw(); }
  Status TakeStatus() override { return Answer<Status>(); }
  Status PeekStatus() const override { return Answer<Status>(); }
};

struct ThrowingDevice final : Device {
  const DeviceInfo& info() const override { return info_; }
  void* Allocate(size_t) override { return Answer<void*>(); }
  void Deallocate(void*) override { Throw(); }
  void* AllocateHost(size_t) override { return Answer<void*>(); }
  void DeallocateHost(void*) override { Throw(); }
  AllocatorStats Stats() const override { return Answer<AllocatorStats>(); }
  void ResetStats() override { Throw(); }
  void MemoryUsage(int64_t*, int64_t*) const override { Throw(); }
  std::unique_ptr<Stream> CreateStream(int) override { return Throw(), std::make_unique<ThrowingStream>(); }
  std::unique_ptr<Event> CreateEvent() override { return Throw(), std::make_unique<ThrowingEvent>(); }
  std::unique_ptr<Timer> CreateTimer() override { return Throw(), std::make_unique<ThrowingTimer>(); }
  void Synchronize() override { Throw(); }
  const Capabilities& capabilities() const override { return nothing_; }
  Capabilities nothing_;
  DeviceInfo info_;
};

struct ThrowingBackend final : Backend {
  const char* subdevice_type() const override { return "XPU_TEST"; }
  int DeviceCount(const BackendOptions&) const override { return Throw(), 1; }
  Status CreateDevice(int, const BackendOptions&, std::unique_ptr<Device>* device) const override {
    Throw();
    *device = std::make_unique<ThrowingDevice>();
    return OkStatus();
  }
  Status Describe(int, const BackendOptions&, DeviceInfo*) const override { return Answer<Status>(); }
  const Capabilities& capabilities() const override { return nothing_; }
  bool HostCanAddress(const void*, const BackendOptions&) const override { return Answer<bool>(); }
  Capabilities nothing_;
};

// Lines on stderr, sorted.
std::multiset<std::string> Lines(const std::string& text) {
  std::multiset<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.insert(line);
  return lines;
}

TEST(Exceptions, BecomeStatusesAndValuesOfFailure) {
  static const ThrowingBackend backend;
  Core core(OneThread(), 0, backend);
  auto& se = core.se;
  const SP_Device* d = &core.device;
  SP_Stream s = core.compute, new_stream = nullptr;
  SP_Event event = core.NewEvent(), new_event = nullptr;
  SP_Timer timer = nullptr, new_timer = nullptr;
  se.create_timer(d, &timer, Checked());
  SP_DeviceMemoryBase memory{SP_DEVICE_MEMORY_BASE_STRUCT_SIZE};
  int count = 0;
  SP_Device device{SP_DEVICE_STRUCT_SIZE};
  SE_CreateDeviceParams params{SE_CREATE_DEVICE_PARAMS_STRUCT_SIZE, nullptr, 0, &device};
  const std::function<void(TF_Status*)> with_status[] = {
      [&](TF_Status* t) { core.platform_fns.get_device_count(&core.platform, &count, t); },
      [&](TF_Status* t) { core.platform_fns.create_device(&core.platform, &params, t); },
      [&](TF_Status* t) { se.create_stream(d, &new_stream, t); },
      [&](TF_Status* t) { se.create_stream_dependency(d, s, core.h2d, t); },
      [&](TF_Status* t) { se.get_stream_status(d, s, t); },
      [&](TF_Status* t) { se.create_event(d, &new_event, t); },
      [&](TF_Status* t) { se.record_event(d, s, event, t); },
      [&](TF_Status* t) { se.wait_for_event(d, s, event, t); },
      [&](TF_Status* t) { se.create_timer(d, &new_timer, t); },
      [&](TF_Status* t) { se.start_timer(d, s, timer, t); },
      [&](TF_Status* t) { se.stop_timer(d, s, timer, t); },
      [&](TF_Status* t) { se.memcpy_dtoh(d, s, nullptr, &memory, 4, t); },
      [&](TF_Status* t) { se.memcpy_htod(d, s, &memory, nullptr, 4, t); },
      [&](TF_Status* t) { se.memcpy_dtod(d, s, &memory, &memory, 4, t); },
      [&](TF_Status* t) { se.sync_memcpy_dtoh(d, nullptr, &memory, 4, t); },
      [&](TF_Status* t) { se.sync_memcpy_htod(d, &memory, nullptr, 4, t); },
      [&](TF_Status* t) { se.sync_memcpy_dtod(d, &memory, &memory, 4, t); },
      [&](TF_Status* t) { se.block_host_for_event(d, event, t); },
      [&](TF_Status* t) { se.block_host_until_done(d, s, t); },
      [&](TF_Status* t) { se.synchronize_all_activity(d, t); },
      [&](TF_Status* t) { se.mem_zero(d, s, &memory, 4, t); },
      [&](TF_Status* t) { se.memset(d, s, &memory, 1, 4, t); },
      [&](TF_Status* t) { se.memset32(d, s, &memory, 1, 4, t); },
  };
  const struct {
    Thrown thrown;
    TF_Code code;
    const char* message;
  } cases[] = {{Thrown::kBadAlloc, TF_RESOURCE_EXHAUSTED, "the XPU plugin ran out of host memory"},
               {Thrown::kError, TF_INTERNAL, "a cable came loose"},
               {Thrown::kOther, TF_INTERNAL, "unknown exception in the XPU plugin"}};
  testing::internal::CaptureStderr();
  for (const auto& c : cases) {
    core.platform_fns.create_device(&core.platform, &params, Checked());
    thrown = c.thrown;
    int i = 0;
    for (const auto& call : with_status) {
      const Failure failure = StatusOf(call);
      EXPECT_EQ(failure.code, c.code) << i;
      EXPECT_EQ(failure.message, c.message) << i++;
    }
    EXPECT_TRUE(new_stream == nullptr && new_event == nullptr && new_timer == nullptr);
    EXPECT_EQ(core.Allocate(4).opaque, nullptr);
    se.deallocate(d, &memory);
    EXPECT_EQ(se.host_memory_allocate(d, 4), nullptr);
    se.host_memory_deallocate(d, nullptr);
    SP_AllocatorStats stats{SP_ALLOCATORSTATS_STRUCT_SIZE};
    EXPECT_FALSE(se.get_allocator_stats(d, &stats));
    int64_t free_bytes = 0, total_bytes = 0;
    EXPECT_FALSE(se.device_memory_usage(d, &free_bytes, &total_bytes));
    EXPECT_FALSE(se.host_callback(d, s, [](void*, TF_Status*) {}, nullptr));
    EXPECT_EQ(core.timer_fns.nanoseconds(timer), 0u);
    EXPECT_EQ(se.get_event_status(d, event), SE_EVENT_PENDING);  // an error would end the process
    core.platform_fns.destroy_device(&core.platform, &device);
    thrown = Thrown::kNothing;
  }
  // A callback without a status says so, once.
  std::multiset<std::string> told;
  for (const char* callback :
       {"allocate", "deallocate", "host_memory_allocate", "host_memory_deallocate", "get_allocator_stats",
        "device_memory_usage", "host_callback", "nanoseconds", "get_event_status", "destroy_device"}) {
    told.insert(std::string("tensorflow_xpu: ") + callback + " failed: the XPU plugin ran out of host memory");
  }
  EXPECT_EQ(Lines(testing::internal::GetCapturedStderr()), told);
  se.destroy_event(d, event);
  se.destroy_timer(d, timer);
}

}  // namespace
}  // namespace xpu

#include "tensorflow_plugin/device/platform.h"

#include <pthread.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "tensorflow_plugin/device/device_state.h"
#include "tensorflow_plugin/device/glue.h"
#include "tensorflow_plugin/device/memory_report.h"
#include "tensorflow_plugin/device/stream_executor.h"
#include "tensorflow_plugin/primitives/device_name.h"
#include "tensorflow_plugin/primitives/fork.h"

namespace xpu {
namespace {

// Behind SP_Platform::ext. TensorFlow copies SP_Platform about and never unloads a plugin: this lives for ever.
struct PlatformState {
  const Backend* backend;
  BackendOptions options;
  static const PlatformState& Of(const SP_Platform* platform) { return *static_cast<PlatformState*>(platform->ext); }
};

// One of them is registered; stand-ins of the tests are more.
Mutex states_mutex;
std::vector<std::unique_ptr<PlatformState>>& States() {
  static auto& states = *new std::vector<std::unique_ptr<PlatformState>>;
  return states;
}
bool devices_were_made = false;
std::atomic<bool> all_survive_forks{true};

void AfterForkInChild() {
  if (!all_survive_forks || !AllStoppedForFork()) forked_from_user = true;
  other_threads_are_missing = true;
}

}  // namespace

void RefuseForkedProcesses() { all_survive_forks = false; }

namespace {

// The platform's state for one call of TensorFlow's.
PlatformState Now(const SP_Platform* platform) {
  std::lock_guard<std::mutex> lock(states_mutex);
  return PlatformState::Of(platform);
}

void GetDeviceCount(const SP_Platform* platform, int* count, TF_Status* status) {
  *count = 0;
  Guard(status, [&] {
    const PlatformState state = Now(platform);
    *count = state.backend->DeviceCount(state.options);
    return OkStatus();
  });
}

void CreateDevice(const SP_Platform* platform, SE_CreateDeviceParams* params, TF_Status* status) {
  Guard(status, [&]() -> Status {
    const PlatformState platform_state = [platform] {
      std::lock_guard<std::mutex> lock(states_mutex);
      devices_were_made = true;
      return PlatformState::Of(platform);
    }();
    static const int once = pthread_atfork(nullptr, nullptr, AfterForkInChild);
    (void)once;  // not 0 without memory: then who forks hears less of why nothing works
    auto state = std::make_unique<DeviceState>();
    XPU_RETURN_IF_ERROR(platform_state.backend->CreateDevice(params->ordinal, platform_state.options, &state->device));
    if (!state->device->SurvivesFork()) all_survive_forks = false;
    state->pool_memory = platform_state.options.pool_memory;
    const std::string name = DeviceName(params->ordinal);
    {
      const trace::ScopedLines of_copies(name, "copies that the host waits for");
      state->blocking_copies = state->device->CreateStream();
    }
    {
      const trace::ScopedLines of_memory(name, "memory");
      state->allocations = std::make_unique<trace::Line>();
    }
    const DeviceInfo& info = state->device->info();
    SP_Device device{};
    device.ordinal = params->ordinal;
    device.hardware_name = info.hardware_name.c_str();
    device.device_vendor = info.vendor.c_str();
    device.pci_bus_id = info.pci_bus_id.c_str();
    AddReportedDevice(params->ordinal, state->device.get(), platform_state.options.pool_memory ? "pool" : "bfc");
    device.device_handle = state.release();
    Fill(params->device, device, SP_DEVICE_STRUCT_SIZE);
    return OkStatus();
  });
}

void DestroyDevice(const SP_Platform*, SP_Device* device) {
  GuardValue("destroy_device", 0, [&] {
    std::unique_ptr<DeviceState> state(&DeviceState::Of(device));
    device->device_handle = nullptr;
    RemoveReportedDevice(device->ordinal, state->device.get());
    state->device->Synchronize();
    return 0;
  });
}

const DeviceInfo& InfoOf(const SP_Device* device) { return DeviceState::Of(device).device->info(); }

void CreateDeviceFns(const SP_Platform*, SE_CreateDeviceFnsParams* params, TF_Status* status) {
  Guard(status, [&] {
    SP_DeviceFns table{};
    table.get_numa_node = [](const SP_Device* device) -> int32_t { return InfoOf(device).numa_node; };
    table.get_memory_bandwidth = [](const SP_Device* device) -> int64_t {
      return InfoOf(device).bandwidth_bytes_per_s;
    };
    table.get_gflops = [](const SP_Device* device) -> double { return InfoOf(device).gflops; };
    Fill(params->device_fns, table, SP_DEVICE_FNS_STRUCT_SIZE);
    return OkStatus();
  });
}

void CreateStreamExecutor(const SP_Platform*, SE_CreateStreamExecutorParams* params, TF_Status* status) {
  Guard(status, [&] {
    Fill(params->stream_executor, StreamExecutorTable(), SP_STREAMEXECUTOR_STRUCT_SIZE);
    return OkStatus();
  });
}

void CreateTimerFns(const SP_Platform*, SP_TimerFns* timer_fns, TF_Status* status) {
  Guard(status, [&] {
    Fill(timer_fns, TimerTable(), SP_TIMER_FNS_STRUCT_SIZE);
    return OkStatus();
  });
}

// The tables and the platform own nothing: they point to functions and to what lives for ever.
template <typename... Args>
void OwnsNothing(Args...) {}

}  // namespace

void InitPlatform(SE_PlatformRegistrationParams* params, const Backend& backend, const BackendOptions& options,
                  const char* type) {
  SetDeviceTypeName(type);
  SP_Platform platform{};
  {
    std::lock_guard<std::mutex> lock(states_mutex);
    platform.ext = States().emplace_back(new PlatformState{&backend, options}).get();
  }
  platform.name = backend.subdevice_type();  // TensorFlow shows it as the device's description
  platform.type = type;
  platform.supports_unified_memory = 0;
  // TensorFlow's best-fit allocator over few large allocations, which grow as needed; or one allocation per tensor.
  platform.use_bfc_allocator = !options.pool_memory;
  platform.force_memory_growth = 1;
  Fill(params->platform, platform, SP_PLATFORM_STRUCT_SIZE);

  SP_PlatformFns functions{};
  functions.get_device_count = GetDeviceCount;
  functions.create_device = CreateDevice;
  functions.destroy_device = DestroyDevice;
  functions.create_device_fns = CreateDeviceFns;
  functions.destroy_device_fns = OwnsNothing;
  functions.create_stream_executor = CreateStreamExecutor;
  functions.destroy_stream_executor = OwnsNothing;
  functions.create_timer_fns = CreateTimerFns;
  functions.destroy_timer_fns = OwnsNothing;
  Fill(params->platform_fns, functions, SP_PLATFORM_FNS_STRUCT_SIZE);

  params->destroy_platform = OwnsNothing;
  params->destroy_platform_fns = OwnsNothing;
}

bool ChangePlatform(const Backend& backend, const BackendOptions& options) {
  std::lock_guard<std::mutex> lock(states_mutex);
  if (devices_were_made) return false;
  for (const auto& state : States()) *state = {&backend, options};
  return true;
}

}  // namespace xpu

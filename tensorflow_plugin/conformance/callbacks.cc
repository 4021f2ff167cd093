#include "tensorflow_plugin/conformance/callbacks.h"

namespace xpu::conformance {

#define XPU_CALLBACK(name, need) {#name, offsetof(Struct, name), Need::need}

const std::vector<Callback>& PlatformCallbacks() {
  using Struct = SP_PlatformFns;
  static const std::vector<Callback> callbacks = {
      XPU_CALLBACK(get_device_count, kUnchecked),       XPU_CALLBACK(create_device, kRequired),
      XPU_CALLBACK(destroy_device, kRequired),          XPU_CALLBACK(create_device_fns, kRequired),
      XPU_CALLBACK(destroy_device_fns, kRequired),      XPU_CALLBACK(create_stream_executor, kRequired),
      XPU_CALLBACK(destroy_stream_executor, kRequired), XPU_CALLBACK(create_timer_fns, kOptional),
      XPU_CALLBACK(destroy_timer_fns, kOptional),
  };
  return callbacks;
}

const std::vector<Callback>& RegistrationCallbacks() {
  using Struct = SE_PlatformRegistrationParams;
  static const std::vector<Callback> callbacks = {
      XPU_CALLBACK(destroy_platform, kRequired),
      XPU_CALLBACK(destroy_platform_fns, kRequired),
  };
  return callbacks;
}

const std::vector<Callback>& ExecutorCallbacks() {
  using Struct = SP_StreamExecutor;
  static const std::vector<Callback> callbacks = {
      XPU_CALLBACK(allocate, kRequired),
      XPU_CALLBACK(deallocate, kRequired),
      XPU_CALLBACK(host_memory_allocate, kRequired),
      XPU_CALLBACK(host_memory_deallocate, kRequired),
      XPU_CALLBACK(unified_memory_allocate, kUnified),
      XPU_CALLBACK(unified_memory_deallocate, kUnified),
      XPU_CALLBACK(get_allocator_stats, kRequired),
      XPU_CALLBACK(device_memory_usage, kRequired),
      XPU_CALLBACK(create_stream, kRequired),
      XPU_CALLBACK(destroy_stream, kRequired),
      XPU_CALLBACK(create_stream_dependency, kRequired),
      XPU_CALLBACK(get_stream_status, kRequired),
      XPU_CALLBACK(create_event, kRequired),
      XPU_CALLBACK(destroy_event, kRequired),
      XPU_CALLBACK(get_event_status, kRequired),
      XPU_CALLBACK(record_event, kRequired),
      XPU_CALLBACK(wait_for_event, kRequired),
      XPU_CALLBACK(create_timer, kOptional),
      XPU_CALLBACK(destroy_timer, kOptional),
      XPU_CALLBACK(start_timer, kOptional),
      XPU_CALLBACK(stop_timer, kOptional),
      XPU_CALLBACK(memcpy_dtoh, kRequired),
      XPU_CALLBACK(memcpy_htod, kRequired),
      XPU_CALLBACK(memcpy_dtod, kUnchecked),
      XPU_CALLBACK(sync_memcpy_dtoh, kRequired),
      XPU_CALLBACK(sync_memcpy_htod, kRequired),
      XPU_CALLBACK(sync_memcpy_dtod, kOptional),
      XPU_CALLBACK(block_host_for_event, kRequired),
      XPU_CALLBACK(block_host_until_done, kOptional),
      XPU_CALLBACK(synchronize_all_activity, kRequired),
      XPU_CALLBACK(mem_zero, kRequired),
      XPU_CALLBACK(memset, kRequired),
      XPU_CALLBACK(memset32, kRequired),
      XPU_CALLBACK(host_callback, kRequired),
  };
  return callbacks;
}
#undef XPU_CALLBACK

std::string Missing(const std::vector<Callback>& callbacks, const void* table, bool unified_memory) {
  std::string names;
  for (const Callback& callback : callbacks) {
    const bool needed = callback.need == Need::kRequired || callback.need == Need::kUnchecked ||
                        (callback.need == Need::kUnified && unified_memory);
    const void* const* entry = reinterpret_cast<const void* const*>(static_cast<const char*>(table) + callback.offset);
    if (needed && *entry == nullptr) names += (names.empty() ? "" : ", ") + std::string(callback.name);
  }
  return names;
}

}  // namespace xpu::conformance

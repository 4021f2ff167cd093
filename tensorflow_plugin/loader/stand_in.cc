#include "tensorflow_plugin/loader/stand_in.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include "tensorflow_plugin/loader/process.h"

namespace xpu::loader {
namespace {

// Letters, since device types may hold nothing else. The address of this copy of the loader tells copies apart, the
// counter tells calls apart. Never freed: TensorFlow keeps the pointer.
const char* UniqueName() {
  static uintptr_t counter = 0;
  std::string name = "XPU_NONE_";
  for (uintptr_t n = reinterpret_cast<uintptr_t>(&counter) + counter; n; n /= 26)
    name += static_cast<char>('A' + n % 26);
  ++counter;
  return strdup(name.c_str());
}

// Sets a callback that does nothing, if the structure of the running TensorFlow (`size` bytes) has it.
template <typename Struct, typename R, typename... A>
void Ignore(Struct* s, size_t size, R (*&callback)(A...)) {
  if (reinterpret_cast<char*>(&callback + 1) > reinterpret_cast<char*>(s) + size) return;
  callback = [](A...) -> R {
    if constexpr (!std::is_void_v<R>) return R{};
  };
}

template <typename Struct, typename... Callback>
void IgnoreAll(Struct* s, Callback&... callbacks) {
  (Ignore(s, s->struct_size, callbacks), ...);
}

void StandInExecutor(const SP_Platform*, SE_CreateStreamExecutorParams* params, TF_Status*) {
  SP_StreamExecutor* e = params->stream_executor;
  IgnoreAll(e, e->allocate, e->deallocate, e->host_memory_allocate, e->host_memory_deallocate,
            e->unified_memory_allocate, e->unified_memory_deallocate, e->get_allocator_stats, e->device_memory_usage,
            e->create_stream, e->destroy_stream, e->create_stream_dependency, e->get_stream_status, e->create_event,
            e->destroy_event, e->get_event_status, e->record_event, e->wait_for_event, e->create_timer,
            e->destroy_timer, e->start_timer, e->stop_timer, e->memcpy_dtoh, e->memcpy_htod, e->memcpy_dtod,
            e->sync_memcpy_dtoh, e->sync_memcpy_htod, e->sync_memcpy_dtod, e->block_host_for_event,
            e->block_host_until_done, e->synchronize_all_activity, e->mem_zero, e->memset, e->memset32,
            e->host_callback);
}

void StandInDeviceFns(const SP_Platform*, SE_CreateDeviceFnsParams* params, TF_Status*) {
  SP_DeviceFns* f = params->device_fns;
  IgnoreAll(f, f->get_numa_node, f->get_memory_bandwidth, f->get_gflops);
}

void StandInTimerFns(const SP_Platform*, SP_TimerFns* fns, TF_Status*) { IgnoreAll(fns, fns->nanoseconds); }

void NoDevices(const SP_Platform*, int* count, TF_Status*) { *count = 0; }

// Hands the graph back as it came.
void KeepGraph(void*, const TF_Buffer* graph, const TF_GrapplerItem*, TF_Buffer* result, TF_Status*) {
  char* copy = new char[graph->length];
  std::memcpy(copy, graph->data, graph->length);
  result->data = copy;
  result->length = graph->length;
  result->data_deallocator = [](void* data, size_t) { delete[] static_cast<char*>(data); };
}

}  // namespace

void StandInPlatform(SE_PlatformRegistrationParams* params) {
  params->major_version = SE_MAJOR;
  params->minor_version = SE_MINOR;
  params->patch_version = SE_PATCH;
  SP_Platform* platform = params->platform;
  platform->name = platform->type = UniqueName();
  platform->supports_unified_memory = false;
  platform->use_bfc_allocator = false;
  SP_PlatformFns* f = params->platform_fns;
  IgnoreAll(f, f->create_device, f->destroy_device, f->destroy_device_fns, f->destroy_stream_executor,
            f->destroy_timer_fns);
  f->get_device_count = NoDevices;
  f->create_device_fns = StandInDeviceFns;
  f->create_stream_executor = StandInExecutor;
  f->create_timer_fns = StandInTimerFns;
  IgnoreAll(params, params->destroy_platform, params->destroy_platform_fns);
}

void StandInOptimizer(TP_OptimizerRegistrationParams* params) {
  params->device_type = UniqueName();
  params->optimizer->optimize_func = KeepGraph;
}

void StandInProfiler(TF_ProfilerRegistrationParams* params) {
  params->profiler->device_type = UniqueName();
  TP_ProfilerFns* f = params->profiler_fns;
  IgnoreAll(f, f->start, f->stop);
  f->collect_data_xspace = [](const TP_Profiler*, uint8_t*, size_t* size, TF_Status*) { *size = 0; };
  IgnoreAll(params, params->destroy_profiler, params->destroy_profiler_fns);
}

}  // namespace xpu::loader

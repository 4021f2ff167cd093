// A small and correct PluggableDevice of two devices on host memory, with a thread per stream. Where the environment
// variable SAMPLE_DEFECT names a defect, it has that one, for the tests of the checks.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tensorflow/c/experimental/stream_executor/stream_executor.h"

namespace {

bool Broken(const char* defect) {
  static const char* const chosen = std::getenv("SAMPLE_DEFECT");
  return chosen && std::strcmp(chosen, defect) == 0;
}

uint64_t Now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// ---- Streams

thread_local bool in_callback = false;

class Queue {
 public:
  Queue() : worker_([this] { Work(); }) {}
  // Waits for the commands.
  ~Queue() {
    Add([this] { closing_ = true; });
    worker_.join();
  }

  uint64_t Add(std::function<void()> command, bool first = false) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (in_callback && Broken("callbacks_cannot_enqueue")) return added_;
    if (Broken("not_thread_safe")) {
      if (adding_) return added_;  // of two threads that add at once, one overwrites what the other did
      adding_ = true;
      lock.unlock();
      std::this_thread::sleep_for(std::chrono::microseconds(20));
      lock.lock();
      adding_ = false;
    }
    const bool overtakes = first && Broken("copies_overtake");
    commands_.insert(overtakes ? commands_.begin() : commands_.end(), std::move(command));
    changed_.notify_all();
    return ++added_;
  }
  uint64_t added() {
    std::lock_guard<std::mutex> lock(mutex_);
    return added_;
  }
  bool Done(uint64_t ticket) {
    std::lock_guard<std::mutex> lock(mutex_);
    return done_ >= ticket;
  }
  void Wait(uint64_t ticket) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return done_ >= ticket; });
  }
  void Wait() { Wait(added()); }

  std::mutex status_mutex;
  TF_Code code = TF_OK;  // of the first callback that failed

 private:
  void Work() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (!closing_) {
      changed_.wait(lock, [&] { return !commands_.empty(); });
      std::function<void()> command = std::move(commands_.front());
      commands_.pop_front();
      lock.unlock();
      command();
      command = nullptr;
      lock.lock();
      ++done_;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> commands_;
  uint64_t added_ = 0, done_ = 0;
  bool adding_ = false, closing_ = false;
  std::thread worker_;
};

struct Device {
  static constexpr int64_t kTotal = 256 << 20;
  std::mutex mutex;
  std::vector<std::shared_ptr<Queue>> queues;
  std::map<void*, int64_t> sizes;
  int64_t in_use = 0;
  SP_AllocatorStats stats{};

  std::vector<std::shared_ptr<Queue>> Queues() {
    std::lock_guard<std::mutex> lock(mutex);
    return queues;
  }
  void Synchronize() {
    for (const auto& queue : Queues()) queue->Wait();
  }
};

Device& Of(const SP_Device* device) { return *static_cast<Device*>(device->device_handle); }

}  // namespace

struct SP_Stream_st {
  std::shared_ptr<Queue> queue;
};
struct SP_Event_st {
  std::mutex mutex;
  std::shared_ptr<Queue> queue;
  uint64_t ticket = 0;
  int records = 0;
  bool flickered = false;
  std::pair<std::shared_ptr<Queue>, uint64_t> Get() {
    std::lock_guard<std::mutex> lock(mutex);
    return {queue, ticket};
  }
};
struct SP_Timer_st {
  std::shared_ptr<std::atomic<uint64_t>> start = std::make_shared<std::atomic<uint64_t>>(0),
                                         stop = std::make_shared<std::atomic<uint64_t>>(0);
};

namespace {

void CreateStream(const SP_Device* device, SP_Stream* stream, TF_Status* status) {
  std::lock_guard<std::mutex> lock(Of(device).mutex);
  auto& queues = Of(device).queues;
  if (Broken("few_streams") && queues.size() == 20) {
    return TF_SetStatus(status, TF_RESOURCE_EXHAUSTED, "no more than 20 streams");
  }
  const bool share = Broken("one_queue") && !queues.empty();
  *stream = new SP_Stream_st{share ? queues.front() : std::make_shared<Queue>()};
  queues.push_back((*stream)->queue);
}

void DestroyStream(const SP_Device* device, SP_Stream stream) {
  stream->queue->Wait();
  if (Broken("stream_leak")) return;
  std::lock_guard<std::mutex> lock(Of(device).mutex);
  auto& queues = Of(device).queues;
  for (auto it = queues.begin(); it != queues.end(); ++it) {
    if (*it == stream->queue) {
      queues.erase(it);
      break;
    }
  }
  delete stream;
}

void WaitFor(Queue& queue, std::shared_ptr<Queue> other, uint64_t ticket) {
  if (other) queue.Add([other, ticket] { other->Wait(ticket); });
}

void CreateStreamDependency(const SP_Device* device, SP_Stream dependent, SP_Stream other, TF_Status*) {
  if (Broken("devices_do_not_wait")) {
    const auto queues = Of(device).Queues();
    if (std::find(queues.begin(), queues.end(), other->queue) == queues.end()) return;
  }
  static std::atomic<int> calls{0};
  if (Broken("dependency_ignored") || (Broken("dependencies_run_out") && ++calls > 50)) return;
  WaitFor(*dependent->queue, other->queue, other->queue->added());
}

void GetStreamStatus(const SP_Device*, SP_Stream stream, TF_Status* status) {
  if (Broken("status_blocks")) stream->queue->Wait();
  std::lock_guard<std::mutex> lock(stream->queue->status_mutex);
  TF_SetStatus(status, stream->queue->code, "a callback failed");
}

void BlockHostUntilDone(const SP_Device* device, SP_Stream stream, TF_Status* status) {
  if (!Broken("block_returns_early")) stream->queue->Wait();
  GetStreamStatus(device, stream, status);
}

void SynchronizeAllActivity(const SP_Device* device, TF_Status* status) {
  if (!Broken("synchronize_returns_early")) Of(device).Synchronize();
  TF_SetStatus(status, TF_OK, "");
}

TF_Bool HostCallback(const SP_Device*, SP_Stream stream, SE_StatusCallbackFn function, void* argument) {
  if (Broken("no_host_callback")) return false;
  Queue* queue = stream->queue.get();
  const auto call = [queue, function, argument] {
    if (Broken("stops_after_failure") && queue->code != TF_OK) return;
    TF_Status* status = TF_NewStatus();
    static std::mutex of_all_streams;
    std::unique_lock<std::mutex> alone(of_all_streams, std::defer_lock);
    if (Broken("callbacks_share_a_thread")) alone.lock();
    in_callback = true;
    function(argument, status);
    in_callback = false;
    if (Broken("callback_twice")) function(argument, status);
    std::lock_guard<std::mutex> lock(queue->status_mutex);
    if (queue->code == TF_OK && !Broken("callback_status_dropped")) queue->code = TF_GetCode(status);
    TF_DeleteStatus(status);
  };
  if (Broken("synchronous")) {
    static std::mutex one_at_a_time;
    std::lock_guard<std::mutex> lock(one_at_a_time);
    queue->Wait();
    call();
  } else {
    queue->Add(call);
  }
  return true;
}

// ---- Events and timers

void CreateEvent(const SP_Device*, SP_Event* event, TF_Status*) { *event = new SP_Event_st; }
void DestroyEvent(const SP_Device*, SP_Event event) {
  if (!Broken("event_leak")) delete event;
}

SE_EventStatus GetEventStatus(const SP_Device*, SP_Event event) {
  const auto [queue, ticket] = event->Get();
  if (Broken("event_complete_early") || !queue) return SE_EVENT_COMPLETE;
  if (!queue->Done(ticket)) return SE_EVENT_PENDING;
  if (Broken("event_needs_work") && ticket == 0) return SE_EVENT_PENDING;
  if (Broken("event_wears_out") && event->records > 50) return SE_EVENT_PENDING;
  if (Broken("event_flickers") && !(event->flickered = !event->flickered)) return SE_EVENT_PENDING;
  std::lock_guard<std::mutex> lock(queue->status_mutex);
  return Broken("event_in_error") && queue->code != TF_OK ? SE_EVENT_ERROR : SE_EVENT_COMPLETE;
}

void RecordEvent(const SP_Device*, SP_Stream stream, SP_Event event, TF_Status*) {
  std::lock_guard<std::mutex> lock(event->mutex);
  if (Broken("event_recorded_once") && event->queue) return;
  ++event->records;
  event->queue = stream->queue;
  event->ticket = stream->queue->added();
}

void WaitForEvent(const SP_Device*, SP_Stream stream, SP_Event event, TF_Status*) {
  const auto [queue, ticket] = event->Get();
  if (!Broken("wait_for_event_ignored")) WaitFor(*stream->queue, queue, ticket);
}

void BlockHostForEvent(const SP_Device*, SP_Event event, TF_Status*) {
  const auto [queue, ticket] = event->Get();
  if (Broken("block_for_event_hangs")) std::this_thread::sleep_for(std::chrono::hours(1));
  if (queue && !Broken("block_for_event_returns_early")) queue->Wait(ticket);
}

void CreateTimer(const SP_Device*, SP_Timer* timer, TF_Status*) { *timer = new SP_Timer_st; }
void DestroyTimer(const SP_Device*, SP_Timer timer) { delete timer; }

void Stamp(SP_Stream stream, const std::shared_ptr<std::atomic<uint64_t>>& time) {
  stream->queue->Add([time] { *time = Now(); });
}
void StartTimer(const SP_Device*, SP_Stream stream, SP_Timer timer, TF_Status*) {
  if (Broken("timer_starts_early")) {
    *timer->start = Now();
  } else {
    Stamp(stream, timer->start);
  }
}
void StopTimer(const SP_Device*, SP_Stream stream, SP_Timer timer, TF_Status*) { Stamp(stream, timer->stop); }
uint64_t Nanoseconds(SP_Timer timer) {
  if (Broken("timer_constant")) return 1000000;
  return (*timer->stop - *timer->start) * (Broken("timer_in_picoseconds") ? 1000 : 1);
}

// ---- Memory

void Allocate(const SP_Device* sp, uint64_t size, int64_t, SP_DeviceMemoryBase* memory) {
  static std::atomic<int> inside{0};
  static std::atomic<void*> last{nullptr};
  const bool alone = inside++ == 0;
  if (Broken("allocator_races")) std::this_thread::sleep_for(std::chrono::microseconds(50));
  --inside;
  Device& device = Of(sp);
  *memory = {SP_DEVICE_MEMORY_BASE_STRUCT_SIZE, nullptr, nullptr, 0, 0};
  std::lock_guard<std::mutex> lock(device.mutex);
  if (Broken("allocates_without_looking") && size >= uint64_t{1} << 60) memory->opaque = &device;
  SP_AllocatorStats& stats = device.stats;
  const uint64_t limit = Broken("no_limit") ? uint64_t{1} << 40 : Device::kTotal;
  if (size > limit || size + device.in_use > limit) return;
  const int64_t offset = Broken("misaligned") ? 32 : 0;
  const bool again = (Broken("allocator_races") && !alone) || (Broken("devices_share_memory") && sp->ordinal == 1) ||
                     (Broken("small_ones_overlap") && size <= 3);
  if (again && last != nullptr) {
    memory->opaque = last;
    memory->size = size;
    return;
  }
  const uint64_t slack = Broken("allocator_races") ? 65536 : 511;  // so that the defect does no more than it is for
  char* address = static_cast<char*>(std::aligned_alloc(256, (size + slack) / 256 * 256));
  if (!address) return;
  memory->opaque = address + offset;
  memory->size = Broken("allocations_without_size") ? 0 : size;
  device.sizes[memory->opaque] = static_cast<int64_t>(size);
  last = memory->opaque;
  device.in_use += size;
  if (Broken("statistics_constant")) return;
  ++stats.num_allocs;
  stats.bytes_in_use += size;
  stats.peak_bytes_in_use = std::max(stats.peak_bytes_in_use, stats.bytes_in_use);
  if (Broken("statistics_peak_late")) stats.peak_bytes_in_use = stats.bytes_in_use - 1;
  if (!Broken("statistics_without_largest"))
    stats.largest_alloc_size = std::max<int64_t>(stats.largest_alloc_size, size);
}

void Deallocate(const SP_Device* sp, SP_DeviceMemoryBase* memory) {
  Device& device = Of(sp);
  if (!memory->opaque && !Broken("null_is_an_error")) return;
  if (!Broken("freed_in_use")) device.Synchronize();
  std::lock_guard<std::mutex> lock(device.mutex);
  const auto it = device.sizes.find(memory->opaque);
  if (Broken("null_is_an_error") && it == device.sizes.end()) std::abort();
  if (it == device.sizes.end()) return;
  if (Broken("keeps_memory")) return;
  device.in_use -= it->second;
  if (!Broken("statistics_leak") && !Broken("statistics_constant")) device.stats.bytes_in_use -= it->second;
  if (Broken("statistics_forget_the_peak")) device.stats.peak_bytes_in_use = device.stats.bytes_in_use;
  void* const address = static_cast<char*>(memory->opaque) - (Broken("misaligned") ? 32 : 0);
  void* volatile const again = address;  // out of the compiler's sight
  if (!Broken("allocator_races")) std::free(address);
  if (Broken("double_free")) std::free(again);
  device.sizes.erase(it);
}

alignas(256) char one_buffer[256];
void* HostAllocate(const SP_Device*, uint64_t size) {
  if (Broken("host_misaligned")) return static_cast<char*>(std::aligned_alloc(256, (size + 511) / 256 * 256)) + 128;
  if (Broken("host_memory_overlaps") && size > 16 && size <= 100) return one_buffer;
  return std::aligned_alloc(256, (size + 255) / 256 * 256);
}
void HostDeallocate(const SP_Device*, void* memory) {
  if (memory != one_buffer && !Broken("host_misaligned")) std::free(memory);
}

void* unified = nullptr;  // the last
void* UnifiedAllocate(const SP_Device*, uint64_t size) {
  return unified = Broken("no_unified_memory_after_all") ? nullptr : std::malloc(size);
}
void UnifiedDeallocate(const SP_Device*, void* memory) { std::free(memory); }

TF_Bool GetAllocatorStats(const SP_Device* sp, SP_AllocatorStats* stats) {
  std::lock_guard<std::mutex> lock(Of(sp).mutex);
  SP_AllocatorStats filled = Of(sp).stats;
  filled.struct_size = SP_ALLOCATORSTATS_STRUCT_SIZE;
  std::memcpy(stats, &filled, std::min(stats->struct_size, SP_ALLOCATORSTATS_STRUCT_SIZE));
  return true;
}

TF_Bool DeviceMemoryUsage(const SP_Device* sp, int64_t* free, int64_t* total) {
  std::lock_guard<std::mutex> lock(Of(sp).mutex);
  *total = Broken("usage_zero") ? 0 : Device::kTotal * (Broken("usage_inflated") ? 16 : 1);
  *free = Broken("usage_constant") ? *total : *total - Of(sp).in_use;
  if (Broken("usage_more_than_all")) ++*free, *free *= 2;
  return !Broken("usage_fails");
}

// ---- Copies and fills

void WaitForAll(const SP_Device* device, Queue& queue) {
  for (const auto& other : Of(device).Queues()) {
    if (other.get() != &queue) WaitFor(queue, other, other->added());
  }
}

void CopyToDevice(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* to, const void* from, uint64_t size,
                  TF_Status*) {
  if (!Broken("htod_overtakes") && !Broken("htod_overtakes_long_work")) WaitForAll(device, *stream->queue);
  void* const target = to->opaque;
  static char staging[60000];
  if (Broken("one_staging_buffer") && size > 20000 && size < sizeof staging) {
    from = std::memcpy(staging, from, size);
  }
  if (Broken("htod_long")) ++size;
  stream->queue->Add([=] { std::memcpy(target, from, size); });
}

void CopyToHost(const SP_Device*, SP_Stream stream, void* to, const SP_DeviceMemoryBase* from, uint64_t size,
                TF_Status*) {
  const void* const source = from->opaque;
  if (Broken("dtoh_by_pairs")) size &= ~uint64_t{1};
  const auto copy = [=] { std::memcpy(to, source, size); };
  if (Broken("large_copies_late") && size >= 1 << 20) {
    std::thread([=] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      copy();
    }).detach();
    return;
  }
  stream->queue->Add(copy, /*first=*/true);
}

void CopyOnDevice(const SP_Device*, SP_Stream stream, SP_DeviceMemoryBase* to, const SP_DeviceMemoryBase* from,
                  uint64_t size, TF_Status*) {
  void* const target = to->opaque;
  const void* const source = from->opaque;
  if (Broken("dtod_by_words")) size &= ~uint64_t{3};
  stream->queue->Add([=] { std::memcpy(target, source, size); });
}

// Those that block come after all work of the device.
void CopyBlocking(const SP_Device* device, void* to, const void* from, uint64_t size) {
  Of(device).Synchronize();
  std::memcpy(to, from, size);
}
void CopyToDeviceBlocking(const SP_Device* device, SP_DeviceMemoryBase* to, const void* from, uint64_t size,
                          TF_Status*) {
  if (Broken("unified_memory_is_written_elsewhere") && to->opaque == unified) return;
  CopyBlocking(device, to->opaque, from, Broken("sync_htod_long") ? size + 1 : size);
}
void CopyToHostBlocking(const SP_Device* device, void* to, const SP_DeviceMemoryBase* from, uint64_t size, TF_Status*) {
  const uint64_t skew = Broken("sync_dtoh_aligns") ? reinterpret_cast<uintptr_t>(from->opaque) % 4 : 0;
  if (Broken("unified_memory_is_read_elsewhere") && from->opaque == unified) return;
  CopyBlocking(device, to, static_cast<char*>(from->opaque) - skew, size);
}
void CopyOnDeviceBlocking(const SP_Device* device, SP_DeviceMemoryBase* to, const SP_DeviceMemoryBase* from,
                          uint64_t size, TF_Status*) {
  CopyBlocking(device, to->opaque, from->opaque, Broken("sync_dtod_by_words") ? size & ~uint64_t{3} : size);
}

void Memset(const SP_Device*, SP_Stream stream, SP_DeviceMemoryBase* to, uint8_t value, uint64_t size, TF_Status*) {
  const uint64_t skew = Broken("memset_aligns") ? reinterpret_cast<uintptr_t>(to->opaque) % 4 : 0;
  void* const target = static_cast<char*>(to->opaque) - skew;
  stream->queue->Add([=] {
    if (Broken("htod_overtakes_long_work") && size >= 1 << 20)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::memset(target, value, size);
  });
}
void MemZero(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* to, uint64_t size, TF_Status* status) {
  Memset(device, stream, to, 0, Broken("zero_long") ? size + 1 : size, status);
}
void Memset32(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* to, uint32_t value, uint64_t size,
              TF_Status* status) {
  if (Broken("memset32_writes_bytes")) return Memset(device, stream, to, static_cast<uint8_t>(value), size, status);
  char* const target = static_cast<char*>(to->opaque);
  stream->queue->Add([=] {
    for (uint64_t i = 0; i < size; i += 4) std::memcpy(target + i, &value, 4);
  });
}

// ---- The platform

// Fills as much of a struct as TensorFlow knows of.
template <typename Struct>
void Fill(Struct* to, Struct from, size_t own_size) {
  from.struct_size = Broken("struct_size_zero") ? 0 : own_size;
  size_t size = Broken("struct_overflow") ? own_size : std::min(to->struct_size, own_size);
  if (Broken("fills_future_fields") && to->struct_size > own_size) {
    std::memset(static_cast<void*>(to), 0x11, to->struct_size);
  }
  std::memcpy(static_cast<void*>(to), &from, size);
}

void GetDeviceCount(const SP_Platform*, int* count, TF_Status*) {
  static int calls = 0;
  *count = Broken("no_devices") ? 0 : Broken("count_negative") ? -1 : Broken("count_changes") && ++calls > 50 ? 3 : 2;
  if (Broken("count_slow")) std::this_thread::sleep_for(std::chrono::milliseconds(12));
}

void CreateDevice(const SP_Platform*, SE_CreateDeviceParams* params, TF_Status*) {
  SP_Device device{};
  device.ordinal = Broken("wrong_ordinal") ? 7 : params->ordinal;
  device.device_handle = new Device;
  device.hardware_name = "sample";
  Fill(params->device, device, SP_DEVICE_STRUCT_SIZE);
}
void DestroyDevice(const SP_Platform*, SP_Device* device) { delete &Of(device); }

void CreateDeviceFns(const SP_Platform*, SE_CreateDeviceFnsParams* params, TF_Status*) {
  SP_DeviceFns functions{};
  functions.get_gflops = [](const SP_Device*) { return Broken("gflops_zero") ? 0. : -1.; };
  functions.get_memory_bandwidth = [](const SP_Device*) {
    return Broken("bandwidth_absurd") ? int64_t{1} << 60 : int64_t{-1};
  };
  Fill(params->device_fns, functions, SP_DEVICE_FNS_STRUCT_SIZE);
}

void CreateTimerFns(const SP_Platform*, SP_TimerFns* functions, TF_Status*) {
  SP_TimerFns filled{};
  filled.nanoseconds = Nanoseconds;
  Fill(functions, filled, SP_TIMER_FNS_STRUCT_SIZE);
}

void CreateStreamExecutor(const SP_Platform*, SE_CreateStreamExecutorParams* params, TF_Status*) {
  SP_StreamExecutor se{0,
                       nullptr,
                       Allocate,
                       Deallocate,
                       HostAllocate,
                       HostDeallocate,
                       UnifiedAllocate,
                       UnifiedDeallocate,
                       GetAllocatorStats,
                       DeviceMemoryUsage,
                       CreateStream,
                       DestroyStream,
                       CreateStreamDependency,
                       GetStreamStatus,
                       CreateEvent,
                       DestroyEvent,
                       GetEventStatus,
                       RecordEvent,
                       WaitForEvent,
                       CreateTimer,
                       DestroyTimer,
                       StartTimer,
                       StopTimer,
                       CopyToHost,
                       CopyToDevice,
                       CopyOnDevice,
                       CopyToHostBlocking,
                       CopyToDeviceBlocking,
                       CopyOnDeviceBlocking,
                       BlockHostForEvent,
                       BlockHostUntilDone,
                       SynchronizeAllActivity,
                       MemZero,
                       Memset,
                       Memset32,
                       HostCallback};
  if (Broken("memset32_missing")) se.memset32 = nullptr;
  if (Broken("no_timers")) se.create_timer = nullptr;
  Fill(params->stream_executor, se, SP_STREAMEXECUTOR_STRUCT_SIZE);
}

template <typename... Args>
void Nothing(Args...) {}

}  // namespace

extern "C" __attribute__((visibility("default"))) void SE_InitPlugin(SE_PlatformRegistrationParams* params,
                                                                     TF_Status* status) {
  if (Broken("crashes_at_registration")) std::abort();
  if (Broken("hangs_at_registration")) std::this_thread::sleep_for(std::chrono::hours(1));
  if (Broken("refuses")) return TF_SetStatus(status, TF_INTERNAL, "the driver is too old");
  // Other names when TensorFlow comes again.
  static int rounds = 0;
#ifndef SAMPLE_NAME
#define SAMPLE_NAME "SAMPLE"
#endif
  static const char* const kTypes[] = {SAMPLE_NAME, SAMPLE_NAME "_AGAIN"};
  const char* const name = Broken("bad_name") ? "Sample1" : kTypes[rounds++ > 0 && !Broken("same_names_again")];
  SP_Platform platform{};
  platform.name = name;
#ifndef SAMPLE_TYPE
#define SAMPLE_TYPE name
#endif
  platform.type = Broken("type_is_cpu") ? "CPU" : Broken("type_is_null") ? nullptr : SAMPLE_TYPE;
  platform.supports_unified_memory = true;
  platform.use_bfc_allocator = true;
  Fill(params->platform, platform, SP_PLATFORM_STRUCT_SIZE);
  SP_PlatformFns functions{0,
                           nullptr,
                           GetDeviceCount,
                           CreateDevice,
                           DestroyDevice,
                           CreateDeviceFns,
                           Nothing,
                           CreateStreamExecutor,
                           Nothing,
                           CreateTimerFns,
                           Nothing};
  if (Broken("destroy_device_missing")) functions.destroy_device = nullptr;
  Fill(params->platform_fns, functions, SP_PLATFORM_FNS_STRUCT_SIZE);
  if (!Broken("destroy_platform_missing")) params->destroy_platform = Nothing;
  params->destroy_platform_fns = Nothing;
  if (Broken("crashes_at_exit")) std::atexit([] { std::abort(); });
}

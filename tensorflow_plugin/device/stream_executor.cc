// The order rules of this device, all in one place. TensorFlow relies on the first three; it forgets the last.
//
// 1. A stream runs what is enqueued on it in order, from whatever threads it comes.
// 2. create_stream_dependency(a, b) and wait_for_event make work that is enqueued on `a` later wait. It waits for the
//    work that was enqueued on `b`, or before the record of the event. Work enqueued later on `b` is not waited for.
// 3. deallocate, and every copy that blocks the host, first waits for all work enqueued on the device. With the pool
//    (TF_XPU_ALLOCATOR=pool) deallocate waits for nothing and the memory is used again in the order of the streams.
// 4. Every copy from host to device waits for all work already enqueued on the device's other streams.
//
// The reason for the last: TensorFlow's allocator reuses freed memory at host time, while kernels that use it may still
// be queued. Only the order of the compute stream protects them. A copy to the device runs on a stream of its own. For
// graph constants TensorFlow does not make that stream wait for the compute stream (MakeTensorFromProto copies with
// sync_dst_compute = false). The copy would overwrite the operands of kernels that have yet to run: wrong numbers, in
// silence. Waiting for idle streams costs nothing, and where TensorFlow did ask, the second wait is free.
//
// A command's failure is known only after its enqueuer has gone on. It reaches the user once, as the error of the next
// use of the device that can carry its message. That is a kernel (framework/context.h), or a copy of data off the
// device. Such a copy knows of the failure if the device is idle: nothing computed after a failure leaves the device
// unnoticed. TensorFlow synchronises before each copy to an eager tensor, and drops the message of
// synchronize_all_activity. This callback therefore leaves the failure to the copy that follows. It reports an overdue
// failure itself, because data may have left the device while the failed command was still queued. Copies in graphs
// tell of it when they have run (tf_internals/copies.cc); of others the cause is a line on stderr. So it is if
// the process ends first (untold.h).
#include "tensorflow_plugin/device/stream_executor.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <memory>

#include "tensorflow_plugin/device/device_state.h"
#include "tensorflow_plugin/device/glue.h"
#include "tensorflow_plugin/device/stream_uses.h"
#include "tensorflow_plugin/device/told.h"
#include "tensorflow_plugin/device/untold.h"
#include "tensorflow_plugin/primitives/device_name.h"
#include "tensorflow_plugin/trace/labels.h"

namespace xpu {
namespace {

// ---- Memory

// Calls f, which takes memory or gives it back, and says what to call that. A profiler that listens is told of an
// instant with the bytes by which memory in use has changed. The pool rounds up, and TensorFlow gives Deallocate no
// size. `asked` is for what changes nothing.
template <typename F>
void RecordMemory(DeviceState& state, trace::Kind kind, uint64_t asked, F&& f) {
  if (!trace::On()) {
    f();
    return;
  }
  std::unique_lock<std::mutex> lock(state.recorded_memory, std::defer_lock);
  if (state.pool_memory) lock.lock();
  const int64_t before = state.device->Stats().bytes_in_use;
  const char* const what = f();
  const int64_t change = std::abs(state.device->Stats().bytes_in_use - before);
  const trace::Label label = trace::LabelOf(kind, what, change != 0 ? change : static_cast<int64_t>(asked));
  const uint64_t now = trace::NowNs();
  Record(*state.allocations, label, now, now);
}

void Allocate(const SP_Device* device, uint64_t size, int64_t /*memory_space*/, SP_DeviceMemoryBase* memory) {
  void* address = GuardValue<void*>("allocate", nullptr, [&] {
    DeviceState& state = DeviceState::Of(device);
    void* allocated = nullptr;
    RecordMemory(state, trace::Kind::kAllocate, size, [&] {
      allocated = state.device->Allocate(size);
      return allocated != nullptr ? "allocate" : "allocate (failed)";
    });
    return allocated;
  });
  SP_DeviceMemoryBase filled{};
  filled.opaque = address;
  filled.size = address == nullptr ? 0 : size;
  Fill(memory, filled, SP_DEVICE_MEMORY_BASE_STRUCT_SIZE);
}

void Deallocate(const SP_Device* device, SP_DeviceMemoryBase* memory) {
  GuardValue("deallocate", 0, [&] {
    if (forked_from_user) return 0;  // it would wait for ever
    DeviceState& state = DeviceState::Of(device);
    RecordMemory(state, trace::Kind::kFree, memory->size, [&] {
      state.device->Deallocate(memory->opaque);
      return "free";
    });
    return 0;
  });
  memory->opaque = nullptr;
  memory->size = 0;
}

void* HostAllocate(const SP_Device* device, uint64_t size) {
  return GuardValue<void*>("host_memory_allocate", nullptr,
                           [&] { return DeviceState::Of(device).device->AllocateHost(size); });
}

void HostDeallocate(const SP_Device* device, void* address) {
  GuardValue("host_memory_deallocate", 0, [&] {
    DeviceState::Of(device).device->DeallocateHost(address);
    return 0;
  });
}

TF_Bool GetAllocatorStats(const SP_Device* device, SP_AllocatorStats* out) {
  return GuardValue<TF_Bool>("get_allocator_stats", 0, [&]() -> TF_Bool {
    const AllocatorStats stats = DeviceState::Of(device).device->Stats();
    SP_AllocatorStats filled{};
    filled.num_allocs = stats.num_allocs;
    filled.bytes_in_use = stats.bytes_in_use;
    filled.peak_bytes_in_use = stats.peak_bytes_in_use;
    filled.largest_alloc_size = stats.largest_alloc_size;
    filled.has_bytes_limit = stats.bytes_limit > 0;
    filled.bytes_limit = stats.bytes_limit;
    filled.bytes_reserved = stats.bytes_reserved;
    filled.peak_bytes_reserved = stats.peak_bytes_reserved;
    filled.has_bytes_reservable_limit = filled.has_bytes_limit;
    filled.bytes_reservable_limit = stats.bytes_limit;
    int64_t free_bytes = 0, total_bytes = 0;
    DeviceState::Of(device).device->MemoryUsage(&free_bytes, &total_bytes);
    filled.largest_free_block_bytes = free_bytes;
    Fill(out, filled, SP_ALLOCATORSTATS_STRUCT_SIZE);
    return 1;
  });
}

TF_Bool DeviceMemoryUsage(const SP_Device* device, int64_t* free_bytes, int64_t* total_bytes) {
  return GuardValue<TF_Bool>("device_memory_usage", 0, [&]() -> TF_Bool {
    DeviceState::Of(device).device->MemoryUsage(free_bytes, total_bytes);
    return *total_bytes > 0;
  });
}

// ---- Streams

void DestroyStream(const SP_Device* device, SP_Stream handle) {
  GuardValue("destroy_stream", 0, [&] {
    if (forked_from_user) return 0;  // it would wait for ever
    DeviceState& state = DeviceState::Of(device);
    {
      std::lock_guard<std::mutex> lock(state.mutex);
      state.streams.erase(std::remove(state.streams.begin(), state.streams.end(), handle), state.streams.end());
    }
    ForgetStream(handle);
    ForgetUntold(handle);
    delete handle;
    return 0;
  });
}

void CreateStreamDependency(const SP_Device*, SP_Stream dependent, SP_Stream other, TF_Status* status) {
  Guard(status, [&] {
    EnsureOtherThreads();
    dependent->stream->WaitFor(*other->stream);
    return OkStatus();
  });
}

void GetStreamStatus(const SP_Device*, SP_Stream handle, TF_Status* status) {
  Guard(status, [&] { return handle->stream->PeekStatus(); });
}

void BlockHostUntilDone(const SP_Device*, SP_Stream handle, TF_Status* status) {
  Guard(status, [&]() -> Status {
    XPU_RETURN_IF_ERROR(RequireNotForked());
    handle->stream->Wait();
    return handle->stream->TakeStatus();
  });
}

// Before data leaves the device: the failure of an earlier command, if there is one. `all_are_told`: those of the
// commands that the data come from are, now or by the end of the copy.
Status TakeFailure(DeviceState& state, bool all_are_told = false) {
  XPU_RETURN_IF_ERROR(RequireNotForked());
  bool idle = true;
  Status first;
  std::lock_guard<std::mutex> lock(state.mutex);
  for (SP_Stream handle : state.streams) {
    idle = idle && handle->stream->Idle();  // in this order: of an idle stream every failure is known
    Status failure = TakeEarlierFailure(*handle->stream);
    if (first.ok()) first = std::move(failure);
  }
  if (idle || !all_are_told) state.failure_may_be_overdue = !idle;
  return first;
}

void SynchronizeAllActivity(const SP_Device* device, TF_Status* status) {
  Guard(status, [&] {
    if (forked_from_user) return OkStatus();  // the copy that follows can say why it fails
    DeviceState& state = DeviceState::Of(device);
    state.device->Synchronize();
    if (!state.failure_may_be_overdue || state.ACopyTells()) return OkStatus();
    Status failure = TakeFailure(state);
    if (failure.ok()) return failure;
    TellOnStderr("TensorFlow's error \"PluggableDevice SyncAll failed\" leaves out", failure);
    return Status(failure.code(), "an operation on the XPU failed, as the line above says");
  });
}

TF_Bool HostCallback(const SP_Device* device, SP_Stream handle, SE_StatusCallbackFn callback, void* argument) {
  return GuardValue<TF_Bool>("host_callback", 0, [&]() -> TF_Bool {
    handle->stream->HostCallback([&state = DeviceState::Of(device), callback, argument] {
      std::unique_ptr<TF_Status, decltype(&TF_DeleteStatus)> status(TF_NewStatus(), &TF_DeleteStatus);
      callback(argument, status.get());
      if (TF_GetCode(status.get()) != TF_OK) state.failure_may_be_overdue = true;
      return Status(static_cast<Code>(TF_GetCode(status.get())), TF_Message(status.get()));
    });
    return 1;
  });
}

// ---- Events. Their status is never an error: TensorFlow ends the process over one, and the failure of a command is
// the stream's to report.

void CreateEvent(const SP_Device* device, SP_Event* event, TF_Status* status) {
  *event = nullptr;
  Guard(status, [&] {
    *event = new SP_Event_st{DeviceState::Of(device).device->CreateEvent()};
    return OkStatus();
  });
}

void DestroyEvent(const SP_Device*, SP_Event event) { delete event; }

SE_EventStatus GetEventStatus(const SP_Device*, SP_Event event) {
  return GuardValue("get_event_status", SE_EVENT_PENDING,
                    [&] { return event->event->Done() ? SE_EVENT_COMPLETE : SE_EVENT_PENDING; });
}

void RecordEvent(const SP_Device*, SP_Stream handle, SP_Event event, TF_Status* status) {
  Guard(status, [&] {
    handle->stream->Record(*event->event);
    return OkStatus();
  });
}

void WaitForEvent(const SP_Device* const, SP_Stream handle, SP_Event event, TF_Status* const status) {
  Guard(status, [&] {
    handle->stream->WaitFor(*event->event);
    return OkStatus();
  });
}

void BlockHostForEvent(const SP_Device*, SP_Event event, TF_Status* status) {
  Guard(status, [&] {
    event->event->Wait();
    return OkStatus();
  });
}

// ---- Timers

void CreateTimer(const SP_Device* device, SP_Timer* timer, TF_Status* status) {
  *timer = nullptr;
  Guard(status, [&] {
    *timer = new SP_Timer_st{DeviceState::Of(device).device->CreateTimer()};
    return OkStatus();
  });
}

void DestroyTimer(const SP_Device*, SP_Timer timer) { delete timer; }

void StartTimer(const SP_Device*, SP_Stream handle, SP_Timer timer, TF_Status* status) {
  Guard(status, [&] {
    timer->timer->Start(*handle->stream);
    return OkStatus();
  });
}

void StopTimer(const SP_Device*, SP_Stream handle, SP_Timer timer, TF_Status* status) {
  Guard(status, [&] {
    timer->timer->Stop(*handle->stream);
    return OkStatus();
  });
}

uint64_t TimerNanoseconds(SP_Timer timer) {
  return GuardValue<uint64_t>("nanoseconds", 0, [&] { return timer->timer->Nanoseconds(); });
}

// ---- Copies and fills

// Rule 4: `stream` waits for the work enqueued on all others.
void WaitForOtherStreams(DeviceState& state, Stream& stream) {
  state.ForEachStream([&stream](Stream& other) {
    if (&other != &stream) stream.WaitFor(other);
  });
}

void EnqueueCopyToDevice(const SP_Device* device, SP_Stream handle, SP_DeviceMemoryBase* to, const void* from,
                         uint64_t size, TF_Status* status) {
  Guard(status, [&]() -> Status {
    XPU_RETURN_IF_ERROR(RequireNotForked());
    WaitForOtherStreams(DeviceState::Of(device), *handle->stream);
    return handle->stream->CopyHostToDevice(to->opaque, from, size);
  });
}

void EnqueueCopyToHost(const SP_Device* device, SP_Stream handle, void* to, const SP_DeviceMemoryBase* from,
                       uint64_t size, TF_Status* status) {
  Guard(status, [&]() -> Status {
    XPU_RETURN_IF_ERROR(TellAgain(from->opaque));
    const bool waits = copies_wait;
    if (waits && !forked_from_user) handle->stream->Wait();
    const Status failure = TakeFailure(DeviceState::Of(device), waits || CopyThatTells::Enqueuing::Now());
    NoteCopy(from->opaque, failure);
    XPU_RETURN_IF_ERROR(failure);
    return handle->stream->CopyDeviceToHost(to, from->opaque, size);
  });
}

// Off the device, too: the target may be another one's.
void CopyOnDevice(const SP_Device* device, SP_Stream handle, SP_DeviceMemoryBase* to, const SP_DeviceMemoryBase* from,
                  uint64_t size, TF_Status* status) {
  Guard(status, [&]() -> Status {
    const bool tells = CopyThatTells::Enqueuing::Now();
    if (tells && copies_wait && !forked_from_user) handle->stream->Wait();
    XPU_RETURN_IF_ERROR(TakeFailure(DeviceState::Of(device), tells));
    return RedirectedStream::InsteadOf(handle).CopyDeviceToDevice(to->opaque, from->opaque, size);
  });
}

// Rule 3. `copy` enqueues on the stream it is given. Callers on several threads share that stream, and each waits until
// its copy is done. A copy has no failure of its own beyond the result of `copy`.
template <typename F>
void CopyBlocking(const SP_Device* device, TF_Status* status, F&& copy) {
  Guard(status, [&]() -> Status {
    DeviceState& state = DeviceState::Of(device);
    Stream& stream = *state.blocking_copies;
    XPU_RETURN_IF_ERROR(RequireNotForked());
    WaitForOtherStreams(state, stream);
    XPU_RETURN_IF_ERROR(copy(stream));
    stream.Wait();
    return OkStatus();
  });
}

void CopyToDeviceBlocking(const SP_Device* device, SP_DeviceMemoryBase* to, const void* from, uint64_t size,
                          TF_Status* status) {
  CopyBlocking(device, status, [&](Stream& stream) { return stream.CopyHostToDevice(to->opaque, from, size); });
}

void CopyToHostBlocking(const SP_Device* device, void* to, const SP_DeviceMemoryBase* from, uint64_t size,
                        TF_Status* status) {
  CopyBlocking(device, status, [&](Stream& stream) { return stream.CopyDeviceToHost(to, from->opaque, size); });
}

void CopyOnDeviceBlocking(const SP_Device* device, SP_DeviceMemoryBase* to, const SP_DeviceMemoryBase* from,
                          uint64_t size, TF_Status* status) {
  CopyBlocking(device, status,
               [&](Stream& stream) { return stream.CopyDeviceToDevice(to->opaque, from->opaque, size); });
}

void Memset(const SP_Device*, SP_Stream handle, SP_DeviceMemoryBase* to, uint8_t pattern, uint64_t size,
            TF_Status* status) {
  Guard(status, [&] { return RedirectedStream::InsteadOf(handle).Memset(to->opaque, pattern, size); });
}

void MemZero(const SP_Device* device, SP_Stream handle, SP_DeviceMemoryBase* to, uint64_t size, TF_Status* status) {
  Memset(device, handle, to, 0, size, status);
}

void Memset32(const SP_Device*, SP_Stream handle, SP_DeviceMemoryBase* to, uint32_t pattern, uint64_t size,
              TF_Status* status) {
  Guard(status, [&] { return RedirectedStream::InsteadOf(handle).MemsetU32(to->opaque, pattern, size); });
}

}  // namespace

void CreateStream(const SP_Device* device, int priority, SP_Stream* handle, TF_Status* status) {
  *handle = nullptr;
  Guard(status, [&] {
    DeviceState& state = DeviceState::Of(device);
    auto created = std::make_unique<SP_Stream_st>();
    created->device = state.device.get();
    std::lock_guard<std::mutex> lock(state.mutex);
    const std::string name = DeviceName(device->ordinal);
    const trace::ScopedLines of_stream(name, LineOfNewStream(created.get(), name, state.num_created++));
    created->stream = state.device->CreateStream(priority);
    state.streams.push_back(created.get());
    TellWhenTheProcessEnds(created.get());
    *handle = created.release();
    return OkStatus();
  });
}

SP_StreamExecutor StreamExecutorTable() {
  SP_StreamExecutor table{};
  table.allocate = Allocate;
  table.deallocate = Deallocate;
  table.host_memory_allocate = HostAllocate;
  table.host_memory_deallocate = HostDeallocate;
  // unified_memory_*: SP_Platform says that there is no unified memory, so TensorFlow never asks.
  table.get_allocator_stats = GetAllocatorStats;
  table.device_memory_usage = DeviceMemoryUsage;
  table.create_stream = [](const SP_Device* device, SP_Stream* handle, TF_Status* status) {
    CreateStream(device, 0, handle, status);
  };
  table.destroy_stream = DestroyStream;
  table.create_stream_dependency = CreateStreamDependency;
  table.get_stream_status = GetStreamStatus;
  table.create_event = CreateEvent;
  table.destroy_event = DestroyEvent;
  table.get_event_status = GetEventStatus;
  table.record_event = RecordEvent;
  table.wait_for_event = WaitForEvent;
  table.create_timer = CreateTimer;
  table.destroy_timer = DestroyTimer;
  table.start_timer = StartTimer;
  table.stop_timer = StopTimer;
  table.memcpy_dtoh = EnqueueCopyToHost;
  table.memcpy_htod = EnqueueCopyToDevice;
  table.memcpy_dtod = CopyOnDevice;
  table.sync_memcpy_dtoh = CopyToHostBlocking;
  table.sync_memcpy_htod = CopyToDeviceBlocking;
  table.sync_memcpy_dtod = CopyOnDeviceBlocking;
  table.block_host_for_event = BlockHostForEvent;
  table.block_host_until_done = BlockHostUntilDone;
  table.synchronize_all_activity = SynchronizeAllActivity;
  table.mem_zero = MemZero;
  table.memset = Memset;
  table.memset32 = Memset32;
  table.host_callback = HostCallback;
  StreamOptions<SP_StreamExecutor>::Set(&table);
  return table;
}

SP_TimerFns TimerTable() {
  SP_TimerFns table{};
  table.nanoseconds = TimerNanoseconds;
  return table;
}

}  // namespace xpu

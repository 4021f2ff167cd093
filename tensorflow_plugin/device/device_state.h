// The structs behind the opaque handles of the StreamExecutor C API, except that of streams (stream_handle.h).
#ifndef TENSORFLOW_PLUGIN_DEVICE_DEVICE_STATE_H_
#define TENSORFLOW_PLUGIN_DEVICE_DEVICE_STATE_H_

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "tensorflow/c/experimental/stream_executor/stream_executor.h"
#include "tensorflow_plugin/device/stream_handle.h"
#include "tensorflow_plugin/primitives/backend.h"
#include "tensorflow_plugin/primitives/fork.h"
#include "tensorflow_plugin/trace/trace_events.h"

struct SP_Event_st {
  std::unique_ptr<xpu::Event> event;
};

struct SP_Timer_st {
  std::unique_ptr<xpu::Timer> timer;
};

namespace xpu {

// Behind SP_Device::device_handle.
struct DeviceState {
  std::unique_ptr<Device> device;
  // For the copies that block the host, which come without a stream.
  std::unique_ptr<Stream> blocking_copies;
  std::unique_ptr<trace::Line> allocations;
  // Allocations and deallocations come one after the other while a profiler listens, so that sizes are known. Only with
  // the pool, whose Deallocate waits for nothing.
  std::mutex recorded_memory;
  bool pool_memory = false;

  Mutex mutex;
  std::vector<SP_Stream> streams;  // those that TensorFlow created and did not destroy
  int num_created = 0;             // of them

  // Data left the device, or a host callback failed, since it was last seen idle: TakeFailure in stream_executor.cc.
  std::atomic<bool> failure_may_be_overdue{false};

  // Calls f(Stream&) for each of them.
  template <typename F>
  void ForEachStream(F&& f) {
    std::lock_guard<std::mutex> lock(mutex);
    for (SP_Stream handle : streams) f(*handle->stream);
  }

  // True if a copy is on its way that will tell of failures.
  bool ACopyTells() {
    std::lock_guard<std::mutex> lock(mutex);
    return std::any_of(streams.begin(), streams.end(), [](SP_Stream s) { return s->copies_that_tell.load() > 0; });
  }

  static DeviceState& Of(const SP_Device* device) { return *static_cast<DeviceState*>(device->device_handle); }
};

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_DEVICE_DEVICE_STATE_H_

// Streams, events and timers of a device on host memory, over a CommandQueue.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_HOST_STREAM_H_
#define TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_HOST_STREAM_H_

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>

#include "tensorflow_plugin/backends/host_runtime/command_queue.h"
#include "tensorflow_plugin/backends/host_runtime/device_memory.h"
#include "tensorflow_plugin/primitives/backend.h"

namespace xpu::host_runtime {

class HostStream final : public Stream {
 public:
  // `memory` translates device addresses; it outlives the stream's commands. null: addresses are what they are.
  HostStream(std::shared_ptr<CommandQueue> queue, const DeviceMemory* memory)
      : queue_(std::move(queue)), memory_(memory) {}
  ~HostStream() override { queue_->Close(); }

  void Record(Event& event) override;
  void WaitFor(Event& event) override;
  void WaitFor(Stream& other) override;
  void HostCallback(std::function<Status()> callback) override;

  Status CopyHostToDevice(void* device_dst, const void* host_src, size_t size) override;
  Status CopyDeviceToHost(void* host_dst, const void* device_src, size_t size) override;
  Status CopyDeviceToDevice(void* device_dst, const void* device_src, size_t size) override;
  Status Write(void* device_dst, const void* host_src, size_t size) override;
  Status Read(void* host_dst, const void* device_src, size_t size) override;
  Status Memset(void* device_dst, uint8_t value, size_t size) override;
  Status MemsetU32(void* device_dst, uint32_t value, size_t size) override;

  bool Idle() const override { return queue_->Idle(); }
  void Wait() override { queue_->Wait(queue_->submitted()); }
  Status TakeStatus() override { return queue_->TakeStatus(); }
  Status PeekStatus() const override { return queue_->PeekStatus(); }

  CommandQueue& queue() { return *queue_; }
  const std::shared_ptr<CommandQueue>& shared_queue() const { return queue_; }

 private:
  template <typename T>
  T* Translate(T* address) const {
    return memory_ == nullptr ? address : memory_->Translate(address);
  }
  Status Copy(const char* what, void* dst, const void* src, size_t size, bool at_once);
  template <typename F>
  void Submit(const char* what, int64_t bytes, bool at_once, bool copies, const F& command);
  template <typename F>
  auto Recorded(const char* what, int64_t bytes, bool copies, const F& command) const;

  const std::shared_ptr<CommandQueue> queue_;
  const DeviceMemory* const memory_;
};

class HostEvent final : public Event {
 public:
  bool Done() const override;
  void Wait() const override;

  void Set(std::shared_ptr<CommandQueue> queue, CommandQueue::Ticket ticket);
  // The point last recorded; the queue is null if there is none.
  std::pair<std::shared_ptr<CommandQueue>, CommandQueue::Ticket> Get() const;

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<CommandQueue> queue_;
  CommandQueue::Ticket ticket_ = 0;
};

class HostTimer final : public Timer {
 public:
  void Start(Stream& stream) override;
  void Stop(Stream& stream) override;
  uint64_t Nanoseconds() override;

 private:
  // Shared with the commands that write them: the timer may go before they run.
  struct Times {
    std::atomic<uint64_t> start{0}, stop{0};  // 0: not reached
  };
  mutable std::mutex mutex_;
  std::shared_ptr<Times> times_;  // null before Start
  HostEvent stop_point_;
};

}  // namespace xpu::host_runtime

#endif  // TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_HOST_STREAM_H_

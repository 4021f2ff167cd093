#include "tensorflow_plugin/backends/host_runtime/host_stream.h"

#include <cstring>
#include <utility>

#include "tensorflow_plugin/backends/host_runtime/clock.h"
#include "tensorflow_plugin/backends/host_runtime/copies.h"
#include "tensorflow_plugin/backends/host_runtime/large_pages.h"
#include "tensorflow_plugin/trace/labels.h"

namespace xpu::host_runtime {
namespace {

// TensorFlow waits for most copies between host and device as soon as it has enqueued them, and polls for their end. If
// they are done by the time that it looks, that saves three wake-ups of threads, some 100 microseconds. For larger
// copies that is little, and a thread that does not wait can use the time.
constexpr size_t kAtOnceUpTo = 32 << 20;

// Copies to the host from this size on go to memory that is fresh from the system more often than not.
constexpr size_t kFreshFrom = 8 << 20;

// A read that is no larger is copied beside what else runs, by the reader alone.
constexpr size_t kReadAtOnceUpTo = 1 << 20;

Status RequireAddress(const char* what, const void* address, size_t size) {
  XPU_REQUIRE(address != nullptr, errors::InvalidArgument(what, " of ", size, " bytes at a null address"));
  return OkStatus();
}

}  // namespace

void HostStream::Record(Event& event) { static_cast<HostEvent&>(event).Set(queue_, queue_->submitted()); }

void HostStream::WaitFor(Event& event) {
  auto [queue, ticket] = static_cast<HostEvent&>(event).Get();
  if (queue != nullptr) queue_->WaitFor(queue, ticket);
}

void HostStream::WaitFor(Stream& other) {
  const std::shared_ptr<CommandQueue>& queue = static_cast<HostStream&>(other).queue_;
  queue_->WaitFor(queue, queue->submitted());
}

void HostStream::HostCallback(std::function<Status()> callback) {
  // Never on the submitting thread: it may hold a lock that the callback takes.
  if (!trace::On()) {
    queue_->Enqueue([callback = std::move(callback), queue = queue_.get()](const ThreadTeam&) {
      const CommandQueue::ForeignCode foreign(*queue);
      return callback();
    });
    return;
  }
  const trace::Label label = trace::LabelOf(trace::Kind::kCallback, "callback on the host", 0);
  queue_->Enqueue([callback = std::move(callback), label, queue = queue_.get()](const ThreadTeam&) {
    const trace::Span span(queue->line(), label);
    const CommandQueue::ForeignCode foreign(*queue);
    return callback();
  });
}

// The command, shown while a profiler listens: on. Only to be made then.
template <typename F>
auto HostStream::Recorded(const char* what, int64_t bytes, bool copies, const F& command) const {
  const trace::Kind kind = copies ? trace::Kind::kCopy : trace::Kind::kFill;
  return [command, label = trace::LabelOf(kind, what, bytes), queue = queue_.get()](const ThreadTeam& team) {
    const trace::Span span(queue->line(), label);
    return command(team);
  };
}

// `at_once`: by the calling thread and the team if the stream is idle, whatever it costs. `copies`: or fills.
template <typename F>
void HostStream::Submit(const char* what, int64_t bytes, bool at_once, bool copies, const F& command) {
  const auto submit = [&](const auto& run) {
    if (!(at_once && queue_->TryRunWithTeam(run))) queue_->Submit(EstimateCopyNs(bytes), run);
  };
  if (!trace::On()) return submit(command);
  submit(Recorded(what, bytes, copies, command));
}

Status HostStream::Copy(const char* what, void* dst, const void* src, size_t size, bool at_once) {
  if (size == 0) return OkStatus();
  XPU_RETURN_IF_ERROR(RequireAddress("copy from", src, size));
  XPU_RETURN_IF_ERROR(RequireAddress("copy to", dst, size));
  char* const to = static_cast<char*>(Translate(dst));
  const char* const from = static_cast<const char*>(Translate(src));
  const int64_t bytes = static_cast<int64_t>(size);
  const auto copy = [to, from, bytes](const ThreadTeam& team) {
    host_runtime::Copy(to, from, bytes, team);
    return OkStatus();
  };
  Submit(what, bytes, at_once, /*copies=*/true, copy);
  return OkStatus();
}

Status HostStream::CopyHostToDevice(void* device_dst, const void* host_src, size_t size) {
  return Copy("copy from the host", device_dst, host_src, size, size <= kAtOnceUpTo);
}
Status HostStream::CopyDeviceToHost(void* host_dst, const void* device_src, size_t size) {
  // TensorFlow makes the host's memory anew for each copy. Small pages would be faulted in one by one, which takes
  // several times as long as the copy itself.
  if (size >= kFreshFrom && memory_ != nullptr && memory_->large_pages()) AdviseLargePages(host_dst, size, true);
  return Copy("copy to the host", host_dst, device_src, size, size <= kAtOnceUpTo);
}
Status HostStream::Write(void* device_dst, const void* host_src, size_t size) {
  if (size == 0) return OkStatus();
  XPU_RETURN_IF_ERROR(RequireAddress("copy from", host_src, size));
  XPU_RETURN_IF_ERROR(RequireAddress("copy to", device_dst, size));
  constexpr char kWhat[] = "copy from the host";
  char* const to = static_cast<char*>(Translate(device_dst));
  const int64_t bytes = static_cast<int64_t>(size);
  const auto copy = [to, host_src, bytes](const ThreadTeam& team) {
    host_runtime::Copy(to, static_cast<const char*>(host_src), bytes, team);
    return OkStatus();
  };
  if (trace::On() ? queue_->TryRunWithTeam(Recorded(kWhat, bytes, true, copy)) : queue_->TryRunWithTeam(copy)) {
    return OkStatus();
  }
  const std::shared_ptr<char[]> kept(new char[size]);
  std::memcpy(kept.get(), host_src, size);
  Submit(kWhat, bytes, /*at_once=*/false, /*copies=*/true, [to, kept, bytes](const ThreadTeam& team) {
    host_runtime::Copy(to, kept.get(), bytes, team);
    return OkStatus();
  });
  return OkStatus();
}
Status HostStream::Read(void* host_dst, const void* device_src, size_t size) {
  if (size == 0) return OkStatus();
  if (size > kReadAtOnceUpTo) return Stream::Read(host_dst, device_src, size);
  XPU_RETURN_IF_ERROR(RequireAddress("copy from", device_src, size));
  XPU_RETURN_IF_ERROR(RequireAddress("copy to", host_dst, size));
  const char* const from = static_cast<const char*>(Translate(device_src));
  queue_->WaitForWriters(from, from + size);
  const auto copy = [&](const ThreadTeam&) {
    std::memcpy(host_dst, from, size);
    return OkStatus();
  };
  const ThreadTeam alone(1);
  return trace::On() ? Recorded("copy to the host", size, /*copies=*/true, copy)(alone) : copy(alone);
}
Status HostStream::CopyDeviceToDevice(void* device_dst, const void* device_src, size_t size) {
  // Either may belong to another device.
  return Copy("copy on the device", DeviceMemory::TranslateAny(device_dst),
              DeviceMemory::TranslateAny(const_cast<void*>(device_src)), size, /*at_once=*/false);
}

Status HostStream::Memset(void* device_dst, uint8_t value, size_t size) {
  if (size == 0) return OkStatus();
  XPU_RETURN_IF_ERROR(RequireAddress("memset", device_dst, size));
  char* const to = static_cast<char*>(Translate(device_dst));
  const int64_t bytes = static_cast<int64_t>(size);
  Submit("fill", bytes, /*at_once=*/false, /*copies=*/false, [to, value, bytes](const ThreadTeam& team) {
    Fill(to, value, bytes, team);
    return OkStatus();
  });
  return OkStatus();
}

Status HostStream::MemsetU32(void* device_dst, uint32_t value, size_t size) {
  XPU_REQUIRE(size % 4 == 0, errors::InvalidArgument("memset32 of ", size, " bytes, which is no multiple of 4"));
  if (size == 0) return OkStatus();
  XPU_RETURN_IF_ERROR(RequireAddress("memset32", device_dst, size));
  char* const to = static_cast<char*>(Translate(device_dst));
  XPU_REQUIRE(reinterpret_cast<uintptr_t>(to) % 4 == 0,
              errors::InvalidArgument("memset32 at ", device_dst, ", which is not aligned to 4 bytes"));
  const int64_t bytes = static_cast<int64_t>(size);
  Submit("fill", bytes, /*at_once=*/false, /*copies=*/false, [to, value, bytes](const ThreadTeam& team) {
    FillWords(to, value, bytes, team);
    return OkStatus();
  });
  return OkStatus();
}

bool HostEvent::Done() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return queue_ == nullptr || queue_->Reached(ticket_);
}

void HostEvent::Wait() const {
  auto [queue, ticket] = Get();
  if (queue != nullptr) queue->Wait(ticket);
}

void HostEvent::Set(std::shared_ptr<CommandQueue> queue, CommandQueue::Ticket ticket) {
  std::lock_guard<std::mutex> lock(mutex_);
  queue_ = std::move(queue);
  ticket_ = ticket;
}

std::pair<std::shared_ptr<CommandQueue>, CommandQueue::Ticket> HostEvent::Get() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return {queue_, ticket_};
}

void HostTimer::Start(Stream& stream) {
  auto times = std::make_shared<Times>();
  {
    std::lock_guard<std::mutex> lock(mutex_);
    times_ = times;
  }
  static_cast<HostStream&>(stream).queue().Submit(0, [times](const ThreadTeam&) {
    times->start.store(static_cast<uint64_t>(NowNs()), std::memory_order_relaxed);
    return OkStatus();
  });
}

void HostTimer::Stop(Stream& stream) {
  std::shared_ptr<Times> times;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    times = times_;
  }
  if (times == nullptr) return;
  static_cast<HostStream&>(stream).queue().Submit(0, [times](const ThreadTeam&) {
    times->stop.store(static_cast<uint64_t>(NowNs()), std::memory_order_relaxed);
    return OkStatus();
  });
  stream.Record(stop_point_);
}

uint64_t HostTimer::Nanoseconds() {
  std::shared_ptr<Times> times;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    times = times_;
  }
  if (times == nullptr) return 0;
  stop_point_.Wait();
  const uint64_t start = times->start.load(std::memory_order_relaxed);
  const uint64_t stop = times->stop.load(std::memory_order_relaxed);
  return stop > start ? stop - start : 0;
}

}  // namespace xpu::host_runtime

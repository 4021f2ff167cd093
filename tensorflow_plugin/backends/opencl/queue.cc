#include "tensorflow_plugin/backends/opencl/queue.h"

#include <algorithm>
#include <vector>

#include "tensorflow_plugin/backends/opencl/machine.h"

namespace xpu::opencl {
namespace {

// The size of the pieces of copies between devices.
constexpr size_t kPieceBytes = size_t{16} << 20;

// A negative number is the error of a command that failed.
cl_int StateOf(cl_event event) {
  cl_int state = CL_COMPLETE;
  const cl_int error = Cl().GetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(state), &state, nullptr);
  return error == CL_SUCCESS ? state : error;
}

// Runs `work` on a thread of the driver's once the event's command has run, or failed to. It runs at once where the
// driver would not remember it.
void WhenDone(cl_event event, std::function<void()> work) {
  auto* const kept = new std::function<void()>(std::move(work));
  const auto call = [](cl_event, cl_int, void* data) {
    const std::unique_ptr<std::function<void()>> called(static_cast<std::function<void()>*>(data));
    (*called)();
  };
  if (Cl().SetEventCallback(event, CL_COMPLETE, call, kept) != CL_SUCCESS) call(event, CL_COMPLETE, kept);
}

// The time of one command.
class EventTime final : public gpu::CommandTime {
 public:
  explicit EventTime(Handle<cl_event> event) : event_(std::move(event)) {}
  bool Ended() const override { return IsDone(event_); }
  double Nanoseconds() const override {
    uint64_t begin = 0, end = 0;
    return Read(&begin, &end) && end > begin ? static_cast<double>(end - begin) : 0;
  }
  bool Read(uint64_t* begin_ns, uint64_t* end_ns) const override {
    const auto read = [this](cl_profiling_info which, uint64_t* ns) {
      cl_ulong time = 0;
      if (Cl().GetEventProfilingInfo(event_.get(), which, sizeof(time), &time, nullptr) != CL_SUCCESS) return false;
      *ns = time;
      return true;
    };
    return read(CL_PROFILING_COMMAND_START, begin_ns) && read(CL_PROFILING_COMMAND_END, end_ns);
  }

 private:
  const Handle<cl_event> event_;
};

}  // namespace

void WaitForOne(const Handle<cl_event>& event) {
  const cl_event waited = event.get();
  if (event) (void)Cl().WaitForEvents(1, &waited);
}

bool IsDone(const Handle<cl_event>& event) { return !event || StateOf(event.get()) <= CL_COMPLETE; }

void QueueEvent::Wait() const { WaitForOne(Get()); }

Handle<cl_event> QueueEvent::Get(cl_context* context) const {
  std::lock_guard<std::mutex> lock(mutex_);
  if (context != nullptr) *context = context_;
  return Share(event_);
}

void QueueEvent::Set(Handle<cl_event> event, cl_context context) {
  std::lock_guard<std::mutex> lock(mutex_);
  event_ = std::move(event);
  context_ = context;
}

Status Queue::Create(const Hardware& hardware, cl_context context, Memory& memory, gpu::EventTimes* times,
                     std::unique_ptr<Queue>* queue) {
  cl_int error = CL_SUCCESS;
  Handle<cl_command_queue> made(Cl().CreateCommandQueue(context, hardware.id, CL_QUEUE_PROFILING_ENABLE, &error));
  XPU_RETURN_IF_CL_ERROR(error, "a queue on " + hardware.name);
  Handle<cl_mem> reports(Cl().CreateBuffer(context, CL_MEM_READ_WRITE, kReports * sizeof(uint32_t), nullptr, &error));
  XPU_RETURN_IF_CL_ERROR(error, "the reports of a queue on " + hardware.name);
  queue->reset(new Queue(context, memory, times, std::move(made), std::move(reports)));
  return OkStatus();
}

Queue::~Queue() {
  Wait();
  NotifyOfDestruction();
}

Handle<cl_event> Queue::Last() const {
  std::lock_guard<std::mutex> lock(mutex_);
  MarkLastLocked();
  if (unflushed_ != 0) FlushLocked();
  return Share(last_);
}

void Queue::MarkLastLocked() const {
  if (has_last_) return;
  Handle<cl_event> marker;
  const Status status = SubmitLocked(
      "a marker in a stream",
      [](cl_command_queue queue, cl_event* event) { return Cl().EnqueueMarkerWithWaitList(queue, 0, nullptr, event); },
      &marker);
  if (!status.ok()) Fail(status);
}

void Queue::FlushLocked() const {
  unflushed_ = 0;
  const cl_int error = Cl().Flush(queue_.get());
  if (error != CL_SUCCESS) Fail(ToStatus(error, "clFlush"));
}

void Queue::NoteFailureOfLast() const {
  std::lock_guard<std::mutex> lock(mutex_);
  const cl_int state = last_ ? StateOf(last_.get()) : CL_COMPLETE;
  if (state >= CL_COMPLETE) return;
  Fail(ToStatus(state, "a command on the device"));
  last_ = {};
}

Handle<cl_event> Queue::Mark() {
  std::lock_guard<std::mutex> lock(mutex_);
  has_last_ = false;
  MarkLastLocked();
  if (!has_last_) return {};
  FlushLocked();
  return Share(last_);
}

void Queue::BarrierLocked(cl_event event) {
  const Status status = SubmitLocked("waiting for another stream", [&](cl_command_queue queue, cl_event* barrier) {
    return Cl().EnqueueBarrierWithWaitList(queue, 1, &event, barrier);
  });
  if (!status.ok()) Fail(status);
}

void Queue::Record(Event& event) { static_cast<QueueEvent&>(event).Set(Last(), context_); }

void Queue::WaitForEvent(const Handle<cl_event>& event, cl_context context) {
  if (IsDone(event)) return;
  if (context == context_) {
    std::lock_guard<std::mutex> lock(mutex_);
    return BarrierLocked(event.get());
  }
  // Another device's, and the driver may be another one, too: the host passes it on.
  cl_int error = CL_SUCCESS;
  auto passed = std::make_shared<Handle<cl_event>>(Cl().CreateUserEvent(context_, &error));
  if (error != CL_SUCCESS) return Fail(ToStatus(error, "waiting for another device"));
  {
    std::lock_guard<std::mutex> lock(mutex_);
    BarrierLocked(passed->get());
  }
  WhenDone(event.get(), [passed] { Cl().SetUserEventStatus(passed->get(), CL_COMPLETE); });
}

void Queue::WaitFor(Event& event) {
  cl_context context = nullptr;
  const Handle<cl_event> recorded = static_cast<QueueEvent&>(event).Get(&context);
  WaitForEvent(recorded, context);
}

void Queue::WaitFor(Stream& other) {
  const Queue& queue = static_cast<Queue&>(other);
  if (&queue != this) WaitForEvent(queue.Last(), queue.context_);
}

void Queue::HostCallback(std::function<Status()> callback) {
  // Later commands wait for an event that the callback's end sets.
  cl_int error = CL_SUCCESS;
  auto ended = std::make_shared<Handle<cl_event>>(Cl().CreateUserEvent(context_, &error));
  if (error != CL_SUCCESS) Fail(ToStatus(error, "a callback on the host"));
  const auto shown = std::make_shared<std::function<Status()>>(trace().Shown(std::move(callback)));
  const auto run = [this, ended, shown] {
    callbacks_.Run([this, ended, shown] {
      Status status = (*shown)();
      *shown = nullptr;
      if (!status.ok()) Fail(std::move(status));
      if (*ended) Cl().SetUserEventStatus(ended->get(), CL_COMPLETE);
    });
  };
  Handle<cl_event> before;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    MarkLastLocked();
    before = Share(last_);
    // Before what waits for the callback: a driver may run all that there is before a flush returns.
    FlushLocked();
    if (*ended) BarrierLocked(ended->get());
  }
  if (IsDone(before)) {
    run();
  } else {
    WhenDone(before.get(), run);
  }
}

Status Queue::CopyHostToDevice(void* device_dst, const void* host_src, size_t size) {
  if (size == 0) return OkStatus();
  const gpu::TracedCommand traced(trace(), trace::Kind::kCopy, "copy from the host", size);
  MemorySlice to;
  XPU_RETURN_IF_ERROR(memory_.Locate(device_dst, size, &to));
  return Submit("a copy to the device", [&](cl_command_queue queue, cl_event* event) {
    return Cl().EnqueueWriteBuffer(queue, to.buffer, CL_FALSE, to.offset, size, host_src, 0, nullptr, event);
  });
}

Status Queue::CopyDeviceToHost(void* host_dst, const void* device_src, size_t size) {
  if (size == 0) return OkStatus();
  const gpu::TracedCommand traced(trace(), trace::Kind::kCopy, "copy to the host", size);
  MemorySlice from;
  XPU_RETURN_IF_ERROR(memory_.Locate(device_src, size, &from));
  return Submit("a copy to the host", [&](cl_command_queue queue, cl_event* event) {
    return Cl().EnqueueReadBuffer(queue, from.buffer, CL_FALSE, from.offset, size, host_dst, 0, nullptr, event);
  });
}

Status Queue::CopyDeviceToDevice(void* device_dst, const void* device_src, size_t size) {
  if (size == 0 || device_dst == device_src) return OkStatus();
  const gpu::TracedCommand traced(trace(), trace::Kind::kCopy, "copy on the device", size);
  Memory* const to_memory = Memory::Owner(device_dst);
  Memory* const from_memory = Memory::Owner(device_src);
  MemorySlice to, from;
  XPU_RETURN_IF_ERROR((to_memory == nullptr ? memory_ : *to_memory).Locate(device_dst, size, &to));
  XPU_RETURN_IF_ERROR((from_memory == nullptr ? memory_ : *from_memory).Locate(device_src, size, &from));
  if (to_memory != &memory_ || from_memory != &memory_) {
    return CopyAcross(*to_memory, device_dst, *from_memory, device_src, size);
  }
  return Submit("a copy on the device", [&](cl_command_queue queue, cl_event* event) {
    return Cl().EnqueueCopyBuffer(queue, from.buffer, to.buffer, from.offset, to.offset, size, 0, nullptr, event);
  });
}

// Their drivers may know nothing of one another: through the host, in this stream's order.
Status Queue::CopyAcross(Memory& to, void* device_dst, Memory& from, const void* device_src, size_t size) {
  HostCallback([&to, device_dst, &from, device_src, size]() -> Status {
    std::vector<char> piece(std::min(size, kPieceBytes));
    for (size_t done = 0; done < size; done += piece.size()) {
      const size_t bytes = std::min(piece.size(), size - done);
      XPU_RETURN_IF_ERROR(from.Read(piece.data(), static_cast<const char*>(device_src) + done, bytes));
      XPU_RETURN_IF_ERROR(to.Write(static_cast<char*>(device_dst) + done, piece.data(), bytes));
    }
    return OkStatus();
  });
  return OkStatus();
}

// With the low `word_size` bytes of `word`, 1 or 4, again and again.
Status Queue::Fill(const char* what, void* device_dst, uint32_t word, size_t word_size, size_t size) {
  if (size == 0) return OkStatus();
  const gpu::TracedCommand traced(trace(), trace::Kind::kFill, "fill", size);
  MemorySlice to;
  XPU_RETURN_IF_ERROR(memory_.Locate(device_dst, size, &to));
  // The longest pattern that fits: drivers write pattern by pattern.
  char pattern[16];
  size_t length = sizeof(pattern);
  while (length > word_size && (to.offset % length != 0 || size % length != 0)) length /= 2;
  XPU_REQUIRE(to.offset % length == 0,
              errors::InvalidArgument(what, " at ", device_dst, ", which is no multiple of ", length));
  for (size_t i = 0; i < length; ++i) pattern[i] = static_cast<char>(word >> 8 * (i % word_size));
  return Submit(what, [&](cl_command_queue queue, cl_event* event) {
    return Cl().EnqueueFillBuffer(queue, to.buffer, pattern, length, to.offset, size, 0, nullptr, event);
  });
}

Status Queue::Memset(void* device_dst, uint8_t value, size_t size) {
  return Fill("a fill of the device's memory", device_dst, value, 1, size);
}

Status Queue::MemsetU32(void* device_dst, uint32_t value, size_t size) {
  XPU_REQUIRE(size % 4 == 0, errors::InvalidArgument("memset32 of ", size, " bytes, which is no multiple of 4"));
  return Fill("a fill of the device's memory", device_dst, value, 4, size);
}

Status Queue::SetArguments(const gpu::Launch& launch) {
  const cl_kernel kernel = static_cast<Kernel*>(launch.kernel)->kernel.get();
  cl_uint count = 0;
  const auto set = [&](size_t size, const void* value) {
    const cl_uint number = count++;
    return ToStatus(Cl().SetKernelArg(kernel, number, size, value),
                    errors::Concat("argument ", number, " of a kernel"));
  };
  // Parameter MEMORY(name) is a buffer and a number of bytes.
  const auto set_slice = [&](const MemorySlice& slice) {
    const cl_ulong offset = slice.offset;
    XPU_RETURN_IF_ERROR(set(sizeof(slice.buffer), slice.buffer == nullptr ? nullptr : &slice.buffer));
    return set(sizeof(offset), &offset);
  };
  for (const gpu::Argument& argument : launch.arguments) {
    switch (argument.kind) {
      case gpu::Argument::kValue:
        XPU_RETURN_IF_ERROR(set(argument.size, &argument.value));
        break;
      case gpu::Argument::kMemory: {
        MemorySlice slice;
        if (argument.address != nullptr) XPU_RETURN_IF_ERROR(memory_.Locate(argument.address, 0, &slice));
        XPU_RETURN_IF_ERROR(set_slice(slice));
        break;
      }
      case gpu::Argument::kReport:
        XPU_RETURN_IF_ERROR(set_slice(SliceOf(argument.report)));
        break;
      case gpu::Argument::kTable: {
        const cl_mem table = static_cast<const BufferTable*>(argument.table)->buffer.get();
        XPU_RETURN_IF_ERROR(set(sizeof(table), &table));
        break;
      }
    }
  }
  return OkStatus();
}

Status Queue::Run(const gpu::Launch& launch, std::shared_ptr<const gpu::CommandTime>* time) {
  Kernel& kernel = *static_cast<Kernel*>(launch.kernel);
  std::lock_guard<std::mutex> lock(kernel.mutex);
  XPU_RETURN_IF_ERROR(SetArguments(launch));
  size_t global[3];
  for (int i = 0; i < 3; ++i) global[i] = launch.groups[i] * launch.local[i];
  const cl_uint axes = global[1] == 1 && global[2] == 1 ? 1 : 3;
  Handle<cl_event> kept;
  XPU_RETURN_IF_ERROR(Submit(
      "a kernel",
      [&](cl_command_queue queue, cl_event* event) {
        return Cl().EnqueueNDRangeKernel(queue, kernel.kernel.get(), axes, nullptr, global, launch.local, 0, nullptr,
                                         event);
      },
      time != nullptr ? &kept : nullptr));
  if (time != nullptr) *time = TimeOf(std::move(kept));
  return OkStatus();
}

std::shared_ptr<const gpu::CommandTime> Queue::TimeOf(Handle<cl_event> event) {
  return std::make_shared<EventTime>(std::move(event));
}

Status Queue::NewReport(uint32_t initial, size_t* report) {
  *report = next_report_++ % kReports;
  const MemorySlice slice = SliceOf(*report);
  return Submit("the report of a kernel", [&](cl_command_queue queue, cl_event* event) {
    return Cl().EnqueueFillBuffer(queue, slice.buffer, &initial, sizeof(initial), slice.offset, sizeof(initial), 0,
                                  nullptr, event);
  });
}

Status Queue::EnqueueReading(size_t report, uint32_t* number, Handle<cl_event>* read) {
  const MemorySlice slice = SliceOf(report);
  return Submit(
      "the report of a kernel",
      [&](cl_command_queue queue, cl_event* event) {
        return Cl().EnqueueReadBuffer(queue, slice.buffer, CL_FALSE, slice.offset, sizeof(*number), number, 0, nullptr,
                                      event);
      },
      read);
}

Status Queue::ReadReport(size_t report, uint32_t* number) {
  Handle<cl_event> read;
  XPU_RETURN_IF_ERROR(EnqueueReading(report, number, &read));
  XPU_RETURN_IF_CL_ERROR(Cl().Flush(queue_.get()), "clFlush");
  WaitForOne(read);
  return OkStatus();
}

Status Queue::JudgeReport(size_t report, std::function<Status(uint32_t number)> judge) {
  auto number = std::make_shared<uint32_t>(0);
  XPU_RETURN_IF_ERROR(EnqueueReading(report, number.get(), nullptr));
  HostCallback([number, judge = std::move(judge)] { return judge(*number); });
  return OkStatus();
}

void Queue::Wait() { WaitForOne(Last()); }

uint64_t QueueTimer::Nanoseconds() {
  if (!start_ || !stop_) return 0;
  WaitForOne(stop_);
  cl_ulong begin = 0, end = 0;
  for (const auto& [event, time] : {std::pair{start_.get(), &begin}, std::pair{stop_.get(), &end}}) {
    if (Cl().GetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof(*time), time, nullptr) != CL_SUCCESS) {
      return 0;
    }
  }
  return end > begin ? end - begin : 0;
}

}  // namespace xpu::opencl

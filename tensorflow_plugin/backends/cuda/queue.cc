#include "tensorflow_plugin/backends/cuda/queue.h"

#include <algorithm>
#include <limits>

#include "tensorflow_plugin/backends/cuda/compiler.h"
#include "tensorflow_plugin/backends/cuda/machine.h"
#include "tensorflow_plugin/backends/cuda/memory.h"
#include "tensorflow_plugin/primitives/small_vector.h"

namespace xpu::cuda {
namespace {

// The limits of a grid's second and third axis.
constexpr size_t kMostGroups = 65535;
constexpr int kUsualArguments = 32;

}  // namespace

Queue::Queue(Machine& machine, bool is_capturing)
    : gpu::Queue(is_capturing ? nullptr : &machine.event_times()),
      context_(machine.context()),
      memory_(machine.memory()),
      clock_(machine.clock()),
      is_capturing_(is_capturing),
      staging_(machine.context()) {}

Status Queue::Create(Machine& machine, int priority, std::unique_ptr<Queue>* queue, bool is_capturing) {
  std::unique_ptr<Queue> made(new Queue(machine, is_capturing));
  XPU_RETURN_IF_ERROR(made->Enter());
  // The driver's greatest priority has the lowest number; 0 is its usual one, and so it is the plugin's.
  int least = 0, greatest = 0;
  XPU_RETURN_IF_CUDA_ERROR(Cu().CtxGetStreamPriorityRange(&least, &greatest), "the range of streams' priorities");
  XPU_RETURN_IF_CUDA_ERROR(
      Cu().StreamCreateWithPriority(&made->stream_, kStreamNonBlocking, std::clamp(priority, greatest, least)),
      "creating a stream");
  made->reports_ = machine.memory().AllocateUnused(kReports * sizeof(uint32_t));
  XPU_REQUIRE(made->reports_ != nullptr, errors::ResourceExhausted("there is no device memory for a stream"));
  void* pinned = nullptr;
  XPU_RETURN_IF_CUDA_ERROR(Cu().MemHostAlloc(&pinned, kReports * sizeof(uint32_t), kHostPortable),
                           "pinned memory of a stream");
  made->seen_reports_ = static_cast<uint32_t*>(pinned);
  made->thread_ = std::make_unique<host_runtime::HostThread>();
  made->keeper_ = std::make_unique<host_runtime::HostThread>();
  *queue = std::move(made);
  return OkStatus();
}

Queue::~Queue() {
  if (stream_ != nullptr) Wait();
  thread_ = nullptr;
  keeper_ = nullptr;
  NotifyOfDestruction();
  if (stream_ != nullptr) (void)Cu().StreamDestroy(stream_);
  if (seen_reports_ != nullptr) (void)Cu().MemFreeHost(seen_reports_);
  memory_.Deallocate(reports_);
  for (const ScratchBlock& block : scratch_) memory_.Deallocate(block.address);
}

uint64_t Queue::NextNumber() {
  static std::atomic<uint64_t> next{0};
  return ++next;
}

Status Queue::Enter() const { return ToStatus(Cu().CtxSetCurrent(context_), "making a GPU's context current"); }

Status Queue::Scratch(size_t bytes, void** address) {
  if (lender_ != nullptr) return lender_->Scratch(bytes, address);
  std::lock_guard<std::mutex> lock(scratch_mutex_);
  if (scratch_.empty() || scratch_.back().bytes < bytes) {
    size_t size = kScratchBytes;
    while (size < bytes) size *= 2;
    void* const made = memory_.AllocateUnused(size);
    XPU_REQUIRE(made != nullptr, errors::ResourceExhausted("there are no ", size,
                                                           " bytes of device memory for a stream's scratch memory"));
    scratch_.push_back({made, size});
  }
  *address = scratch_.back().address;
  return OkStatus();
}

void Queue::Defer(std::function<Status()> command) {
  // The command would run later beside the graph, and so would all that come behind it.
  if (is_capturing_) return Fail(errors::Unimplemented("a command that needs the host is in no graph"));
  ++deferred_;
  thread_->Run([this, command = std::move(command)]() mutable {
    Status status = Enter();
    if (status.ok()) status = command();
    command = nullptr;  // what it holds is gone before the stream goes on
    FailUnlessOk(std::move(status));
    std::lock_guard<std::mutex> lock(mutex_);
    --deferred_;
    changed_.notify_all();
  });
}

void Queue::AwaitDeferred() const {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return deferred_ == 0; });
}

void Queue::HostCallback(std::function<Status()> callback) {
  std::lock_guard<std::mutex> lock(mutex_);
  // All commands so far are the driver's when the thread comes to this, and no later one is.
  Defer([this, shown = trace().Shown(std::move(callback))] {
    (void)Cu().StreamSynchronize(stream_);  // an error is the stream's (NoteFailure)
    JudgeReports();
    return shown();
  });
}

std::shared_ptr<EventPair> Queue::NewTime() {
  if (!gpu::TracedCommand::IsOpen(trace())) return nullptr;
  auto time = std::make_shared<EventPair>(context_, clock_.Reference());
  gpu::TracedCommand::Note(time);
  return time;
}

void Queue::KeepUntilRun(std::shared_ptr<const void> kept) {
  struct Kept {
    host_runtime::HostThread* thread;
    std::shared_ptr<const void> object;
  };
  // The driver's thread may not call the driver, which letting go may do.
  const auto let_go = [](void* data) {
    const std::unique_ptr<Kept> that(static_cast<Kept*>(data));
    that->thread->Run([object = std::move(that->object)]() mutable { object = nullptr; });
  };
  FailUnlessOk(Submit([this, let_go, kept = std::move(kept)] {
    auto* const data = new Kept{keeper_.get(), kept};
    const Result error = Cu().LaunchHostFunc(stream_, let_go, data);
    if (error != kSuccess) let_go(data);
    return ToStatus(error, "a callback on the host");
  }));
}

void Queue::NoteFailure() const {
  const Result error = Cu().StreamQuery(stream_);
  if (error == kSuccess || error == kNotReady || lost_.exchange(true)) return;
  Fail(ToStatus(error, "a command on the device"));
}

Status Queue::TakeStatus() {
  JudgeReports();
  NoteFailure();
  return failure_.Take();
}

Status Queue::PeekStatus() const {
  JudgeReports();
  NoteFailure();
  return failure_.Peek();
}

bool Queue::HasDeferred() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return deferred_ != 0;
}

bool Queue::Idle() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return deferred_ == 0 && Cu().StreamQuery(stream_) != kNotReady;
}

void Queue::Wait() {
  AwaitDeferred();
  if (Enter().ok()) (void)Cu().StreamSynchronize(stream_);
}

void Queue::RecordState(const std::shared_ptr<EventState>& state, uint64_t number) {
  FailUnlessOk(Submit([this, state, number] { return state->Record(number, stream_); }));
}

void Queue::WaitFor(Event& event) {
  const std::shared_ptr<EventState>& state = static_cast<QueueEvent&>(event).state();
  const uint64_t number = state->last();
  const auto command = [this, state, number] {
    state->AwaitRecord(number);
    return ToStatus(Cu().StreamWaitEvent(stream_, state->get(), 0), "waiting for an event");
  };
  if (state->IsRecorded(number)) return FailUnlessOk(Submit(command));
  std::lock_guard<std::mutex> lock(mutex_);
  Defer(command);
}

void Queue::WaitFor(Stream& other) {
  if (&other == this) return;
  Queue& queue = static_cast<Queue&>(other);
  QueueEvent event(queue.context_);
  queue.Record(event);
  WaitFor(event);
}

Status Queue::CopyHostToDevice(void* device_dst, const void* host_src, size_t size) {
  if (size == 0) return OkStatus();
  const gpu::TracedCommand traced(trace(), trace::Kind::kCopy, "copy from the host", size);
  return SubmitCommand(
      [=] {
        if (!IsPinned(host_src)) return staging_.ToDevice(device_dst, host_src, size, stream_);
        ++late_reads_;
        return ToStatus(Cu().MemcpyHtoDAsync(AddressOf(device_dst), host_src, size, stream_),
                        errors::Concat("a copy of ", size, " bytes to the device"));
      },
      /*reads_host=*/true);
}

Status Queue::CopyDeviceToHost(void* host_dst, const void* device_src, size_t size) {
  if (size == 0) return OkStatus();
  XPU_RETURN_IF_ERROR(Enter());
  const gpu::TracedCommand traced(trace(), trace::Kind::kCopy, "copy to the host", size);
  if (!IsPinned(host_dst)) {
    auto copy = Timed([=] { return staging_.ToHost(host_dst, device_src, size, stream_); }, NewTime());
    std::lock_guard<std::mutex> lock(mutex_);
    Defer(std::move(copy));
    return OkStatus();
  }
  return SubmitCommand([=] {
    return ToStatus(Cu().MemcpyDtoHAsync(host_dst, AddressOf(device_src), size, stream_),
                    errors::Concat("a copy of ", size, " bytes to the host"));
  });
}

Status Queue::Read(void* host_dst, const void* device_src, size_t size) {
  if (size == 0) return OkStatus();
  XPU_RETURN_IF_ERROR(Enter());
  AwaitDeferred();
  if (!IsPinned(host_dst)) {
    const gpu::TracedCommand traced(trace(), trace::Kind::kCopy, "copy to the host", size);
    auto copy = Timed([=] { return staging_.ToHost(host_dst, device_src, size, stream_); }, NewTime());
    std::unique_lock<std::mutex> lock(mutex_);
    if (deferred_ == 0) return copy();
  }
  XPU_RETURN_IF_ERROR(CopyDeviceToHost(host_dst, device_src, size));
  Wait();
  return OkStatus();
}

Status Queue::CopyDeviceToDevice(void* device_dst, const void* device_src, size_t size) {
  if (size == 0 || device_dst == device_src) return OkStatus();
  const gpu::TracedCommand traced(trace(), trace::Kind::kCopy, "copy on the device", size);
  return SubmitCommand([=] {
    return ToStatus(Cu().MemcpyAsync(AddressOf(device_dst), AddressOf(device_src), size, stream_),
                    errors::Concat("a copy of ", size, " bytes on the device"));
  });
}

Status Queue::Memset(void* device_dst, uint8_t value, size_t size) {
  if (size == 0) return OkStatus();
  const gpu::TracedCommand traced(trace(), trace::Kind::kFill, "fill", size);
  return SubmitCommand([=] {
    return ToStatus(Cu().MemsetD8Async(AddressOf(device_dst), value, size, stream_), "a fill of the device's memory");
  });
}

Status Queue::MemsetU32(void* device_dst, uint32_t value, size_t size) {
  XPU_REQUIRE(size % 4 == 0, errors::InvalidArgument("memset32 of ", size, " bytes, which is no multiple of 4"));
  if (size == 0) return OkStatus();
  const gpu::TracedCommand traced(trace(), trace::Kind::kFill, "fill", size);
  return SubmitCommand([=] {
    return ToStatus(Cu().MemsetD32Async(AddressOf(device_dst), value, size / 4, stream_),
                    "a fill of the device's memory");
  });
}

Status Queue::Run(const gpu::Launch& launch, std::shared_ptr<const gpu::CommandTime>* time) {
  XPU_REQUIRE(launch.groups[1] <= kMostGroups && launch.groups[2] <= kMostGroups &&
                  launch.groups[0] <= static_cast<size_t>(std::numeric_limits<int32_t>::max()),
              errors::Unimplemented("a kernel of ", launch.groups[0], " x ", launch.groups[1], " x ", launch.groups[2],
                                    " groups: a grid has at most 2^31 - 1 x 65535 x 65535"));
  XPU_RETURN_IF_ERROR(Enter());
  std::shared_ptr<EventPair> timed = NewTime();
  if (time != nullptr) {
    if (timed == nullptr) timed = std::make_shared<EventPair>(context_, nullptr);
    *time = timed;
  }
  std::lock_guard<std::mutex> lock(mutex_);
  if (deferred_ == 0) return Timed([&] { return RunNow(launch); }, std::move(timed))();
  Defer(Timed([this, launch] { return RunNow(launch); }, std::move(timed)));
  return OkStatus();
}

Status Queue::RunNow(const gpu::Launch& launch) {
  // The driver reads each argument's value at an address: of a pointer, the pointer. A null ends them, for tools.
  const int count = static_cast<int>(launch.arguments.size());
  SmallVector<DeviceAddress, kUsualArguments> pointers;
  SmallVector<void*, kUsualArguments> arguments;
  pointers.resize(count);
  arguments.resize(count + 1);
  for (int i = 0; i < count; ++i) {
    const gpu::Argument& argument = launch.arguments[static_cast<size_t>(i)];
    arguments[i] = &pointers[i];
    switch (argument.kind) {
      case gpu::Argument::kValue:
        arguments[i] = const_cast<uint64_t*>(&argument.value);
        break;
      case gpu::Argument::kMemory:
        pointers[i] = AddressOf(argument.address);
        break;
      case gpu::Argument::kReport:
        pointers[i] = AddressOf(static_cast<uint32_t*>(reports_) + argument.report);
        break;
      case gpu::Argument::kTable:
        pointers[i] = static_cast<const DeviceTable*>(argument.table)->address;
        break;
    }
  }
  const auto group = [&](int axis) { return static_cast<unsigned>(launch.groups[axis]); };
  const auto local = [&](int axis) { return static_cast<unsigned>(launch.local[axis]); };
  return ToStatus(
      Cu().LaunchKernel(static_cast<const Kernel*>(launch.kernel)->function, group(0), group(1), group(2), local(0),
                        local(1), local(2), /*shared_bytes=*/0, stream_, arguments.begin(), nullptr),
      "a kernel");
}

Status Queue::NewReport(uint32_t initial, size_t* report) {
  *report = next_report_++ % kReports;
  return MemsetU32(static_cast<uint32_t*>(reports_) + *report, initial, sizeof(initial));
}

Status Queue::CopyReport(size_t report) {
  return CopyDeviceToHost(seen_reports_ + report, static_cast<uint32_t*>(reports_) + report, sizeof(uint32_t));
}

Status Queue::ReadReport(size_t report, uint32_t* number) {
  XPU_RETURN_IF_ERROR(CopyReport(report));
  AwaitDeferred();
  XPU_RETURN_IF_CUDA_ERROR(Cu().StreamSynchronize(stream_), "a command on the device");
  *number = seen_reports_[report];
  return OkStatus();
}

thread_local ReportBatch* ReportBatch::current_ = nullptr;

bool Queue::ReadReportLater(size_t report, std::function<void(uint32_t number)> seen) {
  ReportBatch* const batch = ReportBatch::current_;
  if (batch == nullptr || &batch->queue_ != this) return false;
  if (batch->status_.ok()) batch->status_ = CopyReport(report);
  batch->reports_.emplace_back(report, std::move(seen));
  return true;
}

Status ReportBatch::Read() {
  XPU_RETURN_IF_ERROR(status_);
  queue_.AwaitDeferred();
  XPU_RETURN_IF_CUDA_ERROR(Cu().StreamSynchronize(queue_.stream()), "a command on the device");
  for (const auto& [report, seen] : reports_) seen(queue_.seen_reports_[report]);
  return OkStatus();
}

Status Queue::JudgeReport(size_t report, std::function<Status(uint32_t number)> judge) {
  if (is_capturing_) return OkStatus();  // a command of a graph cannot fail (NeedsHost): nobody reads its report
  bool is_callback_due = false;
  {
    std::lock_guard<std::mutex> lock(judging_);
    XPU_RETURN_IF_ERROR(CopyReport(report));
    if (reports_copied_ == nullptr) reports_copied_ = std::make_shared<EventState>(context_, kEventDisableTiming);
    const uint64_t copied = reports_copied_->Request();
    RecordState(reports_copied_, copied);
    unjudged_.push_back({copied, trace().Named([number = seen_reports_ + report, judge = std::move(judge)] {
                           return judge(*number);
                         })});
    has_unjudged_ = true;
    // A report's place is another's after kReports of them.
    is_callback_due = ++reports_since_callback_ >= kReports / 2;
    if (is_callback_due) reports_since_callback_ = 0;
  }
  if (is_callback_due) HostCallback([] { return OkStatus(); });
  return OkStatus();
}

void Queue::JudgeReports() const {
  if (!has_unjudged_) return;
  std::lock_guard<std::mutex> lock(judging_);
  if (reports_copied_ == nullptr) return;
  const uint64_t copied = reports_copied_->recorded();
  if (Cu().EventQuery(reports_copied_->get()) != kSuccess) return;  // a lost device has copied nothing
  for (; !unjudged_.empty() && unjudged_.front().copied <= copied; unjudged_.pop_front()) {
    FailUnlessOk(unjudged_.front().judge());
  }
  has_unjudged_ = !unjudged_.empty();
}

}  // namespace xpu::cuda

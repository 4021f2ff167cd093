// A backend on one page: docs/new-backend.md. Its accelerator is made up: memory that the host cannot reach, and one
// queue with a thread. DeviceMemory, CommandQueue and plain::Run stand for a driver and a vendor's library.
#include "tensorflow_plugin/backends/example/backend.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <map>

#include "tensorflow_plugin/backends/host_runtime/clock.h"
#include "tensorflow_plugin/backends/host_runtime/command_queue.h"
#include "tensorflow_plugin/backends/host_runtime/device_memory.h"
#include "tensorflow_plugin/backends/plain/loops.h"

namespace xpu::example {
namespace {

using host_runtime::CommandQueue;
using host_runtime::DeviceMemory;

// ---- Streams, events and timers. The queue numbers its commands, so a number says how far the device is.

struct ExampleEvent final : Event {
  explicit ExampleEvent(const CommandQueue& queue) : queue(queue) {}
  bool Done() const override { return queue.Reached(number); }
  void Wait() const override { queue.Wait(number); }
  const CommandQueue& queue;
  std::atomic<CommandQueue::Ticket> number{0};  // of the last command before the record
};

using Time = std::shared_ptr<std::atomic<int64_t>>;  // the timer may be gone when its command runs

// The device has one queue, and every stream is that queue.
class ExampleStream final : public Stream {
 public:
  ExampleStream(CommandQueue& queue, const DeviceMemory& memory) : queue_(queue), memory_(memory) {}
  ~ExampleStream() override { Wait(); }
  // Commands that cannot fail.
  Status Add(std::function<void()> command) {
    queue_.Enqueue([command = std::move(command)](const host_runtime::ThreadTeam&) {
      command();
      return OkStatus();
    });
    return OkStatus();
  }
  void Record(Event& event) override { static_cast<ExampleEvent&>(event).number = queue_.submitted(); }
  // Nothing to do in one queue: later commands run after all that it has.
  void WaitFor(Event&) override {}
  void WaitFor(Stream&) override {}
  // The queue keeps the failure, and destroys the callback before it goes on.
  void HostCallback(std::function<Status()> callback) override {
    queue_.Enqueue([callback = std::move(callback)](const host_runtime::ThreadTeam&) { return callback(); });
  }
  // Translate leaves the host's addresses alone.
  Status CopyHostToDevice(void* to, const void* from, size_t n) override { return CopyDeviceToDevice(to, from, n); }
  Status CopyDeviceToHost(void* to, const void* from, size_t n) override { return CopyDeviceToDevice(to, from, n); }
  Status CopyDeviceToDevice(void* to, const void* from, size_t n) override {
    return Add([to = static_cast<char*>(memory_.Translate(to)),
                from = static_cast<const char*>(memory_.Translate(from)), n] { std::copy_n(from, n, to); });
  }
  Status Memset(void* to, uint8_t value, size_t n) override {
    return Add([to = static_cast<uint8_t*>(memory_.Translate(to)), value, n] { std::fill_n(to, n, value); });
  }
  Status MemsetU32(void* to, uint32_t value, size_t n) override {
    return Add([to = static_cast<uint32_t*>(memory_.Translate(to)), value, n] { std::fill_n(to, n / 4, value); });
  }
  void Stamp(const Time& time) {
    (void)Add([time] { *time = host_runtime::NowNs(); });
  }
  bool Idle() const override { return queue_.Idle(); }
  void Wait() override { queue_.Wait(queue_.submitted()); }
  Status TakeStatus() override { return queue_.TakeStatus(); }
  Status PeekStatus() const override { return queue_.PeekStatus(); }

 private:
  CommandQueue& queue_;
  const DeviceMemory& memory_;
};

class ExampleTimer final : public Timer {
 public:
  explicit ExampleTimer(const CommandQueue& queue) : stopped_(queue) {}
  void Start(Stream& stream) override { static_cast<ExampleStream&>(stream).Stamp(start_); }
  void Stop(Stream& stream) override {
    static_cast<ExampleStream&>(stream).Stamp(stop_);
    stream.Record(stopped_);
  }
  uint64_t Nanoseconds() override {
    stopped_.Wait();
    return *start_ > 0 && *stop_ > *start_ ? *stop_ - *start_ : 0;
  }

 private:
  ExampleEvent stopped_;
  const Time start_ = std::make_shared<std::atomic<int64_t>>(0), stop_ = std::make_shared<std::atomic<int64_t>>(0);
};

// ---- Primitives

// The device's function for an instruction; null if it has none.
using Function = float (*)(float a, float b);
Function FunctionOf(Opcode op) {
  static const auto& functions = *new std::map<Opcode, Function>{
      {Opcode::kExp, [](float a, float) { return std::exp(a); }},
      {Opcode::kAdd, [](float a, float b) { return a + b; }},
      {Opcode::kSub, [](float a, float b) { return a - b; }},
      {Opcode::kMul, [](float a, float b) { return a * b; }},
      {Opcode::kMaximum, [](float a, float b) { return a > b || std::isnan(a) ? a : b; }},
  };
  return functions.count(op) != 0 ? functions.at(op) : nullptr;
}

struct ExampleCapabilities final : Capabilities {
  using Capabilities::Supports;  // denies the other primitives
  bool Supports(const ElementwiseDesc& desc) const override {
    bool all = true;
    for (int i = 0; i < desc.program->num_registers(); ++i) all &= desc.program->type(i) == DType::kFloat;
    for (const Instr& instr : desc.program->instrs()) all &= FunctionOf(instr.op) != nullptr;
    return all;
  }
  bool Supports(const CopyStridedDesc&) const override { return true; }
  bool Supports(const MatMulDesc& d) const override { return d.type == DType::kFloat && d.epilogue.program == nullptr; }
} const kCapabilities;

// Where element i of `shape`, counted row by row, lies by these strides.
int64_t OffsetOf(int64_t i, const Dims& shape, const Dims& strides) {
  int64_t offset = 0;
  for (int d = shape.rank() - 1; d >= 0; i /= shape[d--]) offset += i % shape[d] * strides[d];
  return offset;
}

void Run(const ElementwiseDesc& desc, const Args& args) {
  const Program& p = *desc.program;
  for (int64_t i = 0; i < desc.shape.num_elements(); ++i) {
    float values[Program::kMaxRegisters], *next = values;
    for (int j = 0; j < p.num_inputs(); ++j) {
      *next++ = static_cast<const float*>(args.in[j])[OffsetOf(i, desc.shape, desc.in_strides[j])];
    }
    for (const Constant& constant : p.constants()) *next++ = static_cast<float>(constant.re);
    for (const Instr& instr : p.instrs()) *next++ = FunctionOf(instr.op)(values[instr.a], values[instr.b]);
    for (int j = 0; j < p.num_outputs(); ++j) static_cast<float*>(args.out[j])[i] = values[p.outputs()[j]];
  }
}

void Run(const CopyStridedDesc& desc, const Args& args) {
  const int64_t size = static_cast<int64_t>(desc.element_size);
  for (int64_t i = 0; i < desc.shape.num_elements(); ++i) {
    const int64_t to = size * (desc.dst_offset + OffsetOf(i, desc.shape, desc.dst_strides));
    const int64_t from = size * (desc.src_offset + OffsetOf(i, desc.shape, desc.src_strides));
    std::copy_n(static_cast<const char*>(args.in[0]) + from, desc.element_size, static_cast<char*>(args.out[0]) + to);
  }
}

using plain::Run;  // of MatMulDesc

// ---- The device and the backend

class ExampleDevice final : public Device {
 public:
  ExampleDevice(DeviceInfo i, std::unique_ptr<DeviceMemory> m) : info_(std::move(i)), memory_(std::move(m)) {}
  ~ExampleDevice() override { queue_->Close(); }
  const DeviceInfo& info() const override { return info_; }
  const Capabilities& capabilities() const override { return kCapabilities; }

  void* Allocate(size_t size) override { return memory_->Allocate(size); }
  void Deallocate(void* address) override {
    Synchronize();  // commands may still use it
    memory_->Deallocate(address);
  }
  void* AllocateHost(size_t size) override { return std::aligned_alloc(256, (size + 255) / 256 * 256); }
  void DeallocateHost(void* address) override { std::free(address); }
  AllocatorStats Stats() const override { return memory_->Stats(); }
  void ResetStats() override { memory_->ResetStats(); }
  void MemoryUsage(int64_t* free, int64_t* total) const override { memory_->Usage(free, total); }
  std::unique_ptr<Stream> CreateStream(int) override { return std::make_unique<ExampleStream>(*queue_, *memory_); }
  std::unique_ptr<Event> CreateEvent() override { return std::make_unique<ExampleEvent>(*queue_); }
  std::unique_ptr<Timer> CreateTimer() override { return std::make_unique<ExampleTimer>(*queue_); }
  void Synchronize() override { queue_->Wait(queue_->submitted()); }
  using Device::Enqueue;  // fails, for the other primitives
#define XPU_ENQUEUE(name) \
  Status Enqueue(Stream& s, const name##Desc& d, const Args& a, const Footprint& f) override { return Run(s, d, a, f); }
  XPU_ENQUEUE(Elementwise)
  XPU_ENQUEUE(CopyStrided)
  XPU_ENQUEUE(MatMul)
#undef XPU_ENQUEUE

 private:
  // The descriptor is copied: the caller's may be gone when the command runs.
  template <typename Desc>
  Status Run(Stream& stream, const Desc& desc, const Args& args, const Footprint& touched) {
    Args at{};
    for (int i = 0; i < touched.num_in; ++i) at.in[i] = memory_->Translate(args.in[i]);
    for (int i = 0; i < touched.num_out; ++i) at.out[i] = memory_->Translate(args.out[i]);
    (void)static_cast<ExampleStream&>(stream).Add([desc, at] { (void)example::Run(desc, at); });
    if (args.status != nullptr) stream.Wait();  // no command of these fails on its data
    return OkStatus();
  }

  const DeviceInfo info_;
  const std::unique_ptr<DeviceMemory> memory_;
  const std::shared_ptr<CommandQueue> queue_ = std::make_shared<CommandQueue>(CommandQueue::Options());
};

class ExampleBackend final : public Backend {
 public:
  const char* subdevice_type() const override { return "XPU_EXAMPLE"; }
  const Capabilities& capabilities() const override { return kCapabilities; }
  int DeviceCount(const BackendOptions&) const override { return 1; }
  Status Describe(int ordinal, const BackendOptions& options, DeviceInfo* info) const override {
    XPU_REQUIRE(ordinal == 0, errors::InvalidArgument("XPU_EXAMPLE has one device, and none of ordinal ", ordinal));
    info->hardware_name = info->vendor = "example";
    info->memory_bytes = options.memory_limit != 0 ? options.memory_limit : int64_t{1} << 30;
    return OkStatus();
  }
  Status CreateDevice(int ordinal, const BackendOptions& options, std::unique_ptr<Device>* device) const override {
    DeviceInfo info;
    std::unique_ptr<DeviceMemory> memory;
    XPU_RETURN_IF_ERROR(Describe(ordinal, options, &info));
    XPU_RETURN_IF_ERROR(DeviceMemory::Create({info.memory_bytes, /*isolate=*/true}, &memory));
    *device = std::make_unique<ExampleDevice>(std::move(info), std::move(memory));
    return OkStatus();
  }
  bool HostCanAddress(const void* address, const BackendOptions&) const override {
    return DeviceMemory::TranslateAny(const_cast<void*>(address)) == address;
  }
};

}  // namespace

// Never destroyed: the queue may be at work when the process ends.
const Backend& TheBackend() {
  static const Backend& backend = *new ExampleBackend;
  return backend;
}

}  // namespace xpu::example

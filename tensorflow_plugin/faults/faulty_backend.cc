#include "tensorflow_plugin/faults/faulty_backend.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <utility>

#include "tensorflow_plugin/faults/outputs.h"
#include "tensorflow_plugin/primitives/device_name.h"
#include "tensorflow_plugin/trace/trace_events.h"

namespace xpu {
namespace {

// The fate of a call.
struct FaultDecision {
  Status failure;
  std::chrono::microseconds delay{0};
  FaultRule::Result result = FaultRule::kRight;
};

// The rules for one device, and its counts.
class Judge {
 public:
  static constexpr int kNumPrimitives = 0
#define XPU_ONE(name) +1
      XPU_PRIMITIVES(XPU_ONE)
#undef XPU_ONE
      ;

  Judge(const std::vector<FaultRule>& rules, int ordinal) : ordinal_(ordinal) {
    for (const FaultRule& rule : rules) {
      if (rule.device == -1 || rule.device == ordinal) rules_[rule.call].push_back(rule);
    }
  }

  // `primitive`: of a command that is no fill.
  FaultDecision Next(FaultRule::Call call, int primitive = -1) {
    const uint64_t number = 1 + counts_[call].fetch_add(1, std::memory_order_relaxed);
    const uint64_t own_number =
        primitive < 0 ? 0 : 1 + primitive_counts_[primitive].fetch_add(1, std::memory_order_relaxed);
    FaultDecision verdict;
    for (const FaultRule& rule : rules_[call]) {
      if (rule.primitive >= 0 && rule.primitive != primitive) continue;
      const uint64_t n = rule.primitive >= 0 ? own_number : number;
      if (n < rule.first || n > rule.last) continue;
      verdict.delay += rule.delay;
      if (rule.result != FaultRule::kRight) verdict.result = rule.result;
      if (rule.fail) {
        verdict.failure = errors::Internal("TF_XPU_FAULT asks for this failure (", rule.text, "; it was number ", n,
                                           " on ", DeviceName(ordinal_), ")");
      }
    }
    return verdict;
  }

 private:
  const int ordinal_;
  std::vector<FaultRule> rules_[FaultRule::kNumCalls];
  std::atomic<uint64_t> counts_[FaultRule::kNumCalls] = {};
  std::atomic<uint64_t> primitive_counts_[kNumPrimitives] = {};
};

// The capabilities of `inner`, and the scratch memory that the rules ask for.
class FaultyCapabilities final : public ForwardedCapabilities {
 public:
  FaultyCapabilities(const Capabilities& inner, const std::vector<FaultRule>& rules, int ordinal)
      : ForwardedCapabilities(inner) {
    for (const FaultRule& rule : rules) {
      if (rule.device != -1 && rule.device != ordinal) continue;
      for (int i = 0; i < Judge::kNumPrimitives; ++i) {
        if (rule.primitive < 0 || rule.primitive == i) bytes_[i] = std::max(bytes_[i], rule.workspace);
      }
    }
  }

#define XPU_WORKSPACE(name)                                                                      \
  int64_t WorkspaceBytes(const name##Desc& desc) const override {                                \
    return std::max(inner().WorkspaceBytes(desc), bytes_[static_cast<int>(Primitive::k##name)]); \
  }
  XPU_PRIMITIVES(XPU_WORKSPACE)
#undef XPU_WORKSPACE

  // The bytes that the rules ask for a primitive.
  int64_t asked(Primitive primitive) const { return bytes_[static_cast<int>(primitive)]; }

 private:
  int64_t bytes_[Judge::kNumPrimitives] = {};
};

class FaultyStream final : public Stream {
 public:
  FaultyStream(std::unique_ptr<Stream> inner, Judge& judge) : inner_(std::move(inner)), judge_(judge) {}
  static Stream& Inner(Stream& stream) { return *static_cast<FaultyStream&>(stream).inner_; }

  void Record(Event& event) override { inner_->Record(event); }
  void WaitFor(Event& event) override { inner_->WaitFor(event); }
  void WaitFor(Stream& other) override { inner_->WaitFor(Inner(other)); }
  void HostCallback(std::function<Status()> callback) override { inner_->HostCallback(std::move(callback)); }

  Status CopyHostToDevice(void* device_dst, const void* host_src, size_t size) override {
    XPU_RETURN_IF_ERROR(JudgeCopy());
    return inner_->CopyHostToDevice(device_dst, host_src, size);
  }
  Status CopyDeviceToHost(void* host_dst, const void* device_src, size_t size) override {
    XPU_RETURN_IF_ERROR(JudgeCopy());
    return inner_->CopyDeviceToHost(host_dst, device_src, size);
  }
  Status CopyDeviceToDevice(void* device_dst, const void* device_src, size_t size) override {
    XPU_RETURN_IF_ERROR(JudgeCopy());
    return inner_->CopyDeviceToDevice(device_dst, device_src, size);
  }
  Status Memset(void* device_dst, uint8_t value, size_t size) override {
    return Fill(device_dst, size, [&] { return inner_->Memset(device_dst, value, size); });
  }
  Status MemsetU32(void* device_dst, uint32_t value, size_t size) override {
    return Fill(device_dst, size, [&] { return inner_->MemsetU32(device_dst, value, size); });
  }

  bool Idle() const override { return inner_->Idle(); }
  void Wait() override { inner_->Wait(); }
  Status TakeStatus() override { return inner_->TakeStatus(); }
  Status PeekStatus() const override { return inner_->PeekStatus(); }

  // `launch` enqueues a command that writes `outputs()` at `out`; `result` is Args::status.
  template <typename F, typename G>
  Status Command(int primitive, Status* result, void* const* out, G&& outputs, F&& launch) {
    FaultDecision verdict = judge_.Next(FaultRule::kCommand, primitive);
    Delay(verdict);
    if (verdict.failure.ok()) {
      if (verdict.result == FaultRule::kRight) return launch();
      return LaunchWrong(verdict.result, result, out, outputs(), launch);
    }
    inner_->HostCallback([failure = std::move(verdict.failure), result]() -> Status {
      if (result == nullptr) return failure;
      *result = failure;
      return OkStatus();
    });
    if (result != nullptr) inner_->Wait();
    return OkStatus();
  }

  // Enqueues a command, by `launch`, whose scratch memory is overwritten before and after it runs.
  template <typename F>
  Status WithFilled(void* workspace, int64_t bytes, F&& launch) {
    if (bytes == 0) return launch();
    XPU_REQUIRE(reinterpret_cast<uintptr_t>(workspace) % kAlignment == 0,
                errors::Internal("the workspace of a command begins at ", workspace, ", no multiple of ", kAlignment));
    XPU_RETURN_IF_ERROR(inner_->Memset(workspace, kFilling, bytes));
    XPU_RETURN_IF_ERROR(launch());
    return inner_->Memset(workspace, kFilling, bytes);
  }

 private:
  static constexpr uint8_t kFilling = 0xA5;
  static constexpr uintptr_t kAlignment = 256;  // as Device::Allocate aligns

  template <typename F>
  Status Fill(void* dst, size_t size, F&& fill) {
    return Command(-1, nullptr, &dst, [=] { return std::vector<Output>{OutputOf(size)}; }, fill);
  }

  template <typename F>
  Status LaunchWrong(FaultRule::Result kind, Status* result, void* const* out, const std::vector<Output>& outputs,
                     F&& launch) {
    if (kind == FaultRule::kStale) {
      if (result != nullptr) *result = OkStatus();
      return OkStatus();
    }
    // Bytes of the outputs on the host, which the last of the callbacks keeps until they are no longer needed.
    const auto bytes = std::make_shared<std::vector<std::vector<char>>>(outputs.size());
    const auto at = [&](size_t i, int64_t offset) { return static_cast<char*>(out[i]) + offset; };
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Output& o = outputs[i];
      if (o.elements == 0 || out[i] == nullptr || kind != FaultRule::kLast) continue;
      (*bytes)[i].resize(o.element_size);
      XPU_RETURN_IF_ERROR(
          inner_->CopyDeviceToHost((*bytes)[i].data(), at(i, o.offset(o.elements - 1)), o.element_size));
    }
    XPU_RETURN_IF_ERROR(launch());
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Output& o = outputs[i];
      if (o.elements == 0 || out[i] == nullptr) continue;
      if (kind == FaultRule::kLast) {
        XPU_RETURN_IF_ERROR(
            inner_->CopyHostToDevice(at(i, o.offset(o.elements - 1)), (*bytes)[i].data(), o.element_size));
      } else if (kind == FaultRule::kZeros && o.offsets.empty()) {
        XPU_RETURN_IF_ERROR(inner_->Memset(at(i, o.begin), 0, o.end - o.begin));
      } else if (kind == FaultRule::kZeros) {
        for (int64_t k = 0; k < o.elements; ++k) {
          XPU_RETURN_IF_ERROR(inner_->Memset(at(i, o.offset(k)), 0, o.element_size));
        }
      } else {
        const int64_t size = o.end - o.begin;
        (*bytes)[i].resize(size);
        char* const host = (*bytes)[i].data();
        XPU_RETURN_IF_ERROR(inner_->CopyDeviceToHost(host, at(i, o.begin), size));
        inner_->HostCallback([kind, o, host, bytes] {
          Alter(kind, o, host);
          return OkStatus();
        });
        XPU_RETURN_IF_ERROR(inner_->CopyHostToDevice(at(i, o.begin), host, size));
      }
    }
    inner_->HostCallback([bytes] { return OkStatus(); });
    return OkStatus();
  }

  Status JudgeCopy() {
    const FaultDecision verdict = judge_.Next(FaultRule::kCopy);
    Delay(verdict);
    return verdict.failure;
  }

  void Delay(const FaultDecision& verdict) {
    if (verdict.delay.count() == 0) return;
    inner_->HostCallback([delay = verdict.delay] {
      std::this_thread::sleep_for(delay);
      return OkStatus();
    });
  }

  const std::unique_ptr<Stream> inner_;
  Judge& judge_;
};

class FaultyTimer final : public Timer {
 public:
  explicit FaultyTimer(std::unique_ptr<Timer> inner) : inner_(std::move(inner)) {}
  void Start(Stream& stream) override { inner_->Start(FaultyStream::Inner(stream)); }
  void Stop(Stream& stream) override { inner_->Stop(FaultyStream::Inner(stream)); }
  uint64_t Nanoseconds() override { return inner_->Nanoseconds(); }

 private:
  const std::unique_ptr<Timer> inner_;
};

// A list whose commands are enqueued one by one, each as one of its own op.
class OfOps final : public SequentialExecutable {
 public:
  using SequentialExecutable::SequentialExecutable;

 private:
  Status Enqueue(Stream& stream, size_t i, char* const* addresses, Status* on_data) const override {
    const trace::ListOps::Ops ops = trace::ListOps::Current();
    if (ops == nullptr) return SequentialExecutable::Enqueue(stream, i, addresses, on_data);
    const trace::ListOps::Names& names = (*ops)[static_cast<size_t>(list().commands[i].origin)];
    const trace::ScopedOp op(names.name, names.type);
    return SequentialExecutable::Enqueue(stream, i, addresses, on_data);
  }
};

class FaultyDevice final : public Device {
 public:
  FaultyDevice(std::unique_ptr<Device> inner, const std::vector<FaultRule>& rules, int ordinal)
      : inner_(std::move(inner)), judge_(rules, ordinal), capabilities_(inner_->capabilities(), rules, ordinal) {}

  const DeviceInfo& info() const override { return inner_->info(); }
  void* Allocate(size_t size) override {
    const FaultDecision verdict = judge_.Next(FaultRule::kAllocation);
    std::this_thread::sleep_for(verdict.delay);
    return verdict.failure.ok() ? inner_->Allocate(size) : nullptr;
  }
  void Deallocate(void* address) override { inner_->Deallocate(address); }
  void* AllocateHost(size_t size) override { return inner_->AllocateHost(size); }
  void DeallocateHost(void* address) override { inner_->DeallocateHost(address); }
  AllocatorStats Stats() const override { return inner_->Stats(); }
  void ResetStats() override { inner_->ResetStats(); }
  void MemoryUsage(int64_t* free_bytes, int64_t* total_bytes) const override {
    inner_->MemoryUsage(free_bytes, total_bytes);
  }
  std::unique_ptr<Stream> CreateStream(int priority) override {
    return std::make_unique<FaultyStream>(inner_->CreateStream(priority), judge_);
  }
  std::unique_ptr<Event> CreateEvent() override { return inner_->CreateEvent(); }
  std::unique_ptr<Timer> CreateTimer() override { return std::make_unique<FaultyTimer>(inner_->CreateTimer()); }
  void Synchronize() override { inner_->Synchronize(); }
  bool SurvivesFork() const override { return inner_->SurvivesFork(); }
  const Capabilities& capabilities() const override { return capabilities_; }
  std::unique_ptr<Executable> Prepare(std::shared_ptr<const CommandList> list, const MemoryPlan&) override {
    return std::make_unique<OfOps>(*this, std::move(list));
  }

#define XPU_ENQUEUE(name)                                                                                         \
  Status Enqueue(Stream& stream, const name##Desc& desc, const Args& args, const Footprint& footprint) override { \
    return static_cast<FaultyStream&>(stream).Command(                                                            \
        static_cast<int>(Primitive::k##name), args.status, args.out, [&] { return OutputsOf(footprint, desc); },  \
        [&] {                                                                                                     \
          return static_cast<FaultyStream&>(stream).WithFilled(                                                   \
              args.workspace, capabilities_.asked(Primitive::k##name),                                            \
              [&] { return inner_->Enqueue(FaultyStream::Inner(stream), desc, args, footprint); });               \
        });                                                                                                       \
  }
  XPU_PRIMITIVES(XPU_ENQUEUE)
#undef XPU_ENQUEUE

 private:
  const std::unique_ptr<Device> inner_;
  Judge judge_;
  const FaultyCapabilities capabilities_;
};

}  // namespace

Status FaultyBackend::CreateDevice(int ordinal, const BackendOptions& options, std::unique_ptr<Device>* device) const {
  std::unique_ptr<Device> inner;
  XPU_RETURN_IF_ERROR(inner_.CreateDevice(ordinal, options, &inner));
  *device = std::make_unique<FaultyDevice>(std::move(inner), rules_, ordinal);
  return OkStatus();
}

std::unique_ptr<Device> WithWrongResults(std::unique_ptr<Device> inner, const std::vector<FaultRule>& rules) {
  std::vector<FaultRule> chosen;
  for (const FaultRule& rule : rules) {
    if ((rule.result != FaultRule::kRight || rule.workspace > 0) && rule.device <= 0) chosen.push_back(rule);
  }
  if (chosen.empty()) return inner;
  return std::make_unique<FaultyDevice>(std::move(inner), chosen, 0);
}

}  // namespace xpu

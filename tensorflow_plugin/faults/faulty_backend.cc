#include "tensorflow_plugin/faults/faulty_backend.h"

#include <atomic>
#include <string>
#include <thread>
#include <utility>

namespace xpu {
namespace {

// What is to become of a call.
struct Verdict {
  Status failure;
  std::chrono::microseconds delay{0};
};

// The rules for one device, and its counts.
class Judge {
 public:
  Judge(const std::vector<FaultRule>& rules, int ordinal) : ordinal_(ordinal) {
    for (const FaultRule& rule : rules) {
      if (rule.device == -1 || rule.device == ordinal) rules_[rule.call].push_back(rule);
    }
  }

  Verdict Next(FaultRule::Call call) {
    const uint64_t number = 1 + counts_[call].fetch_add(1, std::memory_order_relaxed);
    Verdict verdict;
    for (const FaultRule& rule : rules_[call]) {
      if (number < rule.first || number > rule.last) continue;
      verdict.delay += rule.delay;
      if (rule.fail) {
        verdict.failure = errors::Internal("TF_XPU_FAULT asks for this failure (", rule.text, "; it was number ",
                                           number, " on XPU:", ordinal_, ")");
      }
    }
    return verdict;
  }

 private:
  const int ordinal_;
  std::vector<FaultRule> rules_[FaultRule::kNumCalls];
  std::atomic<uint64_t> counts_[FaultRule::kNumCalls] = {};
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
    return Command(nullptr, [&] { return inner_->Memset(device_dst, value, size); });
  }
  Status MemsetU32(void* device_dst, uint32_t value, size_t size) override {
    return Command(nullptr, [&] { return inner_->MemsetU32(device_dst, value, size); });
  }

  bool Idle() const override { return inner_->Idle(); }
  void Wait() override { inner_->Wait(); }
  Status TakeStatus() override { return inner_->TakeStatus(); }
  Status PeekStatus() const override { return inner_->PeekStatus(); }

  // `launch` enqueues the command; `result` is Args::status.
  template <typename F>
  Status Command(Status* result, F&& launch) {
    Verdict verdict = judge_.Next(FaultRule::kCommand);
    Delay(verdict);
    if (verdict.failure.ok()) return launch();
    inner_->HostCallback([failure = std::move(verdict.failure), result]() -> Status {
      if (result == nullptr) return failure;
      *result = failure;
      return OkStatus();
    });
    if (result != nullptr) inner_->Wait();
    return OkStatus();
  }

 private:
  Status JudgeCopy() {
    const Verdict verdict = judge_.Next(FaultRule::kCopy);
    Delay(verdict);
    return verdict.failure;
  }

  void Delay(const Verdict& verdict) {
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

class FaultyDevice final : public Device {
 public:
  FaultyDevice(std::unique_ptr<Device> inner, const std::vector<FaultRule>& rules, int ordinal)
      : inner_(std::move(inner)), judge_(rules, ordinal) {}

  const DeviceInfo& info() const override { return inner_->info(); }
  void* Allocate(size_t size) override {
    const Verdict verdict = judge_.Next(FaultRule::kAllocation);
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
  const Capabilities& capabilities() const override { return inner_->capabilities(); }

#define XPU_ENQUEUE(name)                                                                                         \
  Status Enqueue(Stream& stream, const name##Desc& desc, const Args& args, const Footprint& footprint) override { \
    auto& faulty = static_cast<FaultyStream&>(stream);                                                            \
    return faulty.Command(args.status,                                                                            \
                          [&] { return inner_->Enqueue(FaultyStream::Inner(stream), desc, args, footprint); });   \
  }
  XPU_PRIMITIVES(XPU_ENQUEUE)
#undef XPU_ENQUEUE

 private:
  const std::unique_ptr<Device> inner_;
  Judge judge_;
};

}  // namespace

Status FaultyBackend::CreateDevice(int ordinal, const BackendOptions& options, std::unique_ptr<Device>* device) const {
  std::unique_ptr<Device> inner;
  XPU_RETURN_IF_ERROR(inner_.CreateDevice(ordinal, options, &inner));
  *device = std::make_unique<FaultyDevice>(std::move(inner), rules_, ordinal);
  return OkStatus();
}

}  // namespace xpu

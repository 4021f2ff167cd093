#include "tensorflow_plugin/commands/stream_capture.h"

#include <algorithm>
#include <utility>

namespace xpu::commands {
namespace {

// No processor that TensorFlow runs on maps anything here: bit 62 differs from bit 63.
constexpr uint64_t kBase = uint64_t{1} << 62;
constexpr uint64_t kAlignment = 256;

uint64_t Number(const void* address) { return reinterpret_cast<uint64_t>(address); }

}  // namespace

class StreamCapture::CaptureStream final : public Stream {
 public:
  explicit CaptureStream(StreamCapture& capture) : capture_(capture) {}

  void Record(Event&) override {}
  void WaitFor(Event&) override {}
  void WaitFor(Stream&) override {}
  // Everything before it has been taken over. The reason why a callback fails is told when the members run one by one,
  // as they do if the capture fails. CannotCapture notes it and returns it.
  void HostCallback(std::function<Status()> callback) override {
    if (!callback().ok()) (void)capture_.CannotCapture("a failing callback");
  }

  Status CopyHostToDevice(void* dst, const void* src, size_t size) override {
    if (IsVirtual(src)) return AddCopy(CopyFromHost{size}, dst, src);
    const char* bytes = static_cast<const char*>(src);
    XPU_RETURN_IF_ERROR(capture_.RequireRoom());
    const CopyConstant constant{std::make_shared<const std::vector<char>>(bytes, bytes + size)};
    capture_.Add(constant).out = {capture_.Resolve(dst)};
    return OkStatus();
  }
  Status CopyDeviceToHost(void* dst, const void* src, size_t size) override {
    return IsVirtual(dst) ? AddCopy(CopyToHost{size}, dst, src) : capture_.CannotCapture("a copy to the host");
  }
  Status CopyDeviceToDevice(void* dst, const void* src, size_t size) override {
    return AddCopy(CopyBytes{size}, dst, src);
  }
  Status Memset(void* dst, uint8_t value, size_t size) override {
    XPU_RETURN_IF_ERROR(capture_.RequireRoom());
    capture_.Add(FillBytes{value, size}).out = {capture_.Resolve(dst)};
    return OkStatus();
  }
  Status MemsetU32(void* dst, uint32_t value, size_t size) override {
    XPU_RETURN_IF_ERROR(capture_.RequireRoom());
    capture_.Add(FillWords{value, size}).out = {capture_.Resolve(dst)};
    return OkStatus();
  }

  bool Idle() const override { return true; }
  void Wait() override { (void)capture_.CannotCapture("a wait for the stream"); }
  Status TakeStatus() override { return OkStatus(); }
  Status PeekStatus() const override { return OkStatus(); }

 private:
  template <typename Copy>
  Status AddCopy(const Copy& copy, void* dst, const void* src) {
    XPU_RETURN_IF_ERROR(capture_.RequireRoom());
    Command& command = capture_.Add(copy);
    command.in = {capture_.Resolve(src)};
    command.out = {capture_.Resolve(dst)};
    return OkStatus();
  }

  StreamCapture& capture_;
};

class StreamCapture::CaptureDevice final : public Device {
 public:
  CaptureDevice(StreamCapture& capture, Device& real) : capture_(capture), real_(real) {}

  const DeviceInfo& info() const override { return real_.info(); }
  const Capabilities& capabilities() const override { return real_.capabilities(); }

  // Kernels have no use for the rest.
  void* Allocate(size_t) override { return nullptr; }
  void Deallocate(void*) override {}
  void* AllocateHost(size_t) override { return nullptr; }
  void DeallocateHost(void*) override {}
  AllocatorStats Stats() const override { return real_.Stats(); }
  void ResetStats() override {}
  void MemoryUsage(int64_t* free_bytes, int64_t* total_bytes) const override {
    real_.MemoryUsage(free_bytes, total_bytes);
  }
  std::unique_ptr<Stream> CreateStream(int) override { return nullptr; }
  std::unique_ptr<Event> CreateEvent() override { return nullptr; }
  std::unique_ptr<Timer> CreateTimer() override { return nullptr; }
  void Synchronize() override {}

#define XPU_ENQUEUE(name)                                                                                  \
  Status Enqueue(Stream&, const name##Desc& desc, const Args& args, const Footprint& footprint) override { \
    return Record(desc, args, footprint);                                                                  \
  }
  XPU_PRIMITIVES(XPU_ENQUEUE)
#undef XPU_ENQUEUE

 private:
  template <typename Desc>
  Status Record(const Desc& desc, const Args& args, const Footprint& footprint) {
    if (args.status != nullptr && args.explain == nullptr) {
      return capture_.CannotCapture("a command whose failure is not the op's");
    }
    XPU_RETURN_IF_ERROR(capture_.RequireRoom());
    Command& command = capture_.Add(desc);
    command.footprint = footprint;
    command.in.reserve(footprint.num_in);
    command.out.reserve(footprint.num_out);
    for (int i = 0; i < footprint.num_in; ++i) command.in.push_back(capture_.Resolve(args.in[i]));
    for (int i = 0; i < footprint.num_out; ++i) command.out.push_back(capture_.Resolve(args.out[i]));
    command.workspace = capture_.Resolve(args.workspace);
    if (args.status != nullptr) command.explain = *args.explain;
    return OkStatus();
  }

  StreamCapture& capture_;
  Device& real_;
};

StreamCapture::StreamCapture(Device& real)
    : next_(kBase),
      stream_(std::make_unique<CaptureStream>(*this)),
      device_(std::make_unique<CaptureDevice>(*this, real)) {}
StreamCapture::~StreamCapture() = default;

Device& StreamCapture::device() { return *device_; }
Stream& StreamCapture::stream() { return *stream_; }

void* StreamCapture::NewBuffer(int64_t bytes, Buffer::Kind kind) {
  starts_.push_back(next_);
  virtual_.push_back(static_cast<int>(list_.buffers.size()));
  list_.buffers.push_back({kind, bytes, nullptr});
  void* address = reinterpret_cast<void*>(next_);
  next_ += (static_cast<uint64_t>(bytes) / kAlignment + 2) * kAlignment;  // the address behind one is not the next's
  return address;
}

bool StreamCapture::IsVirtual(const void* address) { return Number(address) >> 62 == 1; }

BufferSlice StreamCapture::Resolve(const void* address) {
  if (address == nullptr) return {};
  if (IsVirtual(address)) {
    const auto above = std::upper_bound(starts_.begin(), starts_.end(), Number(address));
    const size_t i = static_cast<size_t>(above - starts_.begin()) - 1;
    return {virtual_[i], static_cast<int64_t>(Number(address) - starts_[i])};
  }
  const auto [found, added] = fixed_.emplace(address, static_cast<int>(list_.buffers.size()));
  if (added) list_.buffers.push_back({Buffer::Kind::kFixed, 0, address});
  return {found->second, 0};
}

Status StreamCapture::RequireRoom() { return is_full() ? CannotCapture("so many commands") : OkStatus(); }

Status StreamCapture::CannotCapture(const char* what) {
  if (why_uncapturable_.empty()) why_uncapturable_ = what;
  return errors::FailedPrecondition("cannot be recorded: ", what);
}

}  // namespace xpu::commands

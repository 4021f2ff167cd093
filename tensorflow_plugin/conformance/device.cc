#include "tensorflow_plugin/conformance/device.h"

#include <chrono>
#include <cstring>
#include <memory>

#include "tensorflow_plugin/conformance/library.h"

namespace xpu::conformance {

SE_PlatformRegistrationParams Register(const Subject& subject, SP_Platform* platform, SP_PlatformFns* functions,
                                       const Status& status) {
  std::string error;
  auto* const init = OpenLibrary(subject.library, &error);
  if (!init) NotOffered("see library.loads");
  SE_PlatformRegistrationParams params{};
  params.struct_size = SE_PLATFORM_REGISTRATION_PARAMS_STRUCT_SIZE;
  params.major_version = SE_MAJOR;
  params.minor_version = SE_MINOR;
  params.patch_version = SE_PATCH;
  params.platform = platform;
  params.platform_fns = functions;
  Entering("SE_InitPlugin");
  init(&params, status.get());
  return params;
}

void FillTables(const SP_Platform& platform, const SP_PlatformFns& functions, SP_DeviceFns* device_fns,
                SP_StreamExecutor* executor, SP_TimerFns* timer_fns) {
  Status status;
  SE_CreateDeviceFnsParams device_params{SE_CREATE_DEVICE_FNS_PARAMS_STRUCT_SIZE, nullptr, device_fns};
  CallPlatform("create_device_fns", functions.create_device_fns, &platform, &device_params, status.get());
  status.Require("create_device_fns");
  SE_CreateStreamExecutorParams executor_params{SE_CREATE_STREAM_EXECUTOR_PARAMS_STRUCT_SIZE, nullptr, executor};
  CallPlatform("create_stream_executor", functions.create_stream_executor, &platform, &executor_params, status.get());
  status.Require("create_stream_executor");
  if (functions.create_timer_fns == nullptr) return;
  CallPlatform("create_timer_fns", functions.create_timer_fns, &platform, timer_fns, status.get());
  status.Require("create_timer_fns");
}

Platform::Platform(const Subject& subject) {
  platform.struct_size = SP_PLATFORM_STRUCT_SIZE;
  fns.struct_size = SP_PLATFORM_FNS_STRUCT_SIZE;
  Status status;
  params = Register(subject, &platform, &fns, status);
  if (!status.ok()) NotOffered("see registration.succeeds");

  device_fns.struct_size = SP_DEVICE_FNS_STRUCT_SIZE;
  executor.struct_size = SP_STREAMEXECUTOR_STRUCT_SIZE;
  timer_fns.struct_size = SP_TIMER_FNS_STRUCT_SIZE;
  FillTables(platform, fns, &device_fns, &executor, &timer_fns);
}

int Platform::DeviceCount() {
  int count = 0;
  Status status;
  CallPlatform("get_device_count", fns.get_device_count, &platform, &count, status.get());
  status.Require("get_device_count");
  return count;
}

Device::Device(Platform& owner, int ordinal) : platform(owner) {
  if (ordinal >= platform.DeviceCount()) NotOffered(ordinal == 0 ? "there is no device" : "there is one device only");
  sp.struct_size = SP_DEVICE_STRUCT_SIZE;
  SE_CreateDeviceParams params{SE_CREATE_DEVICE_PARAMS_STRUCT_SIZE, nullptr, ordinal, &sp};
  Status status;
  CallPlatform("create_device", platform.fns.create_device, &platform.platform, &params, status.get());
  status.Require("create_device");
  for (SP_Stream* stream : {&compute, &h2d, &d2h, &d2d}) *stream = NewStream();
}

SP_Stream Device::NewStream() {
  SP_Stream stream = nullptr;
  Do(&SE::create_stream, &stream);
  return stream;
}

SP_Event Device::NewEvent() {
  SP_Event event = nullptr;
  Do(&SE::create_event, &event);
  return event;
}

SP_DeviceMemoryBase Device::Allocate(uint64_t size) {
  SP_DeviceMemoryBase memory{SP_DEVICE_MEMORY_BASE_STRUCT_SIZE, nullptr, nullptr, 0, 0};
  Ask(&SE::allocate, size, int64_t{0}, &memory);
  if (memory.opaque == nullptr) Fail("allocate gives no ", size, " bytes");
  return memory;
}

uint8_t* Device::AllocateHost(uint64_t size, uint8_t fill) {
  void* memory = Ask(&SE::host_memory_allocate, size);
  if (memory == nullptr) Fail("host_memory_allocate gives no ", size, " bytes");
  std::memset(memory, fill, size);
  return static_cast<uint8_t*>(memory);
}

void Device::Write(const SP_DeviceMemoryBase& to, const Bytes& bytes) {
  SP_DeviceMemoryBase memory = to;
  Do(&SE::sync_memcpy_htod, &memory, static_cast<const void*>(bytes.data()), uint64_t{bytes.size()});
}

Bytes Device::Read(const SP_DeviceMemoryBase& from, uint64_t size) {
  Bytes bytes(size);
  Do(&SE::sync_memcpy_dtoh, static_cast<void*>(bytes.data()), &from, size);
  return bytes;
}

SP_Event Device::Record(SP_Stream stream) {
  SP_Event event = NewEvent();
  Do(&SE::record_event, stream, event);
  return event;
}

bool Device::Complete(SP_Event event) {
  const SE_EventStatus status = Ask(&SE::get_event_status, event);
  if (status == SE_EVENT_COMPLETE) return true;
  if (status == SE_EVENT_PENDING) return false;
  Fail("get_event_status gives ", status == SE_EVENT_ERROR ? "SE_EVENT_ERROR" : Text(status),
       " for a recorded event: TensorFlow ends the process over that");
}

void Device::Finish(SP_Stream stream) {
  const SP_Event event = Record(stream);
  Await("the event behind the enqueued work did not complete", [&] { return Complete(event); });
  Do(&SE::synchronize_all_activity);
}

void Device::Callback(SP_Stream stream, std::function<TF_Code()> function) {
  auto* argument = new std::function<TF_Code()>(std::move(function));
  const SE_StatusCallbackFn call = [](void* const arg, TF_Status* const status) {
    // Not given back: a plugin that calls twice must be seen to.
    const TF_Code code = (*static_cast<std::function<TF_Code()>*>(arg))();
    if (code != TF_OK) TF_SetStatus(status, code, "the callback of a check says so");
  };
  if (!Ask(&SE::host_callback, stream, call, static_cast<void*>(argument))) {
    NotOffered("host_callback returns false: it cannot run a function on a stream, which this check needs");
  }
}

Gate& Device::Close(SP_Stream stream) { return *new Gate(*this, stream); }

SP_DeviceMemoryBase At(const SP_DeviceMemoryBase& memory, uint64_t offset, uint64_t size) {
  SP_DeviceMemoryBase part = memory;
  part.opaque = static_cast<char*>(memory.opaque) + offset;
  part.size = size;
  return part;
}

Gate::Gate(Device& device, SP_Stream stream) {
  const std::thread::id here = std::this_thread::get_id();
  device.Callback(stream, [this, here] {
    if (std::this_thread::get_id() == here) {
      NotOffered("a stream runs its commands on the calling thread, before the call returns");
    }
    std::unique_lock<std::mutex> lock(mutex_);
    reached_ = true;
    changed_.wait(lock, [this] { return open_; });
    return TF_OK;
  });
}

void Gate::Open() {
  std::lock_guard<std::mutex> lock(mutex_);
  open_ = true;
  changed_.notify_all();
}

void Gate::OpenAfter(Milliseconds delay) {
  std::thread([this, delay] {
    Sleep(delay);
    Open();
  }).detach();
}

bool Gate::open() {
  std::lock_guard<std::mutex> lock(mutex_);
  return open_;
}

bool Gate::reached() {
  std::lock_guard<std::mutex> lock(mutex_);
  return reached_;
}

void RequireHeldBack(Device& d, const std::string& what, const std::function<void()>& make_it_wait) {
  constexpr uint64_t kSize = 4096;
  SP_DeviceMemoryBase memory = d.Allocate(kSize);
  d.Write(memory, Bytes(kSize, 1));
  uint8_t* seen = d.AllocateHost(kSize);
  Gate& gate = d.Close(d.compute);
  d.Do(&SE::memset, d.compute, &memory, uint8_t{2}, kSize);
  make_it_wait();
  d.Do(&SE::memcpy_dtoh, d.d2h, static_cast<void*>(seen), &memory, kSize);
  Sleep(kWhile);
  gate.Open();
  d.Finish(d.d2h);
  RequireSame(what + "; what it saw", Copied(seen, kSize), Bytes(kSize, 2));
}

void OfferedIfItGetsOn(Device& d, SP_Stream stream, Gate& gate, const char* reason) {
  const SP_Event event = d.Record(stream);
  const auto end = std::chrono::steady_clock::now() + Patience() / 4;
  while (!d.Complete(event)) {
    if (std::chrono::steady_clock::now() > end) {
      gate.Open();
      NotOffered(reason);
    }
    Sleep(Milliseconds(1));
  }
  gate.Open();
}

void Sleep(Milliseconds time) { std::this_thread::sleep_for(time); }

Bytes Pattern(uint64_t size, uint32_t seed) {
  Bytes bytes(size);
  uint32_t state = seed * 2654435761u + 1;
  for (uint8_t& byte : bytes) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<uint8_t>(state >> 24);
  }
  return bytes;
}

void RequireSame(const std::string& what, const Bytes& found, const Bytes& expected) {
  if (found == expected) return;
  for (size_t i = 0; i < expected.size(); ++i) {
    if (found[i] != expected[i]) {
      Fail(what, ": byte ", i, " of ", expected.size(), " is ", int{found[i]}, ", not ", int{expected[i]});
    }
  }
}

}  // namespace xpu::conformance

// The tools of a check: a registered platform and a device of it, made in TensorFlow's order, and the callbacks as C++.
// A call that fails fails the check; one that is null is not offered (registration.* says whether that is wrong).
#ifndef TENSORFLOW_PLUGIN_CONFORMANCE_DEVICE_H_
#define TENSORFLOW_PLUGIN_CONFORMANCE_DEVICE_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "tensorflow/c/experimental/stream_executor/stream_executor.h"
#include "tensorflow/c/tf_status.h"
#include "tensorflow_plugin/conformance/callbacks.h"
#include "tensorflow_plugin/conformance/harness.h"

namespace xpu::conformance {

using Bytes = std::vector<uint8_t>;
using SE = SP_StreamExecutor;

// A TF_Status.
class Status {
 public:
  Status() : status_(TF_NewStatus()) {}
  ~Status() { TF_DeleteStatus(status_); }
  Status(const Status&) = delete;
  Status& operator=(const Status&) = delete;
  TF_Status* get() const { return status_; }
  bool ok() const { return TF_GetCode(status_) == TF_OK; }
  std::string text() const { return Text("code ", TF_GetCode(status_), ": ", TF_Message(status_)); }
  void Require(const char* call) const {
    if (!ok()) Fail(call, " failed with ", text());
  }

 private:
  TF_Status* const status_;
};

// Loads the library and calls its SE_InitPlugin, whose outcome is left in `status`. The structs say their size.
SE_PlatformRegistrationParams Register(const Subject& subject, SP_Platform* platform, SP_PlatformFns* functions,
                                       const Status& status);

// Calls a platform function, if it is set.
template <typename Function, typename... Args>
void CallPlatform(const char* name, Function function, Args... args) {
  if (function == nullptr) NotOffered(name, " is not set");
  Entering(name);
  function(args...);
}

// Has the registered platform fill its tables, whose struct_size says how much of them TensorFlow knows of.
void FillTables(const SP_Platform& platform, const SP_PlatformFns& functions, SP_DeviceFns* device_fns,
                SP_StreamExecutor* executor, SP_TimerFns* timer_fns);

class Platform {
 public:
  // Loads the library and registers it.
  explicit Platform(const Subject& subject);

  int DeviceCount();

  SP_Platform platform{};
  SP_PlatformFns fns{};
  SE_PlatformRegistrationParams params{};
  SP_DeviceFns device_fns{};
  SP_StreamExecutor executor{};
  SP_TimerFns timer_fns{};
};

class Gate;

class Device {
 public:
  explicit Device(const Subject& subject) : Device(*new Platform(subject), 0) {}
  Device(Platform& platform, int ordinal);

  // A callback whose last argument is a TF_Status, which must be OK.
  template <typename Function, typename... Args>
  void Do(Function SE::* callback, Args... args) {
    Status status;
    Ask(callback, args..., status.get());
    status.Require(NameOf(callback));
  }
  // Any other, or one whose status is looked at.
  template <typename Function, typename... Args>
  auto Ask(Function SE::* callback, Args... args) {
    const Function function = platform.executor.*callback;
    if (function == nullptr) NotOffered(NameOf(callback), " is not set");
    Entering(NameOf(callback));
    return function(&sp, args...);
  }

  SP_Stream NewStream();
  SP_Event NewEvent();
  SP_DeviceMemoryBase Allocate(uint64_t size);
  // From host_memory_allocate, filled with a byte: what asynchronous copies are to use.
  uint8_t* AllocateHost(uint64_t size, uint8_t fill = 0);

  // Blocking copies.
  void Write(const SP_DeviceMemoryBase& to, const Bytes& bytes);
  Bytes Read(const SP_DeviceMemoryBase& from, uint64_t size);

  // An event recorded now on the stream.
  SP_Event Record(SP_Stream stream);
  // True if the event is complete; fails if it is neither that nor pending.
  bool Complete(SP_Event event);
  // Waits for the work on a stream, once by polling, as TensorFlow does, and once more with synchronize_all_activity. A
  // fault in one of them fails the checks of that one and no others.
  void Finish(SP_Stream stream);

  // Enqueues a function on a stream. It may return a code other than TF_OK as its status.
  void Callback(SP_Stream stream, std::function<TF_Code()> function);
  // Holds a stream back.
  Gate& Close(SP_Stream stream);

  Platform& platform;
  SP_Device sp{};
  // The streams that TensorFlow makes, in its order.
  SP_Stream compute, h2d, d2h, d2d;
};

// Part of an allocation.
SP_DeviceMemoryBase At(const SP_DeviceMemoryBase& memory, uint64_t offset, uint64_t size);

// Work that is enqueued on a stream behind a closed gate waits for Open. While it is closed, only callbacks that must
// not block are to be called. A stream that runs its commands on the calling thread cannot be held back: such a check
// ends as not offered.
class Gate {
 public:
  Gate(Device& device, SP_Stream stream);
  void Open();
  // From another thread, after a while.
  void OpenAfter(Milliseconds delay);
  bool open();
  // True if the stream waits at it, or has.
  bool reached();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false, reached_ = false;
};

// Fails with `what` unless d2h sees what is queued on compute behind a closed gate, after `make_it_wait` was called.
void RequireHeldBack(Device& d, const std::string& what, const std::function<void()>& make_it_wait);

// Ends as not offered, for the reason given, unless the stream gets on while the gate is closed. Opens it.
void OfferedIfItGetsOn(Device& d, SP_Stream stream, Gate& gate, const char* reason);

// How long something that must not happen is watched for.
constexpr Milliseconds kWhile{20};

void Sleep(Milliseconds time);

// A pattern that tells every byte from its neighbours, different for each seed.
Bytes Pattern(uint64_t size, uint32_t seed);

// Fails unless the bytes are as they should be: "what: byte 17 is 3, not 4".
void RequireSame(const std::string& what, const Bytes& found, const Bytes& expected);
template <typename Bytes2>
Bytes Copied(const Bytes2* from, uint64_t size) {
  return Bytes(from, from + size);
}

}  // namespace xpu::conformance

#endif  // TENSORFLOW_PLUGIN_CONFORMANCE_DEVICE_H_

// The parts of a plugin that TensorFlow holds, for tests that drive the StreamExecutor callbacks as TensorFlow does,
// without its runtime. The backend is a device without kernels, on host memory.
#ifndef TENSORFLOW_PLUGIN_DEVICE_TESTS_CORE_H_
#define TENSORFLOW_PLUGIN_DEVICE_TESTS_CORE_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tensorflow/c/experimental/stream_executor/stream_executor.h"
#include "tensorflow_plugin/backends/host_runtime/host_backend.h"
#include "tensorflow_plugin/device/platform.h"
#include "tensorflow_plugin/device/stream_handle.h"

namespace xpu {

inline void Sleep(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

// A device needs no kernels to be driven.
class NoKernels final : public host_runtime::KernelSet {
 public:
#define XPU_NONE(name)                                                                         \
  Status Run(const name##Desc&, const Args&, const host_runtime::ThreadTeam&) const override { \
    return errors::Unimplemented(#name);                                                       \
  }
  XPU_PRIMITIVES(XPU_NONE)
#undef XPU_NONE
};

inline const Backend& TestBackend() {
  static const NoKernels kernels;
  static const host_runtime::HostBackend backend("XPU_TEST", kernels);
  return backend;
}

constexpr int64_t kLimit = int64_t{64} << 20;

inline BackendOptions OneThread() {
  BackendOptions options;
  options.device_count = 2;
  options.memory_limit = kLimit;
  options.threads = 1;  // OpenMP is opaque to the thread sanitizer
  return options;
}

// A status that must be OK whenever it was passed somewhere.
class Checked {
 public:
  ~Checked() {
    EXPECT_EQ(TF_GetCode(status_), TF_OK) << TF_Message(status_);
    TF_DeleteStatus(status_);
  }
  operator TF_Status*() { return status_; }

 private:
  TF_Status* status_ = TF_NewStatus();
};

struct Failure {
  TF_Code code;
  std::string message;
};
template <typename F>
Failure StatusOf(F&& f) {
  TF_Status* status = TF_NewStatus();
  f(status);
  Failure failure{TF_GetCode(status), TF_Message(status)};
  TF_DeleteStatus(status);
  return failure;
}

// Something that other threads wait for: a test sets it when it has seen what it wanted to see meanwhile.
class Gate {
 public:
  ~Gate() { Open(); }
  void Open() { open_ = true; }
  // To be enqueued on a stream, which it holds up.
  std::function<void()> Wait() {
    return [this] {
      while (!open_) Sleep(1);
    };
  }

 private:
  std::atomic<bool> open_{false};
};

// The parts of a plugin that TensorFlow holds, made in its order.
class Core {
 public:
  explicit Core(const BackendOptions& options = OneThread(), int ordinal = 0, const Backend& backend = TestBackend()) {
    params_.struct_size = SE_PLATFORM_REGISTRATION_PARAMS_STRUCT_SIZE;
    params_.platform = &platform;
    params_.platform_fns = &platform_fns;
    InitPlatform(&params_, backend, options);
    create_device_.ordinal = ordinal;
    create_device_.device = &device;
    platform_fns.create_device(&platform, &create_device_, Checked());
    SE_CreateDeviceFnsParams device_fns_params{SE_CREATE_DEVICE_FNS_PARAMS_STRUCT_SIZE, nullptr, &device_fns};
    platform_fns.create_device_fns(&platform, &device_fns_params, Checked());
    SE_CreateStreamExecutorParams se_params{SE_CREATE_STREAM_EXECUTOR_PARAMS_STRUCT_SIZE, nullptr, &se};
    platform_fns.create_stream_executor(&platform, &se_params, Checked());
    platform_fns.create_timer_fns(&platform, &timer_fns, Checked());
    for (SP_Stream* stream : {&compute, &h2d, &d2h}) se.create_stream(&device, stream, Checked());
  }
  ~Core() {
    for (SP_Stream stream : {compute, h2d, d2h}) se.destroy_stream(&device, stream);
    platform_fns.destroy_device(&platform, &device);
  }

  SP_DeviceMemoryBase Allocate(uint64_t size) {
    SP_DeviceMemoryBase memory{SP_DEVICE_MEMORY_BASE_STRUCT_SIZE, nullptr, nullptr, 0, 0};
    se.allocate(&device, size, 0, &memory);
    return memory;
  }

  SP_Event NewEvent() {
    SP_Event event = nullptr;
    se.create_event(&device, &event, Checked());
    return event;
  }

  // Enqueues `f` on a stream, as a host callback.
  void Enqueue(SP_Stream stream, std::function<void()> f) {
    auto* argument = new std::function<void()>(std::move(f));
    const SE_StatusCallbackFn call = [](void* const arg, TF_Status* const) {
      std::unique_ptr<std::function<void()>> function(static_cast<std::function<void()>*>(arg));
      (*function)();
    };
    EXPECT_TRUE(se.host_callback(&device, stream, call, argument));
  }

  // Enqueues a host callback that fails.
  void EnqueueFailure(SP_Stream stream) {
    const SE_StatusCallbackFn fail = [](void* const, TF_Status* const status) {
      TF_SetStatus(status, TF_INVALID_ARGUMENT, "bad index 7");
    };
    EXPECT_TRUE(se.host_callback(&device, stream, fail, nullptr));
  }

  // The bytes of device memory.
  std::vector<uint8_t> Read(const SP_DeviceMemoryBase& memory) {
    std::vector<uint8_t> bytes(memory.size);
    se.sync_memcpy_dtoh(&device, bytes.data(), &memory, memory.size, Checked());
    return bytes;
  }

  SP_Platform platform{SP_PLATFORM_STRUCT_SIZE, nullptr, nullptr, nullptr, 0, 0, 0};
  SP_PlatformFns platform_fns = WithSize<SP_PlatformFns>(SP_PLATFORM_FNS_STRUCT_SIZE);
  SP_Device device = WithSize<SP_Device>(SP_DEVICE_STRUCT_SIZE);
  SP_DeviceFns device_fns = WithSize<SP_DeviceFns>(SP_DEVICE_FNS_STRUCT_SIZE);
  SP_StreamExecutor se = WithSize<SP_StreamExecutor>(SP_STREAMEXECUTOR_STRUCT_SIZE);
  SP_TimerFns timer_fns = WithSize<SP_TimerFns>(SP_TIMER_FNS_STRUCT_SIZE);
  SP_Stream compute = nullptr, h2d = nullptr, d2h = nullptr;
  SE_PlatformRegistrationParams params_{};

 private:
  template <typename T>
  static T WithSize(size_t size) {
    T t{};
    t.struct_size = size;
    return t;
  }
  SE_CreateDeviceParams create_device_{SE_CREATE_DEVICE_PARAMS_STRUCT_SIZE, nullptr, 0, nullptr};
};

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_DEVICE_TESTS_CORE_H_

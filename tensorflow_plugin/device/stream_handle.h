// What TensorFlow's opaque SP_Stream points to.
#ifndef TENSORFLOW_PLUGIN_DEVICE_STREAM_HANDLE_H_
#define TENSORFLOW_PLUGIN_DEVICE_STREAM_HANDLE_H_

#include <atomic>
#include <memory>

#include "tensorflow_plugin/primitives/backend.h"

struct SP_Stream_st {
  xpu::Device* device;
  std::unique_ptr<xpu::Stream> stream;
};

namespace xpu {

// Set in a process that was forked from one with a device. Threads are not copied: what is enqueued there would never
// run, and TensorFlow's own threads are missing as well.
inline std::atomic<bool> forked_from_user{false};
inline Status RequireNotForked() {
  XPU_REQUIRE(!forked_from_user.load(std::memory_order_relaxed),
              errors::FailedPrecondition("this process was forked from one that had used the XPU, which cannot be used "
                                         "here: start processes with multiprocessing.get_context('spawn')"));
  return OkStatus();
}

// The first failure among the commands that a stream has run, once. It is told to whoever next uses the device, who is
// not its cause, and so says what it is.
inline Status TakeEarlierFailure(Stream& stream) {
  const Status failure = stream.TakeStatus();
  if (failure.ok()) return OkStatus();
  return Status(failure.code(), "an operation enqueued on the XPU before this one failed: " + failure.message());
}

// While one lives, what TensorFlow's own kernels copy and fill on device memory from this thread goes to another stream
// than the one that they name: to one that records.
class RedirectedStream {
 public:
  explicit RedirectedStream(Stream& stream) { current_ = &stream; }
  ~RedirectedStream() { current_ = nullptr; }
  RedirectedStream(const RedirectedStream&) = delete;
  RedirectedStream& operator=(const RedirectedStream&) = delete;

  static Stream& InsteadOf(SP_Stream_st* handle) { return current_ != nullptr ? *current_ : *handle->stream; }

 private:
  static inline thread_local Stream* current_ = nullptr;
};

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_DEVICE_STREAM_HANDLE_H_

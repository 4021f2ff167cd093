// The struct behind TensorFlow's opaque SP_Stream.
#ifndef TENSORFLOW_PLUGIN_DEVICE_STREAM_HANDLE_H_
#define TENSORFLOW_PLUGIN_DEVICE_STREAM_HANDLE_H_

#include <atomic>
#include <memory>

#include "tensorflow_plugin/primitives/backend.h"

struct SP_Stream_st {
  xpu::Device* device;
  std::unique_ptr<xpu::Stream> stream;
  std::atomic<int> copies_that_tell{0};  // CopyThatTells
};

namespace xpu {

// Set in a process that was forked from one with a device that does not survive it (primitives/fork.h): what is
// enqueued there would never run.
inline std::atomic<bool> forked_from_user{false};
inline Status RequireNotForked() {
  XPU_REQUIRE(!forked_from_user.load(std::memory_order_relaxed),
              errors::FailedPrecondition("this process was forked from one that had used the XPU, which cannot be used "
                                         "here: start processes with multiprocessing.get_context('spawn')"));
  return OkStatus();
}

// A process may be forked from one with a device that survives it. TensorFlow's own threads for the device are missing
// in it all the same. The code that knows them says here how to start others.
inline std::atomic<void (*)()> start_other_threads{nullptr};
inline std::atomic<bool> other_threads_are_missing{false};
// Before TensorFlow may want them.
inline void EnsureOtherThreads() {
  if (__builtin_expect(!other_threads_are_missing.load(std::memory_order_acquire), 1)) return;
  if (void (*const start)() = start_other_threads) start();
}

// The first failure among the commands that a stream has run, once. The next user of the device is told of it. That
// user is not its cause, so the message says what it is.
inline Status TakeEarlierFailure(Stream& stream) {
  const Status failure = stream.TakeStatus();
  if (failure.ok()) return OkStatus();
  return Status(failure.code(), "an operation enqueued on the XPU before this one failed: " + failure.message());
}

// A copy off the device whose caller is told, when it has run, of the failures of the commands before it. Other callers
// that wait for the device meanwhile leave them to it. From its making to Told.
class CopyThatTells {
 public:
  explicit CopyThatTells(SP_Stream_st& compute) : compute_(compute) { compute_.copies_that_tell.fetch_add(1); }
  // Once, when the copy has run.
  Status Told() const {
    Status failure = TakeEarlierFailure(*compute_.stream);
    compute_.copies_that_tell.fetch_sub(1);
    return failure;
  }

  // While one lives, the copies that this thread enqueues are such.
  class Enqueuing {
   public:
    Enqueuing() { ++current_; }
    ~Enqueuing() { --current_; }
    Enqueuing(const Enqueuing&) = delete;
    Enqueuing& operator=(const Enqueuing&) = delete;
    static bool Now() { return current_ > 0; }

   private:
    static inline thread_local int current_ = 0;
  };

 private:
  SP_Stream_st& compute_;
};

// Set where no copy can be such a one, since TensorFlow's object for copies is not ours (tf_internals/copies.h). A copy
// to the host then waits for the commands before it, and tells when it is enqueued. So does one to another device that
// is enqueued as such a one.
inline std::atomic<bool> copies_wait{false};

// While an object of this class lives, this thread's copies and fills of device memory by TensorFlow's own kernels are
// captured. They go to another stream than they name.
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

// What TensorFlow's opaque SP_Stream points to.
#ifndef TENSORFLOW_PLUGIN_DEVICE_STREAM_HANDLE_H_
#define TENSORFLOW_PLUGIN_DEVICE_STREAM_HANDLE_H_

#include <memory>

#include "tensorflow_plugin/primitives/backend.h"

struct SP_Stream_st {
  xpu::Device* device;
  std::unique_ptr<xpu::Stream> stream;
};

namespace xpu {

// The first failure among the commands that a stream has run, once. It is told to whoever next uses the device, who is
// not its cause, and so says what it is.
inline Status TakeEarlierFailure(Stream& stream) {
  const Status failure = stream.TakeStatus();
  if (failure.ok()) return OkStatus();
  return Status(failure.code(), "an operation enqueued on the XPU before this one failed: " + failure.message());
}

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_DEVICE_STREAM_HANDLE_H_

// TensorFlow's use of each of its streams, by which profiles name their lines. Each version makes the streams of a
// device in an order of its own. So a stream has a number until a caller knows its use and says it
// (tf_internals/copies.cc).
#ifndef TENSORFLOW_PLUGIN_DEVICE_STREAM_USES_H_
#define TENSORFLOW_PLUGIN_DEVICE_STREAM_USES_H_

#include <string>

struct SP_Stream_st;

namespace xpu {

// All of these are thread-safe.

// The line of a new stream, the number-th of its device ("XPU:0"): "stream 2".
std::string LineOfNewStream(const SP_Stream_st* stream, const std::string& device, int number);
// `use`: "compute". For a stream with several uses, the last one counts.
void SetUse(const SP_Stream_st* stream, const std::string& use);
// Before the stream is destroyed.
void ForgetStream(const SP_Stream_st* stream);
// The use of the stream with this line, `line` itself if there is none or it is not known.
std::string UseOf(const std::string& device, const std::string& line);

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_DEVICE_STREAM_USES_H_

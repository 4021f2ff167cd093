#include "tensorflow_plugin/device/untold.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <vector>

#include "tensorflow_plugin/primitives/fork.h"

namespace xpu {
namespace {

// Lives for ever: TensorFlow destroys no stream when the process ends.
struct Streams {
  Mutex mutex;
  std::vector<SP_Stream_st*> all;
};
Streams& TheStreams() {
  static auto* const streams = new Streams;
  return *streams;
}

// Work may still be queued, and other threads may run: nothing here waits for either.
void TellAll() {
  if (forked_from_user) return;
  Streams& streams = TheStreams();
  const std::unique_lock<Mutex> lock(streams.mutex, std::try_to_lock);
  if (!lock.owns_lock()) return;
  for (SP_Stream_st* stream : streams.all) {
    const Status failure = stream->stream->TakeStatus();
    if (!failure.ok()) TellOnStderr("the process ended before it was told that an operation failed", failure);
  }
}

}  // namespace

void TellWhenTheProcessEnds(SP_Stream_st* stream) {
  static const int once = std::atexit(TellAll);
  (void)once;  // not 0 without memory: then nobody is told
  Streams& streams = TheStreams();
  std::lock_guard<Mutex> lock(streams.mutex);
  streams.all.push_back(stream);
}

void ForgetUntold(SP_Stream_st* stream) {
  Streams& streams = TheStreams();
  std::lock_guard<Mutex> lock(streams.mutex);
  streams.all.erase(std::remove(streams.all.begin(), streams.all.end(), stream), streams.all.end());
}

void TellOnStderr(const char* what, const Status& failure) {
  const std::string line = errors::Concat("tensorflow_xpu: ", what, ": ", failure.message(), "\n");
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace xpu

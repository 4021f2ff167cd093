// Many threads at once. TensorFlow enqueues from several threads, on the same stream too.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tensorflow_plugin/conformance/checks.h"
#include "tensorflow_plugin/conformance/device.h"

namespace xpu::conformance {
namespace {

constexpr int kThreads = 8;

void InThreads(const std::function<void(int)>& function) {
  std::atomic<bool> go{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      while (!go) std::this_thread::yield();
      function(t);
    });
  }
  go = true;
  for (std::thread& thread : threads) thread.join();
}

void OneStream(const Subject& subject) {
  Device d(subject);
  constexpr int kTimes = 100;
  struct Seen {
    std::atomic<int> inside{0};
    int calls = 0;  // of no thread in particular: the stream's order protects it
    int last[kThreads];
  };
  auto& seen = *new Seen;
  for (int& last : seen.last) last = -1;
  InThreads([&](int t) {
    for (int i = 0; i < kTimes; ++i) {
      d.Callback(d.compute, [&seen, t, i] {
        if (++seen.inside != 1) Fail("two commands of one stream ran at the same time");
        ++seen.calls;
        if (i <= seen.last[t]) Fail("command ", i, " of a thread ran after its command ", seen.last[t]);
        seen.last[t] = i;
        --seen.inside;
        return TF_OK;
      });
    }
  });
  d.Finish(d.compute);
  if (seen.calls != kThreads * kTimes) {
    Fail("of ", kThreads * kTimes, " commands that ", kThreads, " threads enqueued on one stream, ", seen.calls,
         " ran");
  }
}

void OwnStreams(const Subject& subject) {
  Device d(subject);
  InThreads([&](int t) {
    const SP_Stream stream = d.NewStream();
    constexpr uint64_t kSize = 50000;
    uint8_t* from = d.AllocateHost(kSize);
    uint8_t* to = d.AllocateHost(kSize);
    for (int i = 0; i < 20; ++i) {
      const Bytes bytes = Pattern(kSize, t * 100 + i);
      std::copy(bytes.begin(), bytes.end(), from);
      SP_DeviceMemoryBase a = d.Allocate(kSize), b = d.Allocate(kSize);
      d.Do(&SE::memcpy_htod, stream, &a, static_cast<const void*>(from), kSize);
      d.Do(&SE::memcpy_dtod, stream, &b, &a, kSize);
      d.Do(&SE::memcpy_dtoh, stream, static_cast<void*>(to), &b, kSize);
      const SP_Event event = d.Record(stream);
      Await("an event did not complete while other threads worked", [&] { return d.Complete(event); });
      RequireSame("copies while other threads worked", Copied(to, kSize), bytes);
      d.Ask(&SE::destroy_event, event);
    }
    d.Ask(&SE::destroy_stream, stream);
  });
}

void Memory(const Subject& subject) {
  Device d(subject);
  InThreads([&](int t) {
    for (int i = 0; i < 25; ++i) {
      const uint64_t size = 1000 + 777 * i;
      SP_DeviceMemoryBase memory = d.Allocate(size);
      const Bytes bytes = Pattern(size, t * 100 + i);
      d.Write(memory, bytes);
      std::this_thread::yield();
      RequireSame("memory allocated while other threads allocated", d.Read(memory, size), bytes);
      d.Ask(&SE::deallocate, &memory);
    }
  });
}

}  // namespace

std::vector<Check> ThreadChecks() {
  return {
      {"threads.one_stream",
       "All commands that eight threads enqueue on one stream run, one at a time, those of each thread in order.",
       OneStream},
      {"threads.own_streams", "Eight threads with streams and events of their own do not disturb each other.",
       OwnStreams},
      {"threads.memory", "Eight threads that allocate, copy and give back get memory of their own.", Memory},
  };
}

}  // namespace xpu::conformance

// Streams: order within one, dependencies between them, waiting for them.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "tensorflow_plugin/conformance/checks.h"
#include "tensorflow_plugin/conformance/device.h"

namespace xpu::conformance {
namespace {

constexpr uint64_t kSize = 4096;

void Many(const Subject& subject) {
  Device d(subject);
  for (int round = 0; round < 2; ++round) {
    std::vector<SP_Stream> streams;
    for (int i = 0; i < 32; ++i) streams.push_back(d.NewStream());
    SP_DeviceMemoryBase memory = d.Allocate(kSize * streams.size());
    for (size_t i = 0; i < streams.size(); ++i) {
      SP_DeviceMemoryBase part = At(memory, i * kSize, kSize);
      d.Do(&SE::memset, streams[i], &part, static_cast<uint8_t>(i + 1), kSize);
    }
    for (SP_Stream stream : streams) d.Finish(stream);
    for (size_t i = 0; i < streams.size(); ++i) {
      RequireSame(Text("memset on stream ", i), d.Read(At(memory, i * kSize, kSize), kSize),
                  Bytes(kSize, static_cast<uint8_t>(i + 1)));
      d.Ask(&SE::destroy_stream, streams[i]);
    }
  }
}

// Fills memory with 1, 2, ... on a stream and copies it to the host in between; what was seen must be 1, 2, ...
void FillAndLook(Device& d, uint64_t size, bool held_back) {
  constexpr int kTimes = 8;
  SP_DeviceMemoryBase memory = d.Allocate(size), copy = d.Allocate(size);
  std::vector<uint8_t*> seen;
  for (int i = 0; i < kTimes; ++i) seen.push_back(d.AllocateHost(size));
  Gate* gate = held_back ? &d.Close(d.compute) : nullptr;
  for (int i = 0; i < kTimes; ++i) {
    d.Do(&SE::memset, d.compute, &memory, static_cast<uint8_t>(i + 1), size);
    d.Do(&SE::memcpy_dtod, d.compute, &copy, &memory, size);
    d.Do(&SE::memcpy_dtoh, d.compute, static_cast<void*>(seen[i]), &copy, size);
  }
  if (gate) {
    Sleep(kWhile);
    gate->Open();
  }
  d.Finish(d.compute);
  for (int i = 0; i < kTimes; ++i) {
    RequireSame(Text("a stream ran its commands out of order; what step ", i + 1, " of ", kTimes, " saw"),
                Copied(seen[i], size), Bytes(size, static_cast<uint8_t>(i + 1)));
  }
}

void Order(const Subject& subject) {
  Device d(subject);
  FillAndLook(d, kSize, /*held_back=*/true);
}

void OrderUnderLoad(const Subject& subject) {
  Device d(subject);
  FillAndLook(d, 16, /*held_back=*/false);
  FillAndLook(d, 1 << 20, /*held_back=*/false);
}

void Dependency(const Subject& subject) {
  Device d(subject);
  RequireHeldBack(d, "a stream did not wait for the one it was made to depend on",
                  [&d] { d.Do(&SE::create_stream_dependency, d.d2h, d.compute); });
}

void DependencyOnThePast(const Subject& subject) {
  Device d(subject);
  d.Do(&SE::create_stream_dependency, d.d2h, d.compute);
  Gate& gate = d.Close(d.compute);
  OfferedIfItGetsOn(d, d.d2h, gate, "a stream waits for later work of another too, which is right and slow");
}

void BackAndForth(const Subject& subject) {
  Device d(subject);
  SP_DeviceMemoryBase memory = d.Allocate(kSize);
  constexpr int kTimes = 100;
  std::vector<uint8_t*> seen;
  for (int i = 0; i < kTimes; ++i) seen.push_back(d.AllocateHost(16));
  d.Write(memory, Bytes(kSize, 0));
  const SP_Stream streams[2] = {d.NewStream(), d.NewStream()};
  Gate& gate = d.Close(streams[0]);
  // Each step looks at what the step before it left, on the other stream.
  for (int i = 0; i < kTimes; ++i) {
    const SP_Stream here = streams[i % 2], there = streams[1 - i % 2];
    d.Do(&SE::memcpy_dtoh, here, static_cast<void*>(seen[i]), &memory, uint64_t{16});
    d.Do(&SE::memset, here, &memory, static_cast<uint8_t>(i + 1), kSize);
    d.Do(&SE::create_stream_dependency, there, here);
  }
  Sleep(kWhile);
  gate.Open();
  d.Finish(streams[0]);
  d.Finish(streams[1]);
  for (int i = 0; i < kTimes; ++i) {
    RequireSame(Text("what step ", i, " of two streams that wait for each other saw"), Copied(seen[i], 16),
                Bytes(16, static_cast<uint8_t>(i)));
  }
}

// How many threads and open files the process has.
int64_t Held(const char* what) {
  return std::distance(std::filesystem::directory_iterator(std::string("/proc/self/") + what), {});
}

void GivenBack(const Subject& subject) {
  Device d(subject);
  constexpr int kTimes = 100;
  const auto use = [&d](int times) {
    for (int i = 0; i < times; ++i) {
      const SP_Stream stream = d.NewStream();
      const SP_Event event = d.Record(stream);
      Await("an event recorded on a new stream did not complete", [&] { return d.Complete(event); });
      d.Ask(&SE::destroy_event, event);  // which may hold its stream
      d.Ask(&SE::destroy_stream, stream);
    }
  };
  use(4);  // what is made once
  for (const char* what : {"task", "fd"}) {
    const int64_t before = Held(what);
    use(kTimes);
    // A thread may take a moment to go.
    for (int i = 0; i < 20 && Held(what) > before; ++i) Sleep(kWhile / 10);
    const int64_t kept = Held(what) - before;
    if (kept > kTimes / 4) {
      Fail(kTimes, " streams created and destroyed leave ", kept, what[0] == 't' ? " threads" : " open files");
    }
  }
}

void Overlap(const Subject& subject) {
  Device d(subject);
  Gate& gate = d.Close(d.compute);
  OfferedIfItGetsOn(d, d.NewStream(), gate, "one stream's work holds back another's");
}

void StatusDoesNotBlock(const Subject& subject) {
  Device d(subject);
  d.Do(&SE::get_stream_status, d.compute);
  Gate& gate = d.Close(d.compute);
  gate.OpenAfter(Patience() / 4);
  const auto start = std::chrono::steady_clock::now();
  d.Do(&SE::get_stream_status, d.compute);
  if (std::chrono::steady_clock::now() - start > Patience() / 5) Fail("get_stream_status waits for the stream's work");
  gate.Open();
}

// True if `wait` waits for the work behind a gate on each of the streams.
template <typename Wait>
void ExamineWait(const char* call, Device& d, const std::vector<SP_Stream>& streams, Wait&& wait) {
  auto& left = *new std::atomic<int>(static_cast<int>(streams.size()));
  std::vector<Gate*> gates;
  for (SP_Stream stream : streams) {
    gates.push_back(&d.Close(stream));
    d.Callback(stream, [&left] {
      --left;
      return TF_OK;
    });
  }
  Milliseconds delay = kWhile;
  for (Gate* gate : gates) gate->OpenAfter(delay += kWhile / 2);
  wait();
  if (left > 0) Fail(call, " returned while work was queued");
}

void BlockHostUntilDone(const Subject& subject) {
  Device d(subject);
  ExamineWait("block_host_until_done", d, {d.compute}, [&d] { d.Do(&SE::block_host_until_done, d.compute); });
}

void SynchronizeAll(const Subject& subject) {
  Device d(subject);
  ExamineWait("synchronize_all_activity", d, {d.compute, d.h2d, d.d2d}, [&d] { d.Do(&SE::synchronize_all_activity); });
}

void Exit(const Subject& subject) {
  Device& d = *new Device(subject);
  for (const SP_Stream stream : {d.compute, d.h2d}) {
    SP_DeviceMemoryBase memory = d.Allocate(8 << 20);
    d.Callback(stream, [] {
      Sleep(kWhile);
      return TF_OK;
    });
    for (int i = 0; i < 20; ++i) d.Do(&SE::memset, stream, &memory, static_cast<uint8_t>(i), uint64_t{8} << 20);
  }
  PassByExit();
}

}  // namespace

std::vector<Check> StreamChecks() {
  return {
      {"streams.many", "32 streams can be created, used and destroyed, and again.", Many},
      {"streams.given_back", "Streams that were destroyed leave no threads and no open files.", GivenBack},
      {"streams.order", "Commands enqueued on a stream run in order, where the stream is held back first.", Order},
      {"streams.order_under_load", "Commands enqueued on a stream run in order, small and large.", OrderUnderLoad},
      {"streams.dependency",
       "After create_stream_dependency, what is enqueued on the dependent stream waits for what was enqueued on the "
       "other.",
       Dependency},
      {"streams.dependency_on_the_past", "It does not wait for what is enqueued on the other stream later.",
       DependencyOnThePast},
      {"streams.back_and_forth", "Two streams that wait for each other a hundred times in turn keep their order.",
       BackAndForth},
      {"streams.overlap", "Work held back on one stream does not hold back another.", Overlap},
      {"streams.status", "get_stream_status is OK, and does not wait for the stream's work.", StatusDoesNotBlock},
      {"streams.block_host_until_done", "block_host_until_done returns when the stream's work is done, not before.",
       BlockHostUntilDone},
      {"streams.synchronize_all_activity",
       "synchronize_all_activity returns when the work of all streams is done, not before.", SynchronizeAll},
      {"streams.exit", "A process that exits with work queued neither crashes nor hangs; TensorFlow destroys nothing.",
       Exit},
  };
}

}  // namespace xpu::conformance
